"""What PyTorch programs and their launchers print: memory, CUDA errors, tracebacks, lost ranks, exit codes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import (
    cuda_error,
    memory_step,
    torch_distributed,
    torch_elastic,
    torch_oom,
    torch_summary,
    traceback,
)
from analyzer.parsers.base import Format
from analyzer.parsers.cuda_codes import BY_NAME, BY_NUMBER, by_text
from analyzer.parsers.torch_head import glog_seconds
from tests.parsers.golden import FIXTURES, cases, check, rows_of, scan_bytes

MODULES = (torch_oom, torch_summary, cuda_error, traceback, torch_distributed, torch_elastic, memory_step)
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


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(CUTS), st.text(max_size=60)), max_size=25))
def test_no_text_raises_and_plans_change_nothing(lines: list[str]) -> None:
    data = "\n".join(lines).encode("utf-8", "replace")
    assert scan_bytes(data, FORMATS).rows == scan_bytes(data, FORMATS, plans=False).rows


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([literal for fmt in FORMATS for literal in fmt.literals]))
def test_no_bytes_raise(noise: bytes, literal: str) -> None:
    scan_bytes(noise + literal.encode() + noise, FORMATS)


def read(text: str, module: object = torch_oom) -> dict[str, list[dict[str, object]]]:
    return rows_of(scan_bytes(text.encode(), [module.FORMAT]))  # type: ignore[attr-defined]


def test_cutting_an_oom_message_changes_no_figure() -> None:
    """Each prefix of a message gives a part of the figures of the whole one, never another figure."""
    text = (FIXTURES / "torch-oom" / "other-process.txt").read_text(encoding="utf-8").splitlines()[-1]
    (whole,) = read(text)["oom_event"]
    for end in range(len(text)):
        for row in read(text[:end]).get("oom_event", []):
            row.pop("text")
            row.pop("error_bytes")
            assert row.items() <= whole.items()


def test_reserved_is_what_the_allocator_holds() -> None:
    """From 2.1 on the printed allocated memory contains the private pools, so they are not added again."""
    (row,) = read(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 7 has a total capacity of 100.00 GiB of which 1.00 GiB is"
        " free. Of the allocated memory 30.00 GiB is allocated by PyTorch, with 10.00 GiB allocated in private pools"
        " (e.g., CUDA Graphs), and 20.00 GiB is reserved by PyTorch but unallocated."
    )["oom_event"]
    assert row["reserved_bytes"] == 50 << 30
    assert row["private_pool_bytes"] == 10 << 30
    assert row["error_bytes"] == round((1 << 30) / 200)


def test_words_about_memory_are_no_event() -> None:
    for text in ("CUDA out of memory", "to avoid a CUDA out of memory error lower the batch size", "HIP out of memory"):
        assert "oom_event" not in read(text)


def test_a_printed_name_counts_more_than_an_old_number() -> None:
    (row,) = read("THCudaCheck FAIL file=/x/y.cu line=74 error=59 : device-side assert triggered", cuda_error)[
        "cuda_error"
    ]
    assert (row["code"], row["name"]) == (710, "cudaErrorAssert")


def test_statuses_of_libraries_have_no_cuda_code() -> None:
    (row,) = read("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", cuda_error)[
        "cuda_error"
    ]
    assert "code" not in row
    assert row["api"] == "cublasCreate(handle)"


def test_codes_agree_with_each_other() -> None:
    assert BY_NAME["CUDA_ERROR_OUT_OF_MEMORY"] is BY_NAME["cudaErrorMemoryAllocation"] is BY_NUMBER[2]
    for code in BY_NUMBER.values():
        found = by_text(code.text) if code.text else None
        assert found is None or found.text == code.text
    assert by_text("nothing of the kind") is None


def test_an_assertion_of_many_threads_is_one_row() -> None:
    line = "a.cu:9: f(int): block: [{0},0,0], thread: [{0},0,0] Assertion `n > {1}` failed.\n"
    rows = read("".join(line.format(n, n % 2) for n in range(500)), cuda_error)["kernel_assert"]
    assert [row["condition"] for row in rows] == ["n > 0", "n > 1"]


def test_status_and_time_out_join_in_any_order() -> None:
    head = "[E314 03:12:11.482113907 ProcessGroupNCCL.cpp:616] "
    timeout = (
        head + "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
    )
    status = (
        head + "[PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 7 PG status:"
        " last enqueued work: 9, last completed work: 6\n"
    )
    one = read(timeout + status + timeout, torch_distributed)["collective_timeout"]
    assert read(status + timeout, torch_distributed)["collective_timeout"] == one
    assert len(one) == 1
    assert (one[0]["last_enqueued"], one[0]["last_completed"], one[0]["ran_ms"]) == (9, 6, 600021)


def test_a_status_beside_another_fault_is_no_time_out() -> None:
    head = "[PG ID 0 PG GUID 0(default_pg) Rank 0] "
    text = (
        head + "Exception (either an error or timeout) detected by watchdog at work: 5, last enqueued NCCL work: 5,"
        " last completed NCCL work: 4.\n"
        + head
        + "Process group watchdog thread terminated with exception: CUDA error: unspecified launch failure\n"
    )
    rows = read(text, torch_distributed)
    assert "collective_timeout" not in rows
    assert rows["distributed_error"][0]["kind"] == "watchdog_exception"


def test_glog_stamps() -> None:
    assert glog_seconds("[E314 03:12:11.5 ProcessGroupNCCL.cpp:616]") == glog_seconds("E0314 03:12:11.500 41720 x.py:1]")
    assert glog_seconds("[E1118 20:32:23 x.cpp:1]") == 27808343.0
    assert glog_seconds("[E ProcessGroupNCCL.cpp:563]") is None
    assert glog_seconds("[E9999 03:12:11 x.cpp:1]") is None


def test_the_label_of_a_launcher_is_no_rank_of_its_children() -> None:
    rows = read("0: W0314 03:12:12.611 41720 api.py:897] Sending process 41782 closing signal SIGTERM", torch_elastic)
    assert "rank" not in rows["exit_status"][0]


def test_figures_without_a_known_unit_are_left() -> None:
    assert read("allocated 69120 reserved 137600", memory_step) == {}
    assert read("Load weight begin. avail mem 15.21 GB", memory_step) == {}


def test_blocks_close_before_a_long_log() -> None:
    """After a block a training log is not walked line by line."""
    tail = b"".join(b"lr 0.0003 loss 2.31 number %d\n" % number for number in range(3000))
    for fmt, path in CASES:
        scan = scan_bytes(path.read_bytes() + b"\n" + tail, [fmt])
        assert scan.recognised[fmt.name][0] < 400


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_long_lines_take_linear_time(fmt: Format) -> None:
    """No terminal backtracks over a long run of blanks, words or brackets."""
    began = time.monotonic()
    for head in fmt.literals[::5]:
        for body in (" " * 10_000, "a " * 5_000, "[Rank 0] " * 1_000, "Error: " * 1_500, "1" * 10_000, "1 GiB " * 1_500):
            scan_bytes(f"{body}{head}{body}x".encode(), [fmt])
    assert time.monotonic() - began < 20
