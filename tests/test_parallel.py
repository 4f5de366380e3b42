"""Several processes read the same as one: by file, and one large file in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import parallel
from analyzer.parallel import scan_jobs
from analyzer.sources import cut_points, expand

INCIDENT = Path(__file__).parent / "fixtures" / "incidents" / "four-cards-drop-out"
# Repeated connections are folded within a part, collective calls per part.
FOLDED = {"channel", "ring_order", "collective_call"}


def large_file(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.log"
    lines = [f"[rank{n % 4}]: progress line {n} of a long run without anything of note\n" for n in range(60_000)]
    log = (INCIDENT / "rank0.log").read_text(encoding="utf-8")
    start = log.partition("[rank0]:[E")[0]  # the failure stands once: one that repeats is told once in a stream
    path.write_text(start + "".join(lines) + log, encoding="utf-8")
    return path


def test_one_file_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "PARALLEL_BYTES", 2_000_000)
    jobs, _ = expand([str(large_file(tmp_path))])
    assert len(cut_points(jobs[0], 2, lambda data: True)) == 1
    one, two = scan_jobs(jobs, 1), scan_jobs(jobs, 2)
    assert one.inputs == two.inputs
    assert one.rows.keys() == two.rows.keys()
    for table in one.rows.keys() - FOLDED:
        assert sorted(map(repr, one.rows[table])) == sorted(map(repr, two.rows[table])), table


def test_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "PARALLEL_BYTES", 1_000_000)
    jobs, _ = expand([str(INCIDENT)])
    one, two = scan_jobs(jobs, 1), scan_jobs(jobs, 2)
    assert one.inputs == two.inputs
    assert one.rows == two.rows
    assert one.problems == two.problems


def test_a_place_that_needs_its_neighbours_is_not_cut(tmp_path: Path) -> None:
    jobs, _ = expand([str(large_file(tmp_path))])
    assert cut_points(jobs[0], 2, lambda data: False) == []
