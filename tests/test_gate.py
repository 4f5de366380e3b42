"""The gate finds the same with and without hyperscan, and shape plans read the same as lark."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.gate import PureScanner, make_scanner
from analyzer.parsers import DOCUMENTS, FORMATS
from analyzer.scan import Scan, ScanDriver
from analyzer.sources import expand, members

FIXTURES = Path(__file__).parent / "fixtures"
LITERALS = tuple(dict.fromkeys(text.encode() for fmt in FORMATS for text in fmt.literals))


@given(st.lists(st.sampled_from([*LITERALS, b" ", b"\n", b"x", b"NCCL", b"Xi", b"\xff\x00"]), max_size=40))
def test_pure_scanner_equals_hyperscan(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert sorted(make_scanner(LITERALS).scan(data)) == sorted(PureScanner(LITERALS).scan(data))


def scan(paths: list[str], *, plans: bool) -> Scan:
    driver = ScanDriver(FORMATS, DOCUMENTS, plans=plans)
    for job in expand(paths)[0]:
        for member in members(job, driver.scan.problems.append):
            driver.member(member, len(driver.scan.inputs), driver.scan.problems.append)
    return driver.scan


def assert_same(paths: list[str]) -> None:
    fast, slow = scan(paths, plans=True), scan(paths, plans=False)
    assert fast.rows.keys() == slow.rows.keys()
    for table in slow.rows:
        different = itertools.islice(
            ((a, b) for a, b in zip(fast.rows[table], slow.rows[table], strict=True) if a != b), 3
        )
        assert list(different) == [], table
    assert fast.recognised == slow.recognised
    assert fast.problems == slow.problems


def test_plans_equal_lark_on_recordings() -> None:
    paths = [p for p in sorted((FIXTURES / "recorded").glob("*.txt")) if p.stat().st_size < 200_000]
    assert_same([str(p) for p in paths])


@pytest.mark.parametrize(
    "name", ["ring-over-host-memory", "switch-uplink-lost", "host-memory-exhausted", "one-slow-pcie-pair"]
)
def test_plans_equal_lark_on_incidents(name: str) -> None:
    assert_same([str(FIXTURES / "incidents" / name)])


@pytest.mark.parametrize(
    "kind",
    [
        "nccl",
        "nvidia-smi-q",
        "nvidia-smi-table",
        "topo",
        "nvlink",
        "p2p",
        "nccl-tests",
        "kernel",
        "torch",
        "lspci",
        "slurm",
    ],
)
def test_plans_equal_lark_on_captures(shared: Path, kind: str, tmp_path: Path) -> None:
    """Every capture of the kind through both ways; of very large ones the first 400 kB."""
    for path in sorted((shared / "corpus" / kind).iterdir()):
        head = tmp_path / path.name
        head.write_bytes(path.read_bytes()[:400_000])
        assert_same([str(head)])
