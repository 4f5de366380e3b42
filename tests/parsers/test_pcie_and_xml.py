"""lspci, XML documents, peer access and the settings of a host."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import (
    host_setup,
    hwloc_xml,
    lspci_detail,
    nccl_xml,
    simple_p2p,
    smi_p2p,
    smi_query,
    smi_xml,
)
from analyzer.parsers.base import Format
from analyzer.parsers.cpu_list import from_mask
from analyzer.parsers.smi_xml_names import text_path
from tests.parsers.golden import FIXTURES, cases, check, rows_of, scan_bytes

FORMATS = tuple(
    module.FORMAT for module in (lspci_detail, host_setup, smi_p2p, simple_p2p, smi_xml, nccl_xml, hwloc_xml)
)
CASES = [(fmt, path) for fmt in FORMATS for path in cases(fmt.name)]
WORDS = sorted({line for _, path in CASES for line in path.read_text(encoding="utf-8").splitlines()})


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(fmt: Format, path: Path) -> None:
    check(path, [fmt])


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_a_sample_is_read_by_its_own_format(fmt: Format) -> None:
    for path in cases(fmt.name):
        scan = scan_bytes(path.read_bytes(), FORMATS)
        alone = scan_bytes(path.read_bytes(), [fmt])
        assert scan.recognised.get(fmt.name) == alone.recognised.get(fmt.name)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=60)), max_size=60), st.booleans())
def test_no_text_raises(lines: list[str], plans: bool) -> None:
    scan = scan_bytes("\n".join(lines).encode("utf-8", "surrogatepass"), FORMATS, plans=plans)
    assert not [problem for problem in scan.problems if "parser failed" in problem.what]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_plans_read_mixed_lines_like_lark(lines: list[str]) -> None:
    text = "\n".join(lines).encode()
    assert scan_bytes(text, FORMATS).rows == scan_bytes(text, FORMATS, plans=False).rows


def test_blocks_close_before_a_long_log() -> None:
    """After a document or a device a training log is not walked line by line."""
    for _, path in CASES:
        tail = b"".join(b"step %d loss 2.31 lr 0.0003\n" % number for number in range(3000))
        scan = scan_bytes(path.read_bytes() + b"\n" + tail, FORMATS)
        assert sum(a for a, _ in scan.recognised.values()) < 1000


def test_xml_gives_the_names_of_the_text_dump() -> None:
    """Every health field of the XML samples is one that the text dump has, too."""
    text = (FIXTURES / "nvidia-smi-q").glob("*.txt")
    known = {
        row["field"]
        for path in text
        for row in rows_of(scan_bytes(path.read_bytes(), [smi_query.FORMAT])).get("gpu_health", [])
    }
    for path in cases("nvidia-smi-xml"):
        for row in rows_of(scan_bytes(path.read_bytes(), [smi_xml.FORMAT])).get("gpu_health", []):
            assert row["field"] in known


def test_cutting_a_document_changes_no_figure() -> None:
    data = (FIXTURES / "nvidia-smi-xml" / "two-cards-with-a-slice.txt").read_bytes()
    whole = rows_of(scan_bytes(data, [smi_xml.FORMAT]))["gpu_health"]
    known = {tuple(sorted((k, str(v)) for k, v in row.items() if k != "gpu")) for row in whole}
    for end in range(0, len(data), 131):
        for row in rows_of(scan_bytes(data[:end], [smi_xml.FORMAT])).get("gpu_health", []):
            assert tuple(sorted((k, str(v)) for k, v in row.items() if k != "gpu")) in known


def test_an_entity_is_told_and_not_expanded() -> None:
    scan = scan_bytes((FIXTURES / "nvidia-smi-xml" / "entity-refused.txt").read_bytes(), [smi_xml.FORMAT])
    assert ["undefined entity" in problem.what for problem in scan.problems] == [True]
    assert "name" not in rows_of(scan)["gpu_device"][0]


def test_a_growing_entity_inside_is_refused() -> None:
    bomb = b'<nvidia_smi_log>\n<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<gpu>&b;</gpu></nvidia_smi_log>\n'
    assert scan_bytes(bomb, [smi_xml.FORMAT]).problems


@pytest.mark.parametrize(
    ("tags", "path"),
    [
        (["uuid"], "gpu_uuid"),
        (["ecc_errors", "volatile", "sram_uncorrectable_secded"], "ecc_errors/volatile/sram_uncorrectable_sec-ded"),
        (["retired_pages", "double_bit_retirement", "retired_count"], "retired_pages/double_bit_ecc"),
        (["fabric", "cliqueId"], "fabric/cliqueid"),
        (["temperature", "gpu_temp_max_gpu_tlimit_threshold"], "temperature/gpu_max_operating_t.limit_temp"),
        (
            ["clocks_event_reasons_counters", "clocks_event_reasons_counters_hw_power_brake"],
            "clocks_event_reasons_counters/hw_power_braking",
        ),
    ],
)
def test_names(tags: list[str], path: str) -> None:
    assert "/".join(text_path(tags)) == path


@pytest.mark.parametrize(
    ("mask", "cpus"), [("0xff00", "8-15"), ("1,00000000", "32"), ("0x5", "0,2"), ("", None), ("xyz", None)]
)
def test_masks(mask: str, cpus: str | None) -> None:
    assert from_mask(mask) == cpus
