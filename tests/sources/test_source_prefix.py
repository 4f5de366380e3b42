"""Launcher prefixes and time stamps: what comes off, what it says, and what must stay."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyzer.sources import Prefixed, split_prefix
from analyzer.sources.stamp import iso_seconds, named_seconds


def utc(*parts: int) -> float:
    return datetime(*parts, tzinfo=timezone.utc).timestamp()  # type: ignore[misc, arg-type]


CASES: dict[str, Prefixed] = {
    # srun -l
    "0: node-a:1:2 [0] NCCL INFO x": Prefixed("node-a:1:2 [0] NCCL INFO x", "0:", rank=0),
    " 12: text": Prefixed("text", "12:", rank=12),
    "0:     FB Memory Usage": Prefixed("    FB Memory Usage", "0:", rank=0),
    "0: \t Link 0: 25 GB/s": Prefixed("\t Link 0: 25 GB/s", "0:", rank=0),
    "0:      0   2.17   6.12": Prefixed("     0   2.17   6.12", "0:", rank=0),
    "3: GPU 0: NVIDIA A100": Prefixed("GPU 0: NVIDIA A100", "3:", rank=3),
    "13: ": Prefixed("", "13:", rank=13),
    "13:": Prefixed("", "13:", rank=13),
    "0: 2: eth0: <BROADCAST,MULTICAST>": Prefixed("2: eth0: <BROADCAST,MULTICAST>", "0:", rank=0),
    # mpirun, horovodrun
    "[1,3]<stdout>:node-a:25:25 [0]": Prefixed("node-a:25:25 [0]", "[1,3]<stdout>:", rank=3),
    "[1,0]<stderr>:  4294967296  1073741824": Prefixed("  4294967296  1073741824", "[1,0]<stderr>:", rank=0),
    "[1,3]<stdout>: Open MPI 5": Prefixed("Open MPI 5", "[1,3]<stdout>:", rank=3),
    "[prterun-n1-99@1,3]<stderr>: x": Prefixed("x", "[prterun-n1-99@1,3]<stderr>:", rank=3),
    "[2]<stdout>:gloo": Prefixed("gloo", "[2]<stdout>:", rank=2),
    "Thu Jun 18 14:28:58 2020[1,1]<stdout>:x": Prefixed(
        "x", "[1,1]<stdout>:", rank=1, at=utc(2020, 6, 18, 14, 28, 58)
    ),
    # torchrun
    "[rank3]: Traceback": Prefixed("Traceback", "[rank3]:", rank=3),
    "[rank3]:   File x": Prefixed("  File x", "[rank3]:", rank=3),
    "[rank0]:[E314 03:12:11.482113907 ProcessGroupNCCL.cpp:616] x": Prefixed(
        "[E314 03:12:11.482113907 ProcessGroupNCCL.cpp:616] x", "[rank0]:", rank=0
    ),
    "[default3]: iteration": Prefixed(" iteration", "[default3]:", local_rank=3),
    "[host0]:x": Prefixed("x", "[host0]:", local_rank=0),
    "[1]:x": Prefixed("x", "[1]:", local_rank=1),
    "[default0]:[rank8]: x": Prefixed("x", "[default0]: [rank8]:", rank=8, local_rank=0),
    "0: [rank9]: x": Prefixed("x", "0: [rank9]:", rank=9),
    "1: [default3]:x": Prefixed("x", "1: [default3]:", local_rank=3),
    # Ray, vLLM
    "(RayWorkerWrapper pid=581, ip=10.225.128.18) k8s19:581:581 [0]": Prefixed(
        "k8s19:581:581 [0]", "(RayWorkerWrapper pid=581, ip=10.225.128.18)", host="10.225.128.18", pid=581
    ),
    "(EngineCore_DP0 pid=1088) (Worker_TP3 pid=9) ERROR x": Prefixed(
        "ERROR x", "(EngineCore_DP0 pid=1088) (Worker_TP3 pid=9)", pid=9
    ),
    "(VllmWorker TP1 pid=77) INFO": Prefixed("INFO", "(VllmWorker TP1 pid=77)", pid=77),
    "(pid=34272)   indented": Prefixed("  indented", "(pid=34272)", pid=34272),
    "(raylet, ip=10.0.0.2) oom": Prefixed("oom", "(raylet, ip=10.0.0.2)", host="10.0.0.2"),
    "(autoscaler +12s) x": Prefixed("x", "(autoscaler +12s)"),
    # pdsh, DeepSpeed, docker compose
    "worker-0: Traceback": Prefixed("Traceback", "worker-0:", host="worker-0"),
    "node-a: x": Prefixed("x", "node-a:", host="node-a"),
    "gpu-node07.cluster.local: x": Prefixed("x", "gpu-node07.cluster.local:", host="gpu-node07.cluster.local"),
    "tnasnt5: [rank0]: x": Prefixed("x", "tnasnt5: [rank0]:", rank=0, host="tnasnt5"),
    "tnasnt5: tnasnt5:1:2 [0] NCCL INFO": Prefixed("tnasnt5:1:2 [0] NCCL INFO", "tnasnt5:", host="tnasnt5"),
    "localhost: [2025-01-02 03:04:05,678] [INFO] x": Prefixed(
        "[INFO] x", "localhost:", host="localhost", at=utc(2025, 1, 2, 3, 4, 5, 678000)
    ),
    "trainer-1  | RuntimeError: x": Prefixed("RuntimeError: x", "trainer-1  |"),
    "mynode-066 | ERROR: nhc: x": Prefixed("ERROR: nhc: x", "mynode-066 |", host="mynode-066"),
    # kubectl, containerd
    "2025-07-29T15:39:27.815Z vm:1:1 [0] NCCL": Prefixed("vm:1:1 [0] NCCL", at=utc(2025, 7, 29, 15, 39, 27, 815000)),
    "[pod/trainer-3/pytorch] x": Prefixed("x", "[pod/trainer-3/pytorch]", host="trainer-3"),
    "[pod/t-3/p] 2025-07-29T15:39:27Z [rank1]: x": Prefixed(
        "x", "[pod/t-3/p] [rank1]:", rank=1, host="t-3", at=utc(2025, 7, 29, 15, 39, 27)
    ),
    "2025-07-29T15:39:27.5+02:00 stderr F Traceback": Prefixed("Traceback", at=utc(2025, 7, 29, 13, 39, 27, 500000)),
    # syslog, journald
    "Feb 01 14:25:31 gpu7 kernel: NVRM: Xid": Prefixed(
        "NVRM: Xid", "gpu7 kernel:", host="gpu7", at=utc(1970, 2, 1, 14, 25, 31), year_known=False
    ),
    "Feb  1 14:25:31 gpu7 kernel: [82659.755847] NVRM": Prefixed(
        "NVRM", "gpu7 kernel:", host="gpu7", at=utc(1970, 2, 1, 14, 25, 31), boot_s=82659.755847, year_known=False
    ),
    "Feb 01 14:25:31 gpu7 python3[123]:   x": Prefixed(
        "  x", "gpu7 python3[123]:", host="gpu7", pid=123, at=utc(1970, 2, 1, 14, 25, 31), year_known=False
    ),
    "2024-05-19T07:08:57.250000+0000 gpu7 kernel: NVRM": Prefixed(
        "NVRM", "gpu7 kernel:", host="gpu7", at=utc(2024, 5, 19, 7, 8, 57, 250000)
    ),
    "2024-05-19T09:08:57+0200 gpu7 nv-fabricmanager[9]: x": Prefixed(
        "x", "gpu7 nv-fabricmanager[9]:", host="gpu7", pid=9, at=utc(2024, 5, 19, 7, 8, 57)
    ),
    "kernel: [  842.114402] watchdog": Prefixed("watchdog", "kernel:", boot_s=842.114402),
    # dmesg
    "[155044.078590] NVRM: x": Prefixed("NVRM: x", boot_s=155044.07859),
    "[  130.456250] [   T1946] NVRM: x": Prefixed("NVRM: x", boot_s=130.45625),
    "[  130.456250]  Call Trace:": Prefixed(" Call Trace:", boot_s=130.45625),
    "[188231.442439] [  71301]  1000   71301": Prefixed("[  71301]  1000   71301", boot_s=188231.442439),
    "[Sun Feb 23 16:24:18 2025] NVRM": Prefixed("NVRM", at=utc(2025, 2, 23, 16, 24, 18)),
    "2025-02-23T16:24:18,250000+00:00 NVRM: Xid": Prefixed("NVRM: Xid", at=utc(2025, 2, 23, 16, 24, 18, 250000)),
    "kern  :err   : [  1.500000] x": Prefixed("x", boot_s=1.5),
    "kern  :warn  : 2025-01-21T04:41:44,500000+00:00 x": Prefixed("x", at=utc(2025, 1, 21, 4, 41, 44, 500000)),
    "<4>[ 1126.6] x": Prefixed("x", boot_s=1126.6),
    "6,3964,206764307,-;x": Prefixed("x", boot_s=206.764307),
    "6,3964,206764307,-,caller=T1;x": Prefixed("x", boot_s=206.764307),
    # loggers
    "[2025-03-01 12:00:00] h:1:2 [0] x.cc:1 NCCL WARN": Prefixed(
        "h:1:2 [0] x.cc:1 NCCL WARN", at=utc(2025, 3, 1, 12, 0, 0)
    ),
    "2025-03-14 03:02:05,500 INFO train: a": Prefixed("INFO train: a", at=utc(2025, 3, 14, 3, 2, 5, 500000)),
    "0: 2025-03-14 03:02:05,500 INFO": Prefixed("INFO", "0:", rank=0, at=utc(2025, 3, 14, 3, 2, 5, 500000)),
    "2025-03-14 03:02:05.500000: I tensorflow/x": Prefixed("I tensorflow/x", at=utc(2025, 3, 14, 3, 2, 5, 500000)),
    "[Feb 25 2025 13:59:45] [INFO] [tid 1] x": Prefixed("[INFO] [tid 1] x", at=utc(2025, 2, 25, 13, 59, 45)),
    "[1594409623.500000] [k69:777  :0] UCX": Prefixed("[k69:777  :0] UCX", at=1594409623.5),
    # several in a row
    "trainer-1  | 2025-07-29T15:39:27Z 3: [rank3]:   x": Prefixed(
        "  x", "trainer-1  | 3: [rank3]:", rank=3, at=utc(2025, 7, 29, 15, 39, 27)
    ),
}


@pytest.mark.parametrize("line", CASES)
def test_prefixes(line: str) -> None:
    assert split_prefix(line) == CASES[line]


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "    0 1541.00  20.64",
        " 0 : GPU/0 GPU/1",
        "     Link 0: 25 GB/s",
        "\t Link 0: 25 GB/s",
        "GPU 0: NVIDIA A100",
        "  0:  3 -> 4",
        "0: 3 -> 4",
        "  0:  10  21  21",
        "2: eth0: <BROADCAST,MULTICAST,UP>",
        " 1000: 1.310, 1.330 avg loss, 0.001000 rate",
        "[0]:",
        "[0]: ",
        "[0] NCCL INFO x",
        "[Rank 1] Watchdog caught collective operation timeout",
        "[E314 03:12:11.482113907 ProcessGroupNCCL.cpp:616] [Rank 1] x",
        "node-a:41780:42081 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1]",
        "RuntimeError: x",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "torch.cuda.OutOfMemoryError: x",
        "ncclSystemError: System call failed",
        "srun: error: node1: task 0: Exited with exit code 1",
        "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED",
        "vm-2: Test NCCL failure common.cu:499 'unhandled system error'",
        "eth0: flags=4163<UP,BROADCAST>",
        "mlx5_0: port 1",
        "gpu0: 45 C",
        "kernel:         7.1.8-200",
        "group | case | x",
        "--  |  a | b",
        "Tue Dec  1 13:08:12 2026       ",
        "2025/03/14 03:02:05.482, 0, NVIDIA A100",
        "2025-03-14 03:02:05",
        "Mon, 5, 3",
        "1,2,3;4",
        "(most recent call last):",
        "[1] 12345 killed",
        "[  71301]  1000   71301",
        "pid=3 x",
        "Jan 1st",
        "12:30:45 x",
        "0:x",
        "  File \"/a/b.py\", line 3, in <module>",
        "x" * 100_000,
    ],
)
def test_lines_that_stay(line: str) -> None:
    assert split_prefix(line) == Prefixed(line)


def test_a_local_zone_is_worked_in_and_impossible_dates_are_none() -> None:
    assert iso_seconds("2025-03-14T03:02:05-0730") == utc(2025, 3, 14, 10, 32, 5)
    assert iso_seconds("2025-13-14T03:02:05") is None
    assert iso_seconds("nonsense") is None
    assert split_prefix("2025-13-99 99:02:05 x") == Prefixed("x")
    assert named_seconds("Feb 29 10:00:00") == (utc(1970, 3, 1, 10, 0, 0), False)
    assert named_seconds("Thu Feb 29 10:00:00 2024") == (utc(2024, 2, 29, 10, 0, 0), True)


def test_an_outer_stamp_counts_unless_it_lacks_the_year() -> None:
    assert split_prefix("2025-01-01T00:00:00Z 2025-01-01 02:00:00,000 x").at == utc(2025, 1, 1)
    mixed = split_prefix("Jan 01 00:00:00 n1 app[3]: 2025-01-01 02:00:00,000 x")
    assert (mixed.text, mixed.at, mixed.year_known) == ("x", utc(2025, 1, 1, 2), True)


HEADS = st.sampled_from(
    [
        "0: ", " 12: ", "[1,3]<stdout>:", "[rank3]: ", "[rank3]:", "[default1]:", "(Worker pid=5) ", "worker-0: ",
        "trainer-1  | ", "[pod/a/b] ", "2025-07-29T15:39:27.815Z ", "2025-03-14 03:02:05,482 ", "[155044.078590] ",
        "[2025-03-01 12:00:00] ", "Feb 01 14:25:31 host kernel: ", "kern  :err   : ", "<4>", "6,1,2,-;",
        "Thu Jun 18 14:28:58 2020", "[   T12] ",
    ]
)  # fmt: skip


@settings(max_examples=2000, deadline=None)
@given(st.lists(HEADS, max_size=5), st.text(max_size=60))
@example(["0: "], "\u0660: x")
@example([], "\u0660\u0661: x")
def test_the_text_is_always_an_end_piece_and_labels_are_what_was_taken(heads: list[str], rest: str) -> None:
    line = "".join(heads) + rest
    found = split_prefix(line)
    assert line.endswith(found.text)
    taken = line[: len(line) - len(found.text)]
    at = 0
    for word in found.label.split():
        at = taken.index(word, at) + len(word)
    if found == Prefixed(line):
        assert found.text == line


@settings(max_examples=1000, deadline=None)
@given(st.text("0123456789[](){}<>:,;.-+ TZabcdefJanFebMonSunkernpidrank=|/@", max_size=80))
def test_any_text(line: str) -> None:
    assert line.endswith(split_prefix(line).text)


@settings(max_examples=300, deadline=None)
@given(st.lists(HEADS, min_size=1, max_size=1), st.text("abc xyz", min_size=1, max_size=20))
def test_one_prefix_alone_leaves_the_text_untouched(heads: list[str], rest: str) -> None:
    (head,) = heads
    found = split_prefix(head + rest)
    assert found.text.lstrip() == rest.lstrip() or found == Prefixed(head + rest)


@pytest.mark.parametrize(
    "unit", ["0: ", "[", "[1,", "(", "( pid=", "a-", "a.", "1", " ", "2025-01-01 00:00:00 ", "[0.000000] ", "Jan ", "node1-", "("
             "a ", "[rank1]:", "a |", "<1>", "1,", "node-1"]
)  # fmt: skip
def test_no_line_makes_it_slow(unit: str) -> None:
    line = (unit * (1 << 20))[: 1 << 20]
    start = time.perf_counter()
    assert line.endswith(split_prefix(line).text)
    assert time.perf_counter() - start < 1


def test_plain_lines_cost_little() -> None:
    lines = ["node-a:41780:42081 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1]", "Traceback (most recent call last):"] * 20_000
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        for line in lines:
            split_prefix(line)
        best = min(best, time.perf_counter() - start)
    assert best / len(lines) < 5e-6  # about 0.5 us; the margin is for a busy machine
