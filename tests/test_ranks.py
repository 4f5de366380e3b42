"""Tables that tell ranks apart: who waited, who is missing, what differs, who failed first."""

from __future__ import annotations

import io
import json

import pytest

from analyzer.derive import derive
from analyzer.evidence import Evidence, build
from analyzer.parsers import DOCUMENTS, nccl_log, stack_dump, torch_distributed, traceback
from analyzer.scan import ScanDriver
from analyzer.sources import Member

FORMATS = tuple(module.FORMAT for module in (nccl_log, stack_dump, torch_distributed, traceback))
INIT = "{host}:{pid}:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId {bus} commId 0x65 - Init START"


def evidence_of(files: dict[str, str]) -> Evidence:
    driver = ScanDriver(FORMATS, DOCUMENTS)
    for number, (name, text) in enumerate(files.items()):
        driver.member(Member(name, io.BytesIO(text.encode())), number, driver.scan.problems.append)
    evidence = build(driver.scan)
    derive(evidence)
    return evidence


def timeout(rank: int, seq: int, operation: str = "ALLREDUCE", numel: int = 1, enqueued: int | None = None) -> str:
    head = f"[rank{rank}]:[E521 04:12:09.118203991 ProcessGroupNCCL.cpp:607]"
    work = f"WorkNCCL(SeqNum={seq}, OpType={operation}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000)"
    text = f"{head} [Rank {rank}] Watchdog caught collective operation timeout: {work} ran for 600054 milliseconds before timing out.\n"
    if enqueued is not None:
        text += (
            f"{head} [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception (either an error or timeout) detected by "
            f"watchdog at work: {seq}, last enqueued NCCL work: {enqueued}, last completed NCCL work: {seq - 1}.\n"
        )
    return text


def missing(files: dict[str, str]) -> list[tuple[str, str]]:
    return [(row["verdict"], row["rank"]) for row in evidence_of(files).rows("missing_rank")]


def test_one_waits_and_the_others_were_done() -> None:
    files = {"rank0.log": timeout(0, 101)} | {f"rank{rank}.log": "step 9\nTraining finished.\n" for rank in (1, 2, 3)}
    assert missing(files) == [("extra_call", "0")]


def test_the_others_wait_for_a_rank_that_prints_progress() -> None:
    files = {f"rank{rank}.log": timeout(rank, 1) for rank in (1, 2, 3)} | {"rank0.log": "Map:  36%|###  | 36/100\n"}
    assert missing(files) == [("working", "0")]


def test_a_gap_in_one_log_is_a_rank_that_did_not_wait() -> None:
    assert missing({"job.log": "".join(timeout(rank, 78, "BROADCAST", 4096) for rank in (1, 2, 3))}) == [
        ("silent", "0")
    ]


def test_a_rank_that_enqueued_less_did_not_call() -> None:
    dump = (
        "[rank2]:[E521 04:12:09.118203991 ProcessGroupNCCL.cpp:1537] [PG 0 Rank 2] Received a dump signal due to a "
        "collective timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 76, "
        "last completed NCCL work: 76.This is most likely caused by\n"
    )
    assert missing({"job.log": "".join(timeout(rank, 77, enqueued=78) for rank in (0, 1, 3)) + dump}) == [
        ("not_called", "2")
    ]


def test_a_rank_that_failed_by_itself_is_no_desync() -> None:
    raised = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: bad label\n"
    assert missing({"job.log": raised + "".join(timeout(rank, 9) for rank in (1, 2, 3))}) == []


def test_everybody_waits_for_the_network() -> None:
    assert missing({"job.log": "".join(timeout(rank, 9, enqueued=9) for rank in range(4))}) == []


def record(seq: int, operation: str, state: str) -> dict[str, object]:
    return {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": seq,
        "profiling_name": f"nccl:{operation}",
        "input_sizes": [[8]],
        "output_sizes": [[8]],
        "state": state,
    }


def dumps(last: dict[int, dict[str, object] | None]) -> dict[str, str]:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(sorted(last))}}
    return {
        f"nccl_trace_rank_{rank}.json": json.dumps(
            {
                "version": "2.4",
                "pg_config": config,
                "entries": [record(1, "all_reduce", "completed"), *filter(None, [entry])],
            }
        )
        for rank, entry in last.items()
    }


