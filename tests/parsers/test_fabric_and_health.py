"""Fabric manager, services, power, monitors and health tools: nvidia-smi dmon, DCGM, nvbandwidth, gpu-burn."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import (
    dcgm_diag,
    fabric_log,
    gpu_burn,
    nvbandwidth,
    power_supply,
    service_state,
    smi_monitor,
)
from analyzer.parsers.base import Format
from analyzer.parsers.fabric_texts import fabric_message
from analyzer.parsers.xid_text import sxid_details, xid_details
from tests.parsers.golden import cases, check, failures, rows_of, scan_bytes

MODULES = (fabric_log, service_state, smi_monitor, power_supply, dcgm_diag, nvbandwidth, gpu_burn)
FORMATS: tuple[Format, ...] = tuple(module.FORMAT for module in MODULES)
CASES = [(fmt, path) for fmt in FORMATS for path in cases(fmt.name)]
WORDS = sorted({line for _, path in CASES for line in path.read_bytes().decode().split("\n")})


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(fmt: Format, path: Path) -> None:
    check(path, [fmt])


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_every_format_has_the_five_kinds_of_samples(fmt: Format) -> None:
    names = {path.stem for path in cases(fmt.name)}
    assert {"complete", "other-version", "cut-in-the-middle", "foreign-lines", "crlf-colours"} <= names


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_line_ends_and_colours_change_nothing(fmt: Format) -> None:
    plain, coloured = (
        rows_of(scan_bytes(path.read_bytes(), [fmt]))
        for path in (next(p for p in cases(fmt.name) if p.stem == stem) for stem in ("complete", "crlf-colours"))
    )
    assert plain == coloured


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=60)), max_size=60), st.booleans())
def test_no_text_raises(lines: list[str], plans: bool) -> None:
    assert failures("\n".join(lines), FORMATS, plans=plans) == []


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.data())
def test_plans_read_damaged_lines_like_lark(lines: list[str], data: st.DataObject) -> None:
    cut = [line[: data.draw(st.integers(0, len(line)))] if n % 3 == 0 else line for n, line in enumerate(lines)]
    text = "\n".join(cut).encode()
    assert scan_bytes(text, FORMATS).rows == scan_bytes(text, FORMATS, plans=False).rows


@given(st.integers(0, 200), st.text(max_size=120))
def test_no_text_of_the_driver_raises(code: int, text: str) -> None:
    xid_details(code, text)
    sxid_details(text)
    fabric_message(text)


def test_the_link_of_nvlink_5_is_read_with_its_unit() -> None:
    text = "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x0 0x0 0x0 0x0 0x0)"
    assert xid_details(149, text) == {"unit": "NETIR_LINK_EVT", "severity": "Fatal", "link": 1}
    assert "link" not in xid_details(145, "RLW_REMAP Nonfatal XC0 i0 Link -1 (0x0)")


def test_data_of_a_switch_error_is_no_event() -> None:
    assert sxid_details("Data {0x50610002, 0x10100030}") is None
    assert sxid_details("Severity 1 Engine instance 60 Sub-engine instance 00") is None
