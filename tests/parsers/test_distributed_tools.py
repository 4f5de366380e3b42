"""Stacks, ncclras, launchers, sockets, rendezvous, sizes of tensors, and flight-recorder dumps."""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import (
    flight_recorder,
    nccl_ras,
    parallel_runtime,
    rendezvous,
    socket_table,
    stack_dump,
    tensor_shape,
)
from analyzer.parsers.base import DocumentError, Format
from analyzer.parsers.plain_pickle import PickleRefused, load_plain
from analyzer.scan import ScanDriver
from analyzer.sources import Member
from tests.parsers.golden import cases, check, rows_of, scan_bytes

MODULES = (nccl_ras, parallel_runtime, rendezvous, socket_table, stack_dump, tensor_shape)
FORMATS = tuple(module.FORMAT for module in MODULES)
CASES = [(fmt, path) for fmt in FORMATS for path in cases(fmt.name)]
WORDS = sorted({line for _, path in CASES for line in path.read_text(encoding="utf-8").splitlines()})
CUTS = sorted({word[:end] for word in WORDS for end in range(0, len(word), 7)})


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(fmt: Format, path: Path) -> None:
    check(path, [fmt])


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_every_format_has_the_usual_samples(fmt: Format) -> None:
    assert {"cut", "interleaved", "crlf-ansi"} <= {path.stem for path in cases(fmt.name)}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(CUTS), st.text(max_size=60)), max_size=25))
def test_no_text_raises_and_plans_change_nothing(lines: list[str]) -> None:
    data = "\n".join(lines).encode("utf-8", "replace")
    scan = scan_bytes(data, FORMATS)
    assert scan.rows == scan_bytes(data, FORMATS, plans=False).rows
    assert not [problem for problem in scan.problems if "parser failed" in problem.what]


def entry(seq: int, **values: object) -> dict[str, object]:
    return {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": seq,
        "profiling_name": "nccl:all_reduce",
        "input_sizes": [[4, 2]],
        "output_sizes": [[4, 2]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "state": "completed",
        "time_created_ns": 1_700_000_000_000_000_000,
        "frames": [
            {"name": "all_reduce", "filename": "/x/site-packages/torch/distributed/distributed_c10d.py", "line": 9},
            {"name": "step", "filename": "/job/train.py", "line": 7},
        ],
    } | values


def dump(*entries: dict[str, object]) -> dict[str, object]:
    return {
        "version": "2.4",
        "nccl_version": "2.21.5",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "pg_status": {"0": {"last_enqueued_collective": "2", "last_completed_collective": 1}},
        "entries": list(entries),
    }


def read(data: bytes, name: str = "nccl_trace_rank_1") -> tuple[dict[str, list[dict[str, object]]], list[str]]:
    driver = ScanDriver(FORMATS[:1], (flight_recorder.DOCUMENT,))
    driver.member(Member(name, io.BytesIO(data)), 0, driver.scan.problems.append)
    return rows_of(driver.scan), [problem.what for problem in driver.scan.problems]


@pytest.mark.parametrize("form", ["json", "pickle", "list", "by-rank", "entries"])
def test_a_dump_in_each_form(form: str) -> None:
    value = dump(entry(1), entry(2, state="scheduled", profiling_name="nccl:all_gather"))
    forms: dict[str, bytes] = {
        "json": json.dumps(value, indent=1).encode(),
        "pickle": pickle.dumps(value, protocol=2),
        "list": json.dumps([value]).encode(),
        "by-rank": json.dumps({"rank_1": value}).encode(),
        "entries": pickle.dumps(value["entries"], protocol=2),
    }
    rows, problems = read(forms[form])
    assert problems == []
    first, second = rows["collective"]
    assert (first["rank"], first["seq"], first["operation"], first["numel_in"]) == (1, 1, "all_reduce", 8)
    assert (second["state"], second["operation"], second["input_sizes"]) == ("scheduled", "all_gather", "[4,2]")
    assert first["frames"] == "job/train.py:7 step"
    if form != "entries":
        assert rows["process_group"][0]["ranks"] == "0,1"
        assert (rows["process_group"][0]["last_enqueued"], rows["version"][0]["value"]) == (2, "2.21.5")


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("true",)


def test_a_pickle_that_runs_code_is_refused() -> None:
    _, problems = read(pickle.dumps({"pg_config": 1, "entries": [Evil()]}))
    assert any("refused" in problem and "system" in problem for problem in problems)
    with pytest.raises(PickleRefused, match="refused"):
        load_plain(pickle.dumps(Path("x")))
    assert load_plain(pickle.dumps(collections.OrderedDict(a=1))) == {"a": 1}


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 600))
def test_no_bytes_raise_more_than_a_document_error(noise: bytes, cut: int) -> None:
    data = pickle.dumps(dump(entry(1)), protocol=2)
    for broken in (b"\x80\x02" + noise, data[:cut], data[:cut] + noise, b"{" + noise):
        try:
            flight_recorder.read(broken, lambda table, values: None)
        except DocumentError:
            pass


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False)
values = st.recursive(
    scalars, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3)
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*entry(1), "pg_id", "seq_id", "is_p2p", "retired"]), values), values, values)
def test_any_content_of_a_dump_is_read(strange: dict[str, object], config: object, status: object) -> None:
    value = dump(entry(1, **strange)) | {"pg_config": config, "pg_status": status}
    rows, problems = read(pickle.dumps(value))
    assert not [problem for problem in problems if "parser failed" in problem]
    assert len(rows["collective"]) == 1
