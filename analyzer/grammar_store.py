"""Finds the data files of the package and loads lark grammars, from their compiled form where it is fresh.

Building an LALR parser from its text costs tens of milliseconds, and seconds where the package ``interegular``
is installed (lark then compares every pair of terminals). So a grammar is compiled once: by the wheel build into
``analyzer/_data/compiled``, in a development checkout into ``.build/grammars``. A compiled file is one line with a
stamp (hash of the sources, of lark's version and of the options) and a checksum, then a pickle of plain containers,
read by an unpickler that refuses everything else. A stale, damaged or missing file only costs time.

The module imports nothing of the package, because the wheel build loads it by path.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

DEFAULT_START = "start"

_FORMAT = "crashcart-grammar-2"
_OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "lexer": "contextual",
    "keep_all_tokens": True,
    "maybe_placeholders": False,
    "propagate_positions": False,
}

_PATCHING = threading.Lock()

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED = _PACKAGE / "_data"
_CHECKOUT = _PACKAGE.parent

_IMPORT = re.compile(r"^\s*%import\s+\.(\w+)", re.MULTILINE)
_STARTS = re.compile(r"^//\s*starts:([\w ,]*)$", re.MULTILINE)
_DEFAULT_RULE = re.compile(rf"^[?!]*{DEFAULT_START}(?:\.-?\d+)?\s*:", re.MULTILINE)


def grammar_folder() -> Path:
    """The folder of the ``.lark`` files: inside an installed package, else beside the package in a checkout."""
    return _data_folder("grammars")


def rules_folder() -> Path:
    """The folder of the rules that ship with the package (one folder per area, YAML files in it)."""
    return _data_folder("rules")


def _data_folder(name: str) -> Path:
    packaged = _PACKAGED / name
    return packaged if packaged.is_dir() else _CHECKOUT / name


@cache
def load(name: str, start: str | None = None) -> Lark:
    """The parser of ``grammars/<name>.lark`` for the rule ``start`` (default: the rule called start).

    Grammars are LALR with the contextual lexer, keep all tokens and track no positions. A start rule other than
    the default is compiled ahead only if the grammar names it in a line ``// starts: line, block``.

    Raises:
        FileNotFoundError: there is no such grammar.
        lark.exceptions.GrammarError: the grammar is broken.
    """
    from lark import Lark

    rule = start or DEFAULT_START
    source = grammar_folder() / f"{name}.lark"
    stamp = _stamp(source, rule)
    for folder in _compiled_folders():
        data = _read(_compiled_path(folder, name, rule), stamp)
        if data is not None:
            parser: Lark = Lark.load(data)
            return parser
    parser = compile_grammar(source, rule)
    if not _PACKAGED.is_dir():
        _try_write(_compiled_path(_build_folder(), name, rule), stamp, parser)
    return parser


def names(folder: Path | None = None) -> list[str]:
    """Every grammar of the folder that has a start rule; files of shared fragments have none."""
    return [path.stem for path in sorted((folder or grammar_folder()).glob("*.lark")) if start_rules(path)]


def start_rules(source: Path) -> list[str]:
    """The start rules of a grammar file that are compiled ahead."""
    text = source.read_text(encoding="utf-8")
    found = [DEFAULT_START] if _DEFAULT_RULE.search(text) else []
    for line in _STARTS.findall(text):
        found += [rule for rule in re.split(r"[ ,]+", line) if rule and rule not in found]
    return found


def compile_all(target: Path, folder: Path | None = None) -> list[Path]:
    """Compiles every grammar of ``folder`` (default: the package's own) into ``target``; returns the files."""
    source_folder = folder or grammar_folder()
    written = []
    for name in names(source_folder):
        source = source_folder / f"{name}.lark"
        for rule in start_rules(source):
            path = _compiled_path(target, name, rule)
            _write(path, _stamp(source, rule), compile_grammar(source, rule))
            written.append(path)
    return written


def compile_grammar(source: Path, start: str = DEFAULT_START) -> Lark:
    """Builds a parser from a grammar file, without comparing its terminals by ``interegular``."""
    from lark import Lark

    with _without_comparison():
        return Lark(
            source.read_text(encoding="utf-8"),
            start=start,
            source_path=str(source),
            import_paths=[str(source.parent)],
            **_OPTIONS,
        )


@contextmanager
def _without_comparison() -> Iterator[None]:
    """Makes lark believe that ``interegular`` is not installed.

    Where it is, lark compares every pair of terminals, those of its own grammar for grammars included, and no
    option leaves only that out. lark's other checks of the terminals stay.
    """
    from lark import lexer

    with _PATCHING:
        before = lexer.has_interegular
        lexer.has_interegular = False
        try:
            yield
        finally:
            lexer.has_interegular = before


def _compiled_folders() -> list[Path]:
    return [_PACKAGED / "compiled"] if _PACKAGED.is_dir() else [_build_folder()]


def _build_folder() -> Path:
    return _CHECKOUT / ".build" / "grammars"


def _compiled_path(folder: Path, name: str, rule: str) -> Path:
    return folder / (f"{name}.bin" if rule == DEFAULT_START else f"{name}.{rule}.bin")


def _stamp(source: Path, rule: str) -> bytes:
    """What a compiled file must match to be used, in hexadecimal digits."""
    import lark

    options = sorted(_OPTIONS.items())
    digest = hashlib.sha256(f"{_FORMAT} lark {lark.__version__} {rule} {options}".encode())
    for path in _with_imports(source):
        content = path.read_bytes()
        digest.update(f"\0{path.name} {len(content)}\0".encode() + content)
    return digest.hexdigest().encode()


def _with_imports(source: Path) -> list[Path]:
    """The grammar file and the files beside it that it imports, directly or not, in a fixed order."""
    found = [source]
    for path in found:
        for name in _IMPORT.findall(path.read_text(encoding="utf-8")):
            imported = source.parent / f"{name}.lark"
            if imported not in found:
                found.append(imported)
    return found


class _DataOnly(pickle.Unpickler):
    """Reads containers, texts and numbers; a pickle that names any class or function is refused."""

    def find_class(self, module: str, name: str, /) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a compiled grammar")


def _read(path: Path, stamp: bytes) -> dict[str, Any] | None:
    """The content of a compiled file, or None when it is missing, stale or damaged."""
    try:
        head, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head != stamp + b" " + _checksum(content):
        return None
    try:
        data: dict[str, Any] = _DataOnly(io.BytesIO(content)).load()
    except pickle.UnpicklingError:
        return None
    return data


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _write(path: Path, stamp: bytes, parser: Lark) -> None:
    """Writes a compiled file in one step, so that a reader never sees half of it."""
    content = _plain_pickle(parser)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(stamp + b" " + _checksum(content) + b"\n" + content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _try_write(path: Path, stamp: bytes, parser: Lark) -> None:
    """Keeps a compiled grammar for the next start; a checkout that cannot be written to goes without."""
    try:
        _write(path, stamp, parser)
    except OSError:
        pass


def _plain_pickle(parser: Lark) -> bytes:
    """What ``Lark.save`` writes, less the paths of this machine and with plain texts for lark's tokens."""
    buffer = io.BytesIO()
    parser.save(buffer)
    saved = pickle.loads(buffer.getvalue())
    saved["data"]["options"].update(source_path=None, import_paths=[])
    return pickle.dumps(_plain(saved), protocol=4)


def _plain(value: Any) -> Any:
    """The same value with every text a plain ``str``; lark leaves some of them as ``Token``."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(content) for key, content in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)(_plain(content) for content in value)
    return value
