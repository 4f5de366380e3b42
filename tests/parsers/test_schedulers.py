"""Schedulers, containers, serving engines, shells and the sanitizer: what they say of an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import container_log, engine_log, kubernetes, sanitizer, shell_exit, slurm_log, slurm_table
from analyzer.parsers.base import Format
from tests.parsers.golden import cases, check, failures, rows_of, scan_bytes

MODULES = (slurm_log, slurm_table, kubernetes, container_log, engine_log, shell_exit, sanitizer)
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
    assert {"crlf-colours", "foreign-lines", "cut-in-the-middle"} <= names


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=60)), max_size=60), st.booleans())
def test_no_text_raises(lines: list[str], plans: bool) -> None:
    assert failures("\n".join(lines), FORMATS, plans=plans) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.data())
def test_plans_read_damaged_lines_like_lark(lines: list[str], data: st.DataObject) -> None:
    cut = [line[: data.draw(st.integers(0, len(line)))] if n % 3 == 0 else line for n, line in enumerate(lines)]
    text = "\n".join(cut)
    planned, plain = scan_bytes(text.encode(), FORMATS), scan_bytes(text.encode(), FORMATS, plans=False)
    assert planned.rows == plain.rows
    assert planned.recognised == plain.recognised


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_twice_in_one_file_gives_the_same_statements_twice(fmt: Format) -> None:
    for path in cases(fmt.name):
        if path.stem.startswith("cut-") or fmt is sanitizer.FORMAT:
            continue
        data = path.read_bytes().rstrip() + b"\n\n"
        once, twice = rows_of(scan_bytes(data, [fmt])), rows_of(scan_bytes(data + data, [fmt]))
        assert {table: len(rows) * 2 for table, rows in once.items()} == {t: len(rows) for t, rows in twice.items()}


def test_an_unmarked_cut_of_sacct_invents_no_state() -> None:
    path = next(path for path in cases("slurm-table") if path.stem == "sacct-and-scontrol")
    data = path.read_bytes()
    known = {(row.get("job"), row.get("step"), row["kind"]) for row in _events(data)}
    for end in range(0, len(data), 23):
        whole = data[:end].rpartition(b"\n")[0]
        assert {(row.get("job"), row.get("step"), row["kind"]) for row in _events(whole)} <= known


def _events(data: bytes) -> list[dict[str, object]]:
    return rows_of(scan_bytes(data, [slurm_table.FORMAT])).get("scheduler_event", [])
