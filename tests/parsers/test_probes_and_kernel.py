"""Probe tools, the kernel log and the state of a host: p2pBandwidthLatencyTest, nccl-tests, dmesg, ps, free, lspci."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import host_memory, kernel_log, kernel_oom, lspci_tree, nccl_tests, p2p_test, ps_table
from analyzer.parsers.base import Format
from tests.parsers.golden import FIXTURES, cases, check, failures, rows_of, scan_bytes

MODULES = (p2p_test, nccl_tests, kernel_log, kernel_oom, ps_table, host_memory, lspci_tree)
FORMATS = tuple(module.FORMAT for module in MODULES)
CASES = [(fmt, path) for fmt in FORMATS for path in cases(fmt.name)]
WORDS = sorted({line for _, path in CASES for line in path.read_bytes().decode().split("\n")})


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(fmt: Format, path: Path) -> None:
    check(path, [fmt])


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_every_format_has_the_five_kinds_of_samples(fmt: Format) -> None:
    names = {path.stem for path in cases(fmt.name)}
    assert len(names) >= 5
    assert {"crlf-colours"} <= names
    assert any(name.startswith("cut-") for name in names)
    assert names & {"foreign-lines", "rows-broken-by-nccl"}


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_a_sample_is_read_alike_beside_the_other_formats(fmt: Format, path: Path) -> None:
    data = path.read_bytes()
    together, alone = scan_bytes(data, FORMATS), scan_bytes(data, [fmt])
    assert together.recognised[fmt.name] == alone.recognised[fmt.name]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=60)), max_size=60), st.booleans())
def test_no_text_raises(lines: list[str], plans: bool) -> None:
    assert failures("\n".join(lines), FORMATS, plans=plans) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.data())
def test_plans_read_damaged_lines_like_lark(lines: list[str], data: st.DataObject) -> None:
    cut = [line[: data.draw(st.integers(0, len(line)))] if n % 3 == 0 else line for n, line in enumerate(lines)]
    text = "\n".join(cut)
    planned, plain = scan_bytes(text.encode(), FORMATS), scan_bytes(text.encode(), FORMATS, plans=False)
    assert planned.rows == plain.rows
    assert planned.recognised == plain.recognised
    assert failures(text, FORMATS) == []


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_a_block_does_not_stay_open_over_a_long_log(fmt: Format) -> None:
    """After each sample comes an unrelated log; rows in it that only look alike are nobody's."""
    log = "".join(f"epoch {n} step {n * 10} loss 2.{n} time 0:0{n % 10}\n" for n in range(200))
    trap = "Mem:  12  13  14\n  3   1.00   2.00   3.00\n  71 1 Sl 0:01 python\n 8 2 float sum -1 1 2 3 0 1 2 3 0\n"
    for path in cases(fmt.name):
        data = path.read_bytes().rstrip() + b"\n"
        assert rows_of(scan_bytes(data + (log + trap).encode(), [fmt])) == rows_of(scan_bytes(data, [fmt]))


def test_a_cut_matrix_loses_figures_but_changes_none() -> None:
    data = (FIXTURES / "p2p-test" / "a100-four.txt").read_bytes()
    whole = [row for row in rows_of(scan_bytes(data, FORMATS))["pair_measure"] if row["metric"] != "connectivity"]
    for end in range(0, len(data), 31):
        for row in rows_of(scan_bytes(data[:end], FORMATS)).get("pair_measure", []):
            assert row in whole or row["metric"] == "connectivity"


def test_a_cut_table_of_nccl_tests_changes_no_bandwidth() -> None:
    data = (FIXTURES / "nccl-tests" / "all-reduce-four.txt").read_bytes()
    whole = {row["size_bytes"]: row for row in rows_of(scan_bytes(data, FORMATS))["bench_row"]}
    for end in range(0, len(data), 17):
        for row in rows_of(scan_bytes(data[:end], FORMATS)).get("bench_row", []):
            known = whole[row["size_bytes"]]
            assert row["busbw_gbps"] == known["busbw_gbps"]
            assert row.get("in_place_busbw_gbps", known["in_place_busbw_gbps"]) == known["in_place_busbw_gbps"]


@pytest.mark.parametrize("name", ["h200-faults", "switch-dies", "stamps-of-every-kind"])
def test_a_cut_kernel_log_invents_no_fault(name: str) -> None:
    data = (FIXTURES / "kernel-log" / f"{name}.txt").read_bytes()
    known = {(row["bus_id"], row["code"]) for row in rows_of(scan_bytes(data, FORMATS))["xid"]}
    pids = {row.get("pid") for row in rows_of(scan_bytes(data, FORMATS))["xid"]} | {None}
    for end in range(0, len(data), 7):
        for row in rows_of(scan_bytes(data[:end], FORMATS)).get("xid", []):
            assert (row["bus_id"], row["code"]) in known
            assert row.get("pid") in pids


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_twice_in_one_file_gives_every_row_twice(fmt: Format) -> None:
    for path in cases(fmt.name):
        if path.stem.startswith("cut-"):
            continue
        data = path.read_bytes().rstrip() + b"\n\n"
        once, twice = rows_of(scan_bytes(data, [fmt])), rows_of(scan_bytes(data + data, [fmt]))
        assert {table: len(rows) * 2 for table, rows in once.items()} == {t: len(rows) for t, rows in twice.items()}
