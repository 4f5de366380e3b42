"""Compiled grammars: used when fresh, made again when not, and never slowed down by ``interegular``."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import lark
import pytest

from analyzer import grammar_store

PACKAGE = Path(grammar_store.__file__).parent

GRAMMAR = """
// starts: pair
%import .fragment.NUMBER
start: "n" "=" NUMBER
pair: NUMBER "," NUMBER
"""
FRAGMENT = "NUMBER: /[0-9]+/\n"

# Takes the place of interegular: any use of its Comparator fails.
TRAP = """
import sys, types
trap = types.ModuleType("interegular")
class Comparator:
    def __init__(self, *args): raise AssertionError("terminals were compared")
    @classmethod
    def from_regexes(cls, *args): raise AssertionError("terminals were compared")
trap.Comparator = Comparator
sys.modules["interegular"] = trap
import lark
assert lark.lexer.has_interegular
"""
NO_BUILDING = """
def built(self, *args, **kwargs): raise AssertionError("a grammar was compiled")
lark.Lark.__init__ = built
"""
LOAD_ALL = """
from analyzer import grammar_store
for name in grammar_store.names():
    for rule in grammar_store.start_rules(grammar_store.grammar_folder() / f"{name}.lark"):
        grammar_store.load(name, rule)
        print(name, rule)
"""


def lay_out(folder: Path, grammars: Path, *, packaged: bool) -> Path:
    """A checkout or an installed package in ``folder``, with the grammars of ``grammars``."""
    package = folder / "analyzer"
    package.mkdir(parents=True)
    for name in ("__init__.py", "grammar_store.py"):
        shutil.copy(PACKAGE / name, package / name)
    shutil.copytree(grammars, package / "_data" / "grammars" if packaged else folder / "grammars")
    return folder


def store_of(folder: Path) -> Any:
    """The grammar store of a layout, as a module of its own."""
    spec = importlib.util.spec_from_file_location("laid_out_store", folder / "analyzer" / "grammar_store.py")
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def grammars(tmp_path: Path) -> Path:
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "sample.lark").write_text(GRAMMAR)
    (folder / "fragment.lark").write_text(FRAGMENT)
    return folder


@pytest.fixture
def checkout(tmp_path: Path, grammars: Path) -> Path:
    return lay_out(tmp_path / "checkout", grammars, packaged=False)


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_the_trap_catches_a_plain_lark(tmp_path: Path) -> None:
    done = run(TRAP + "lark.Lark('start: /a/', parser='lalr')", tmp_path)
    assert "terminals were compared" in done.stderr


@pytest.mark.parametrize("packaged", [True, False])
def test_no_grammar_compares_its_terminals(tmp_path: Path, packaged: bool) -> None:
    folder = lay_out(tmp_path / "tree", grammar_store.grammar_folder(), packaged=packaged)
    first = run(TRAP + LOAD_ALL, folder)
    assert first.returncode == 0, first.stderr
    assert {line.split()[0] for line in first.stdout.splitlines()} == set(grammar_store.names())


def test_shipped_grammars_are_not_compiled_again(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "tree", grammar_store.grammar_folder(), packaged=True)
    grammar_store.compile_all(folder / "analyzer" / "_data" / "compiled")
    done = run(TRAP + NO_BUILDING + LOAD_ALL, folder)
    assert done.returncode == 0, done.stderr


def test_every_grammar_compiles_to_plain_data(tmp_path: Path) -> None:
    for path in grammar_store.compile_all(tmp_path):
        _, _, content = path.read_bytes().partition(b"\n")
        assert grammar_store._DataOnly(io.BytesIO(content)).load()
        assert str(PACKAGE.parent).encode() not in content


def test_fragments_are_not_compiled(grammars: Path, tmp_path: Path) -> None:
    assert grammar_store.names(grammars) == ["sample"]
    written = grammar_store.compile_all(tmp_path / "out", grammars)
    assert sorted(path.name for path in written) == ["sample.bin", "sample.pair.bin"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["sample.bin", "sample.pair.bin"]


def test_a_checkout_keeps_what_it_compiled(checkout: Path) -> None:
    fresh = store_of(checkout).load("sample").parse("n=12")
    assert (checkout / ".build" / "grammars" / "sample.bin").is_file()
    kept = run(TRAP + NO_BUILDING + "from analyzer import grammar_store\nprint(grammar_store.load('sample'))", checkout)
    assert kept.returncode == 0, kept.stderr
    assert store_of(checkout).load("sample").parse("n=12") == fresh
    assert [str(token) for token in fresh.children] == ["n", "=", "12"]
    assert store_of(checkout).load("sample", "pair").parse("1,2").data == "pair"


def test_a_changed_fragment_makes_it_stale(checkout: Path) -> None:
    store_of(checkout).load("sample")
    (checkout / "grammars" / "fragment.lark").write_text("NUMBER: /[a-z]+/\n")
    assert store_of(checkout).load("sample").parse("n=abc")


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_file_is_compiled_again(checkout: Path, damage: str) -> None:
    store_of(checkout).load("sample")
    path = checkout / ".build" / "grammars" / "sample.bin"
    good = path.read_bytes()
    bad = {"cut": good[:-40], "flipped": good[:300] + bytes([good[300] ^ 1]) + good[301:], "empty": b""}[damage]
    path.write_bytes(bad)
    assert store_of(checkout).load("sample").parse("n=1")
    kept = run(TRAP + NO_BUILDING + "from analyzer import grammar_store\ngrammar_store.load('sample')", checkout)
    assert kept.returncode == 0, kept.stderr


def test_a_checkout_without_a_writable_folder_works(checkout: Path) -> None:
    (checkout / ".build").write_text("a file stands where the folder should be")
    assert store_of(checkout).load("sample").parse("n=1")


def test_a_pickle_with_code_is_never_run(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return print, ("ran",)

    store = store_of(checkout)
    content = pickle.dumps(Evil())
    stamp = store._stamp(checkout / "grammars" / "sample.lark", "start")
    path = checkout / ".build" / "grammars" / "sample.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(stamp + b" " + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    with pytest.raises(pickle.UnpicklingError, match="no place"):
        store._DataOnly(io.BytesIO(content)).load()
    assert store.load("sample").parse("n=1")
    assert not capsys.readouterr().out
    assert path.read_bytes().partition(b"\n")[2] != content


@pytest.mark.parametrize("terminal", ["/[0-9]*/", "/(/"])
def test_a_broken_terminal_is_named(checkout: Path, terminal: str) -> None:
    (checkout / "grammars" / "fragment.lark").write_text(f"NUMBER: {terminal}\n")
    with pytest.raises(lark.exceptions.LarkError, match=r"NUMBER|missing \)"):
        store_of(checkout).load("sample")


def test_an_unknown_grammar_is_a_missing_file(checkout: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        store_of(checkout).load("nothing")