BARRIER = record(2, "barrier", "scheduled")


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({0: BARRIER, 1: BARRIER, 2: None, 3: BARRIER}, [("not_called", "2")]),
        ({0: BARRIER, 1: None, 2: None, 3: None}, [("extra_call", "0")]),
        ({0: BARRIER, 1: BARRIER, 2: record(2, "all_gather", "scheduled")}, [("other_call", "2")]),
        ({0: BARRIER, 1: BARRIER, 2: BARRIER}, []),
        ({0: None, 1: None}, []),
    ],
)
def test_flight_recorders_are_compared_by_majority(
    last: dict[int, dict[str, object] | None], expected: list[tuple[str, str]]
) -> None:
    assert missing(dumps(last)) == expected


def test_stacks_of_ranks_are_compared() -> None:
    inside = 'Thread 1 (active): "MainThread"\n    barrier (torch/distributed/distributed_c10d.py:36)\n    main (train.py:61)\n'
    outside = 'Thread 1 (active): "MainThread"\n    read (prepare.py:7)\n    main (train.py:60)\n'
    files = {f"rank{rank}.txt": "Python v3.10.12 (/usr/bin/python3)\n" + inside for rank in (1, 2)}
    assert missing(files | {"rank0.txt": "Python v3.10.12 (/usr/bin/python3)\n" + outside}) == [("working", "0")]


def test_settings_that_differ_and_settings_of_a_silent_process() -> None:
    lines = [INIT.format(host=f"n{rank}", pid=rank, rank=rank, bus="1b000") for rank in range(3)]
    setting = "n2:2:1 [0] NCCL INFO NCCL_PROTO set by environment to LL128"
    rows = evidence_of({"a.log": "\n".join([*lines, setting])}).rows("asymmetry")
    assert [(row["what"], row["host"], row["value"], row["others"]) for row in rows] == [
        ("env NCCL_PROTO", "n2", "LL128", "not set")
    ]


def test_neighbours_with_different_addresses_are_two_hosts() -> None:
    files = {
        f"{name}.log": f"pod:{pid}:{pid} [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{pid}<0>\n"
        + INIT.format(host="pod", pid=pid, rank=rank, bus="1b000")
        + f"\npod:{pid}:1 [0] NCCL INFO Channel 00 : {rank}[0] -> {1 - rank}[0] via SHM/direct/direct\n"
        for name, pid, rank in (("a", 7, 0), ("b", 8, 1))
    }
    assert {row["rank"] for row in evidence_of(files).rows("host_collision")} == {"0,1"}
    same = {name: text.replace("10.0.0.8", "10.0.0.7") for name, text in files.items()}
    assert evidence_of(same).rows("host_collision") == []


def test_clocks_of_hosts_are_brought_together() -> None:
    lines = {
        host: f"[2025-03-01 12:00:{second:02d}] {host}:{rank}:1 [0] NCCL INFO comm 0x5 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 "
        f"busId 1b000 commId 0x65 - Init COMPLETE\n"
        f"[2025-03-01 12:01:{second:02d}] {host}:{rank}:1 [0] misc/x.cc:1 NCCL WARN Cuda failure 'unknown error'\n"
        for rank, (host, second) in enumerate((("n0", 0), ("n1", 30)))
    }
    rows = evidence_of({f"{host}.log": text for host, text in lines.items()}).rows("first_failure")
    assert {row["host"]: row["skew_s"] for row in rows} == {"n0": 0.0, "n1": 30.0}
    assert len({row["at"] for row in rows}) == 1


def test_victims_point_at_a_rank_and_at_an_address() -> None:
    text = (
        "n1:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
        "n0:2:1 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer 10.0.0.1<4711>\n"
        "n0:2:1 [0] proxy.cc:9 NCCL WARN [Proxy Service 0] Failed to execute operation Connect from rank 3, retcode 3\n"
    )
    rows = evidence_of({"a.log": text}).rows("suspect")
    assert [(row["host"], row["rank"], row["address"]) for row in rows] == [("n1", None, "10.0.0.1"), (None, 3, None)]
