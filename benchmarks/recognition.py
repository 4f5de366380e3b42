"""Prints how many of each format's own lines are recognised over a folder of captures.

usage: python benchmarks/recognition.py [FOLDER]      (default: ../shared/corpus)

A format's own lines are those it took and those that hold one of its unmistakable literals and that it could not read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from analyzer.parsers import DOCUMENTS, FORMATS
from analyzer.scan import ScanDriver
from analyzer.sources import expand, members

ROOT = Path(__file__).resolve().parent.parent
LEAST = 0.95


def main() -> int:
    """One line a format; exit code 1 when one stays below the least share."""
    folder = sys.argv[1] if len(sys.argv) > 1 else str(ROOT.parent / "shared" / "corpus")
    driver = ScanDriver(FORMATS, DOCUMENTS)
    scan = driver.scan
    jobs, problems = expand([folder])
    for job in jobs:
        for member in members(job, scan.problems.append):
            driver.member(member, len(scan.inputs), scan.problems.append)
    low = 0
    print(f"{'format':<22} {'recognised':>11} {'unread':>7} {'share':>8}   versions")
    for fmt in FORMATS:
        taken, unread = scan.recognised.get(fmt.name, [0, 0])
        share = taken / (taken + unread) if taken + unread else 1.0
        low += share < LEAST
        print(f"{fmt.name:<22} {taken:>11,} {unread:>7,} {share:>8.2%}   {fmt.versions}")
    broken = [p for p in scan.problems if "parser failed" in p.what]
    print(f"{len(scan.inputs)} files, {len(problems)} not opened, {len(broken)} parser failures")
    return 1 if low or broken else 0


if __name__ == "__main__":
    sys.exit(main())
