"""The texts of nvidia-smi: dump, table, topology, NVLink state, CSV."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import smi_csv, smi_nvlink, smi_query, smi_table, smi_topo
from analyzer.parsers.base import Format
from tests.parsers.golden import FIXTURES, cases, check, rows_of, scan_bytes

FORMATS = tuple(module.FORMAT for module in (smi_query, smi_table, smi_topo, smi_nvlink, smi_csv))
CASES = [(fmt, path) for fmt in FORMATS for path in cases(fmt.name)]
WORDS = sorted({line for _, path in CASES for line in path.read_text(encoding="utf-8").splitlines()})


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(fmt: Format, path: Path) -> None:
    check(path, [fmt])


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_every_sample_is_read_only_by_its_own_format(fmt: Format) -> None:
    """A dump, a table and a matrix in one folder must not read each other's lines as their own."""
    for other, path in CASES:
        scan = scan_bytes(path.read_bytes(), FORMATS)
        alone = scan_bytes(path.read_bytes(), [other])
        assert scan.recognised.get(other.name) == alone.recognised.get(other.name)
        assert scan.recognised.get(fmt.name, [0, 0])[1] == alone.recognised.get(fmt.name, [0, 0])[1]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=60)), max_size=60), st.booleans())
def test_no_text_raises(lines: list[str], plans: bool) -> None:
    scan_bytes("\n".join(lines).encode("utf-8", "surrogatepass"), FORMATS, plans=plans)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.data())
def test_plans_read_damaged_lines_like_lark(lines: list[str], data: st.DataObject) -> None:
    cut = [
        line[: data.draw(st.integers(0, len(line)))] if number % 3 == 0 else line for number, line in enumerate(lines)
    ]
    text = "\n".join(cut).encode()
    assert scan_bytes(text, FORMATS).rows == scan_bytes(text, FORMATS, plans=False).rows


def test_cutting_a_dump_changes_no_figure() -> None:
    """Each prefix of a dump gives a part of the rows of the whole one, apart from what the index rests on."""
    data = (FIXTURES / "nvidia-smi-q" / "two-dumps-appended.txt").read_bytes()
    whole = rows_of(scan_bytes(data, FORMATS))
    known = {tuple(sorted((k, str(v)) for k, v in row.items() if k != "gpu")) for row in whole["gpu_health"]}
    for end in range(0, len(data), 97):
        cut = data[:end].rpartition(b"\n")[0]
        for row in rows_of(scan_bytes(cut, FORMATS)).get("gpu_health", []):
            assert tuple(sorted((k, str(v)) for k, v in row.items() if k != "gpu")) in known


def test_blocks_close_before_a_long_log() -> None:
    """After a dump or a table a training log is not walked line by line."""
    for _, path in CASES:
        tail = b"".join(b"step %d loss 2.31 lr 0.0003\n" % number for number in range(3000))
        scan = scan_bytes(path.read_bytes() + b"\n" + tail, FORMATS)
        assert sum(a for a, _ in scan.recognised.values()) < 1000


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_long_lines_take_linear_time(fmt: Format) -> None:
    """No terminal backtracks over a long run of blanks, words or cells."""
    heads = {*fmt.literals, "| N/A 40C ", "|    0   N/A  N/A  12 C ", "    Key ", "GPU 0: ", "GPU0 X ", "a, b"}
    opener = next(path for path in cases(fmt.name)).read_bytes()
    began = time.monotonic()
    for head in heads:
        for body in (" " * 20_000, "a " * 10_000, "a@a/" * 5_000, ", a" * 7_000, "1" * 20_000, " | /" * 5_000):
            scan_bytes(opener + f"\n{head}{body}x".encode(), [fmt])
    assert time.monotonic() - began < 20
