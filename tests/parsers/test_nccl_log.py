"""The NCCL debug log: frozen rows of complete, cut, interleaved, old and coloured samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers.nccl_log import FORMAT
from tests.parsers.golden import cases, check, scan_bytes

SAMPLES = cases("nccl-log")


def test_there_are_samples() -> None:
    assert {"complete", "cut", "foreign-lines", "older-versions", "crlf-ansi", "glued"} <= {p.stem for p in SAMPLES}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_sample(path: Path) -> None:
    check(path, [FORMAT])


def test_colours_and_line_ends_change_nothing() -> None:
    plain, coloured = (
        scan_bytes((SAMPLES[0].parent / name).read_bytes(), [FORMAT]) for name in ("older-versions.txt", "crlf-ansi.txt")
    )
    assert plain.rows == coloured.rows


def test_a_buffer_with_two_lines_keeps_one_pointer() -> None:
    scan = scan_bytes((SAMPLES[0].parent / "older-versions.txt").read_bytes(), [FORMAT])
    assert len({row[-2] for row in scan.rows["comm_alloc"]}) == 1


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    scan = scan_bytes(f"node-a:1:2 [0] NCCL INFO {text}\n".encode("utf-8", "replace"), [FORMAT])
    assert not [p for p in scan.problems if "parser failed" in p.what]
