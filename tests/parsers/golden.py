"""Compares what a format reads from a sample with the frozen rows beside it.

A case is ``<case>.txt`` with ``<case>.expected.json``: rows per table without references and streams, the lines
that each format recognised and could not read. ``UPDATE_GOLDENS=1`` rewrites the expectations: look at them.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

from analyzer.parsers.base import Format
from analyzer.scan import Scan, ScanDriver
from analyzer.schema import TABLES
from analyzer.sources import Member

_HIDDEN = frozenset({"ref", "stream"})
FIXTURES = Path(__file__).parent.parent / "fixtures" / "formats"


def scan_bytes(data: bytes, formats: Sequence[Format], *, plans: bool = True, name: str = "sample") -> Scan:
    """Scans the bytes as one input."""
    driver = ScanDriver(formats, plans=plans)
    driver.member(Member(name, io.BytesIO(data)), 0, driver.scan.problems.append)
    return driver.scan


def failures(text: str, formats: Sequence[Format], *, plans: bool = True) -> list[str]:
    """The problems of parsers that raised on the text."""
    scan = scan_bytes(text.encode("utf-8", "replace"), formats, plans=plans)
    return [problem.what for problem in scan.problems if "parser failed" in problem.what]


def rows_of(scan: Scan) -> dict[str, list[dict[str, object]]]:
    """The rows of every table as mappings without the columns that are NULL."""
    found: dict[str, list[dict[str, object]]] = {}
    for table, rows in sorted(scan.rows.items()):
        if table not in ("stream", "last_line"):
            names = TABLES[table].names
            found[table] = [
                {n: v for n, v in zip(names, row, strict=True) if v is not None and n not in _HIDDEN} for row in rows
            ]
    return found


def check(path: Path, formats: Sequence[Format]) -> None:
    """Reads one sample with shape plans and without; both must give the frozen rows."""
    data = path.read_bytes()
    scan = scan_bytes(data, formats)
    plain = scan_bytes(data, formats, plans=False)
    assert scan.rows == plain.rows
    assert scan.recognised == plain.recognised
    lines = {name: {"recognised": a, "unread": b} for name, (a, b) in sorted(scan.recognised.items())}
    seen = {"lines": lines, "rows": rows_of(scan)}
    expected = path.with_suffix(".expected.json")
    if os.environ.get("UPDATE_GOLDENS"):
        expected.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert seen == json.loads(expected.read_text(encoding="utf-8"))


def cases(format_name: str) -> list[Path]:
    """The samples of a format."""
    return sorted((FIXTURES / format_name).glob("*.txt"))
