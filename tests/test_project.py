"""The shape of the code: who may import whom, how long a module may be, what a start may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "analyzer"

# What each part may import of the package, besides itself. A part is a module or a folder of analyzer/.
VALUES = {"model", "errors", "schema", "units", "grammar_store"}
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "errors": set(),
    "schema": set(),
    "units": set(),
    "grammar_store": set(),
    "sources": {"model", "errors"},
    "gate": VALUES,
    "shapes": VALUES | {"gate"},
    "parsers": VALUES | {"sources", "gate", "shapes"},
    "tail": {"sources"},
    "scan": VALUES | {"sources", "gate", "shapes", "parsers", "tail"},
    "merge": VALUES | {"scan"},
    "parallel": VALUES | {"sources", "gate", "shapes", "parsers", "scan", "merge"},
    "reread": VALUES | {"sources", "scan"},
    "evidence": VALUES | {"sources", "gate", "shapes", "parsers", "scan"},
    "derive": VALUES | {"evidence"},
    "engine": VALUES | {"evidence"},
    "report": {"model"},
    "live": {"model", "errors"},
}
# These join the parts, so they may import everything.
JOIN = {"analysis", "assemble", "compare", "explain", "cli", "__main__"}

# Libraries that a part must not load.
NEVER: dict[str, set[str]] = {
    "sources": {"pandas", "numpy", "lark", "sqlite3"},
    "gate": {"pandas", "numpy", "lark"},
    "parsers": {"pandas", "numpy", "sqlite3"},
    "report": {"pandas", "numpy", "lark", "sqlite3"},
}

MAX_LINES = 400
LONG = {
    "schema.py": "the list of all tables, one column a line",
    "parsers/nccl_heads.py": "a list made from a catalogue",
}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(source: str, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a module of ``package`` imports, also late and for types only."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join((*base, *filter(None, [node.module])))
            if name == "analyzer":
                for alias in node.names:
                    yield node.lineno, f"analyzer.{alias.name}"
            else:
                yield node.lineno, name


def offences(path: Path, source: str) -> list[str]:
    part = part_of(path)
    if part in JOIN or part == "__init__":
        return []
    package = ("analyzer", *path.relative_to(PACKAGE).parts[:-1])
    found = []
    for line, name in imported(source, package):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top == "analyzer":
            if target not in MAY_IMPORT[part] | {part, "__version__"}:
                found.append(f"{path.relative_to(ROOT)}:{line}: {part} must not import {target}")
        elif top in NEVER.get(part, set()):
            found.append(f"{path.relative_to(ROOT)}:{line}: {part} must not import {top}")
    return found


def test_every_part_has_a_place() -> None:
    parts = {part_of(path) for path in modules()} - {"__init__"}
    assert parts <= MAY_IMPORT.keys() | JOIN, "say in MAY_IMPORT what the new part may import"


def test_imports_point_one_way() -> None:
    found = [line for path in modules() for line in offences(path, path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


def test_the_rules_have_no_ring() -> None:
    seen: set[str] = set()
    while ready := [part for part, needs in MAY_IMPORT.items() if part not in seen and needs <= seen]:
        seen.update(ready)
    assert seen == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("parsers/x.py", "import pandas as pd"),
        ("parsers/x.py", "def f():\n    from analyzer.engine import query"),
        ("parsers/x.py", "from ..report import text"),
        ("parsers/x.py", "from analyzer import evidence"),
        ("sources/x.py", "import analyzer.parsers.base"),
        ("sources/archive/x.py", "from ... import schema"),
        ("engine/x.py", "from analyzer.derive import ledger"),
        ("report/x.py", "from analyzer.schema import TABLES"),
    ],
)
def test_a_wrong_import_is_found(file: str, source: str) -> None:
    assert offences(PACKAGE / file, source)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("parsers/x.py", "from . import base\nfrom .base import Line\nfrom ..model import Problem\nimport re"),
        ("report/x.py", "from analyzer import __version__\nfrom analyzer.report.text import render"),
        ("cli.py", "import pandas\nfrom analyzer.report import text"),
    ],
)
def test_a_right_import_is_not(file: str, source: str) -> None:
    assert not offences(PACKAGE / file, source)


def test_modules_stay_short() -> None:
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_bytes().splitlines()) for path in modules()}
    long = {name: lines for name, lines in lengths.items() if lines > MAX_LINES}
    assert long.keys() == LONG.keys(), f"split, or give a reason in LONG: {long}"


def test_names_say_something() -> None:
    paths = [path for top in ("analyzer", "tests", "benchmarks", "scripts") for path in (ROOT / top).rglob("*.py")]
    assert not [path for path in paths if path.stem.lstrip("_") in VAGUE or path.parent.name in VAGUE]


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['crashcart', '--help']\n"
        "from analyzer.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as stop:\n"
        "    assert not stop.code, stop.code\n"
        "print('loaded:', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    shown, _, loaded = done.stdout.rpartition("loaded:")
    assert "analyze" in shown
    assert not {"pandas", "numpy", "lark", "jinja2", "hyperscan"} & set(loaded.split())
