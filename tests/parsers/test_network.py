"""The network around a job: ports of adapters, interfaces, tables of pairs, network tests, and NCCL's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import host_net, host_pair, ib_port, libfabric_log, nccl_log, perftest, system_fact
from analyzer.parsers.base import Format
from analyzer.parsers.gid import gid, gid_kind, gid_of_halves
from tests.parsers.golden import cases, check, rows_of, scan_bytes

MODULES = (ib_port, host_net, host_pair, system_fact, libfabric_log, perftest)
FORMATS: dict[str, Format] = {module.FORMAT.name: module.FORMAT for module in MODULES} | {
    "nccl-network": nccl_log.FORMAT
}
CASES = [(folder, path) for folder in FORMATS for path in cases(folder)]
WORDS = sorted({line for _, path in CASES for line in path.read_bytes().decode().split("\n")})


@pytest.mark.parametrize(("folder", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(folder: str, path: Path) -> None:
    check(path, [FORMATS[folder]])


@pytest.mark.parametrize("folder", FORMATS)
def test_every_format_has_the_five_kinds_of_samples(folder: str) -> None:
    names = {path.stem for path in cases(folder)}
    assert len(names) >= 5
    assert {"crlf-colours", "foreign-lines"} <= names
    assert any(name.startswith("cut-") for name in names)


@pytest.mark.parametrize("folder", FORMATS)
def test_line_ends_and_colours_change_nothing(folder: str) -> None:
    whole = next(p for p in cases(folder) if (p.parent / f"cut-{p.name}").exists())
    rows = [rows_of(scan_bytes(p.read_bytes(), [FORMATS[folder]])) for p in (whole, whole.parent / "crlf-colours.txt")]
    assert rows[0] == rows[1]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=60)), max_size=40), st.booleans())
def test_no_text_raises(lines: list[str], plans: bool) -> None:
    scan = scan_bytes("\n".join(lines).encode("utf-8", "replace"), list(FORMATS.values()), plans=plans)
    assert [p.what for p in scan.problems if "parser failed" in p.what] == []


@pytest.mark.parametrize("folder", FORMATS)
def test_a_block_does_not_stay_open_over_a_long_log(folder: str) -> None:
    log = "".join(f"epoch {n} step {n * 10} loss 2.{n} time 0:0{n % 10}\n" for n in range(200))
    trap = "  3   1.00   2.00   3.00\nnode1 node2 77\n64\n0x7fff\n"
    for path in cases(folder):
        data = path.read_bytes().rstrip() + b"\n"
        together = scan_bytes(data + (log + trap).encode(), [FORMATS[folder]])
        assert rows_of(together) == rows_of(scan_bytes(data, [FORMATS[folder]]))


def test_a_gid_reads_alike_in_all_spellings() -> None:
    assert gid_of_halves("80FE", "10000FEFFA1420E") == gid("fe80::e42:a1ff:fe00:1")
    assert gid_kind(gid("::ffff:192.0.2.5")) == "ipv4"
    assert gid_kind(gid("fe80::1")) == "link_local"
    assert gid_kind(gid("::")) == "empty"
    assert gid("not a gid") is None


def test_a_transcript_that_fades_into_prose_ends_once() -> None:
    prose = "".join(f"line {n} of a text about ulimit -l and /dev/infiniband in general\n" for n in range(60))
    scan = scan_bytes(f"$ ls /dev/infiniband\nuverbs0\n{prose}".encode(), [system_fact.FORMAT])
    assert [p.what for p in scan.problems if "parser failed" in p.what] == []
    assert [row["name"] for row in rows_of(scan)["system_fact"]] == ["/dev/infiniband/uverbs0"]
