"""GPU memory of serving engines, XLA and other frameworks, free memory, holders of device files, phases, snapshots."""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import (
    device_holder,
    engine_memory,
    free_memory,
    other_oom,
    run_phase,
    torch_snapshot,
    wddm_memory,
    xla_memory,
)
from analyzer.parsers.base import DocumentError, Format
from analyzer.scan import ScanDriver
from analyzer.sources import Member
from tests.parsers.golden import cases, check, rows_of, scan_bytes

MODULES = (engine_memory, free_memory, xla_memory, other_oom, run_phase, device_holder, wddm_memory)
FORMATS = tuple(module.FORMAT for module in MODULES)
CASES = [(fmt, path) for fmt in FORMATS for path in cases(fmt.name)]
WORDS = sorted({line for _, path in CASES for line in path.read_text(encoding="utf-8").splitlines()})
CUTS = sorted({word[:end] for word in WORDS for end in range(0, len(word), 7)})


@pytest.mark.parametrize(("fmt", "path"), CASES, ids=[f"{path.parent.name}/{path.stem}" for _, path in CASES])
def test_rows(fmt: Format, path: Path) -> None:
    check(path, [fmt])


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_every_format_has_the_usual_samples(fmt: Format) -> None:
    assert {"complete", "cut", "interleaved", "crlf-ansi"} <= {path.stem for path in cases(fmt.name)}
    assert len(cases(fmt.name)) >= 5  # and another version


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(CUTS), st.text(max_size=60)), max_size=25))
def test_no_text_raises_and_plans_change_nothing(lines: list[str]) -> None:
    data = "\n".join(lines).encode("utf-8", "replace")
    scan = scan_bytes(data, FORMATS)
    assert scan.rows == scan_bytes(data, FORMATS, plans=False).rows
    assert [p for p in scan.problems if "parser failed" in p.what] == []


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([literal for fmt in FORMATS for literal in fmt.literals]))
def test_no_bytes_raise(noise: bytes, literal: str) -> None:
    scan = scan_bytes(noise + literal.encode() + noise, FORMATS)
    assert [p for p in scan.problems if "parser failed" in p.what] == []


def rows(text: str, module: object) -> dict[str, list[dict[str, object]]]:
    return rows_of(scan_bytes(text.encode(), [module.FORMAT]))  # type: ignore[attr-defined]


def test_engines_count_in_powers_of_two() -> None:
    """Both engines divide by 2^30 and one prints GB."""
    (gib,) = rows("Model loading took 2.00 GiB and 3.2 seconds", engine_memory)["engine_memory"]
    (gb,) = rows("Loading model weights took 2.0000 GB", engine_memory)["engine_memory"]
    assert gib["bytes"] == gb["bytes"] == 2 << 30


def test_a_failed_try_that_the_allocator_calls_harmless_is_no_event() -> None:
    text = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.10GiB with freed_by_count=0. The caller"
    assert "oom_event" not in rows(text + " indicates that this is not a failure", xla_memory)
    assert "oom_event" in rows(text, xla_memory)


def test_the_same_failure_is_one_event() -> None:
    line = (
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 20.00GiB (rounded to 21474836480) requested by op"
    )
    assert len(rows("\n".join([line] * 9), xla_memory)["oom_event"]) == 1


@pytest.mark.parametrize(
    "text",
    ["feel free to use 3 GPUs", "free shipping for 10 GB", "disk free: 3 GB", "free memory of the host mem: 3 GB"],
)
def test_prose_is_not_free_memory(text: str) -> None:
    assert "free_memory" not in rows(text, free_memory)


def test_kept_code_is_told_from_numbers() -> None:
    found = rows("total += loss\ntotal += loss.item()\nlosses.append(loss.detach())\n", run_phase)["code_line"]
    assert [row["text"] for row in found] == ["total += loss"]


SEGMENT = {
    "device": 1,
    "total_size": 20 << 20,
    "allocated_size": 12 << 20,
    "active_size": 12 << 20,
    "blocks": [
        {
            "size": 12 << 20,
            "state": "active_allocated",
            "frames": [
                {"filename": "/venv/lib/python3.12/site-packages/torch/nn/functional.py", "line": 9, "name": "linear"},
                {"filename": "/job/model.py", "line": 88, "name": "forward"},
            ],
        },
        {"size": 8 << 20, "state": "inactive", "frames": []},
    ],
}


def read_snapshot(data: bytes) -> list[tuple[str, dict[str, object]]]:
    found: list[tuple[str, dict[str, object]]] = []
    torch_snapshot.read(data, lambda table, values: found.append((table, dict(values))))
    return found


def test_snapshot() -> None:
    full = {**SEGMENT, "allocated_size": 20 << 20, "active_size": 20 << 20, "blocks": []}
    found = read_snapshot(pickle.dumps({"segments": [SEGMENT, full], "device_traces": []}))
    totals = {values["metric"]: values["current"] for table, values in found if table == "memory_summary"}
    assert totals["reserved"] == 40 << 20
    assert totals["allocated"] == 32 << 20
    assert totals["non_releasable"] == 8 << 20
    (site,) = [values for table, values in found if table == "alloc_site"]
    assert site == {"gpu": 1, "bytes": 12 << 20, "blocks": 1, "place": "model.py:88 forward"}


class Evil:
    """Would run a command when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.target}",)


def test_a_pickle_that_wants_to_run_code_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    data = pickle.dumps({"segments": [Evil(mark)]})
    driver = ScanDriver(FORMATS[:1], (torch_snapshot.DOCUMENT,))
    driver.member(Member("snapshot.pickle", io.BytesIO(data)), 0, driver.scan.problems.append)
    assert not mark.exists()
    assert "refused" in driver.scan.problems[0].what
    (refused,) = rows_of(driver.scan)["input_refused"]
    assert "system" in str(refused["reason"])
    assert len(driver.scan.inputs) == 1


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_pickle_raises_more_than_a_document_error(noise: bytes) -> None:
    for data in (
        b"\x80\x04" + noise,
        pickle.dumps({"segments": noise}),
        pickle.dumps([{"total_size": noise, "blocks": [noise]}]),
    ):
        try:
            read_snapshot(data)
        except DocumentError:
            continue
