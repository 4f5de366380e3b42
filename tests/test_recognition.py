"""Over the captures each format recognises its own lines, and nothing fails."""

from __future__ import annotations

from pathlib import Path

from analyzer.parsers import DOCUMENTS, FORMATS
from analyzer.scan import ScanDriver
from analyzer.sources import expand, members


def test_own_lines_are_recognised(shared: Path) -> None:
    driver = ScanDriver(FORMATS, DOCUMENTS)
    scan = driver.scan
    for job in expand([str(shared / "corpus"), str(shared / "incidents")])[0]:
        for member in members(job, scan.problems.append):
            driver.member(member, len(scan.inputs), scan.problems.append)
    assert len(scan.inputs) > 500
    assert [p for p in scan.problems if "parser failed" in p.what] == []
    for fmt in FORMATS:
        taken, unread = scan.recognised.get(fmt.name, [0, 0])
        assert taken >= 0.95 * (taken + unread), fmt.name
