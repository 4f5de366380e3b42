"""Texts about the driver stack and the host system: modules, libraries, packages, limits, messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import (
    driver_stack,
    filesystem,
    host_facts,
    host_limits,
    library_path,
    package_list,
    package_log,
    system_message,
)
from analyzer.parsers.base import Format
from tests.parsers.golden import cases, check, rows_of, scan_bytes

FORMATS = tuple(
    module.FORMAT
    for module in (
        driver_stack,
        filesystem,
        host_facts,
        host_limits,
        library_path,
        package_list,
        package_log,
        system_message,
    )
)
CASES = [(fmt, path) for fmt in FORMATS for path in cases(fmt.name)]
WORDS = sorted({line for _, path in CASES for line in path.read_text(encoding="utf-8").splitlines()})


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(fmt: Format, path: Path) -> None:
    check(path, [fmt])


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_every_format_has_its_five_samples(fmt: Format) -> None:
    assert {"cut", "foreign-lines", "crlf-colours"} < {path.stem for path in cases(fmt.name)}
    assert len(cases(fmt.name)) >= 5


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=60)), max_size=60), st.booleans())
def test_no_text_raises(lines: list[str], plans: bool) -> None:
    scan = scan_bytes("\n".join(lines).encode("utf-8", "surrogatepass"), FORMATS, plans=plans)
    assert not [problem for problem in scan.problems if "parser failed" in problem.what]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.data())
def test_plans_read_damaged_lines_like_lark(lines: list[str], data: st.DataObject) -> None:
    cut = [
        line[: data.draw(st.integers(0, len(line)))] if number % 3 == 0 else line for number, line in enumerate(lines)
    ]
    text = "\n".join(cut).encode()
    assert scan_bytes(text, FORMATS).rows == scan_bytes(text, FORMATS, plans=False).rows


def test_a_module_that_was_looked_for_and_not_listed_is_not_loaded() -> None:
    listed = "$ lsmod | grep nvidia_uvm\nnvidia_uvm 1036288 0\n$ uptime\n"
    empty = "$ lsmod | grep nvidia_uvm\n$ uptime\n"
    found = [rows_of(scan_bytes(text.encode(), FORMATS))["module"] for text in (listed, empty)]
    assert [row[0]["loaded"] for row in found] == [True, False]


def test_nccl_lines_about_missing_plugins_are_no_messages() -> None:
    line = "node-a:1:2 [0] NCCL INFO NET/Plugin: libnccl-net.so: cannot open shared object file: No such file\n"
    assert "system_message" not in rows_of(scan_bytes(line.encode(), FORMATS))
