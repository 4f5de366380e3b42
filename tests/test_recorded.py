"""Recordings of a real card: each comes out as what is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from analyzer.analysis import Options, analyze, gather
from analyzer.derive import derive
from analyzer.model import Report

FOLDER = Path(__file__).parent / "fixtures" / "recorded"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "expected.yaml").read_text(encoding="utf-8"))


def test_every_recording_is_listed() -> None:
    assert {path.name for path in FOLDER.glob("*.txt")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_recording(name: str) -> None:
    wanted = EXPECTED[name]
    report = analyze(Options((str(FOLDER / name),), jobs=1))
    real = [f for f in report.findings if f.severity in ("error", "warning")]
    if wanted.get("healthy"):
        assert [f.cause for f in real] == []
        return
    found = [f for f in real if f.role == "root"]
    assert found, f"no root; others: {[f.cause for f in report.findings]}"
    assert found[0].cause in {wanted["cause"], *wanted.get("accept", [])}
    if "rank" in wanted:
        assert found[0].where.rank == (wanted["rank"],)
    check_lines(report)


def check_lines(report: Report) -> None:
    """Every cited line exists and says what is cited."""
    for finding in report.findings:
        for cited in finding.evidence:
            lines = (Path(cited.file)).read_text(encoding="utf-8", errors="replace").split("\n")
            assert cited.text.strip(), "a cited line must be shown"
            assert cited.text[:40].strip() in lines[cited.line - 1]


@pytest.mark.parametrize("name", sorted(n for n, w in EXPECTED.items() if "mib_per_communicator" in w))
def test_communicator_memory_agrees_with_the_driver(name: str) -> None:
    low, high = EXPECTED[name]["mib_per_communicator"]
    evidence = gather([str(FOLDER / name)], 1)
    derive(evidence)
    (row,) = evidence.rows("comm_memory")
    each = row["bytes"] / row["communicators"] / (1 << 20)
    assert 0.95 * low <= each <= 1.05 * high
