"""What a file name says about rank and host."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.sources import name_host, name_rank
from analyzer.sources.names import displayable


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank3.log", 3),
        ("rank_003.txt", 3),
        ("logs/rank-12/stdout.log", 12),
        ("log.rank7", 7),
        ("Rank0.LOG", 0),
        ("nccl-rank5.log.gz", 5),
        ("memory-summary-rank2.txt", 2),
        ("global_rank_11.out", 11),
        ("rank=4/train.log", 4),
        ("run/rank1/rank2.log", 2),
        ("bundle.tar.gz!dir/rank0.log", 0),
        ("attempt_0/3/stderr.log", 3),
        ("logs/none_x1/attempt_1/12/stdout.log", 12),
        ("attempt_0/3/stderr.log.gz", 3),
        ("worker3.log", None),
        ("frank3.log", None),
        ("rank.log", None),
        ("ranking7x.log", None),
        ("ranks8.log", None),
        ("3/stderr.log", None),
        ("train.log", None),
        ("", None),
    ],
)
def test_rank(name: str, rank: int | None) -> None:
    assert name_rank(name) == rank


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("node-a/dmesg.txt", "node-a"),
        ("logs/node07/rank3.log", "node07"),
        ("host3/x.log", "host3"),
        ("gpu-12-4/dmesg.txt", "gpu-12-4"),
        ("worker-2/nccl.log", "worker-2"),
        ("bundle.tar!node-a/dmesg.txt", "node-a"),
        ("node07.log", "node07"),
        ("hgx-07.log", "hgx-07"),
        ("srv-b.log", "srv-b"),
        ("node07-dmesg.txt", "node07"),
        ("dmesg-node07.txt", "node07"),
        ("ip-route-srv-b.txt", "srv-b"),
        ("nvidia-smi-node-a.txt", "node-a"),
        ("show_gids-worker-0.txt", "worker-0"),
        ("dmesg-dgx-node-1.txt", "dgx-node-1"),
        ("ip-10-0-0-7.log", "ip-10-0-0-7"),
        ("node-a/worker-1.log", "worker-1"),
        ("node-a/sub/dmesg.txt", None),
        ("dmesg.txt", None),
        ("rank3.log", None),
        ("gpu3.log", None),
        ("gpu-3.log", None),
        ("gpu-0-health.txt", None),
        ("gpu-06.log", "gpu-06"),
        ("sar-srv-b.txt", "srv-b"),
        ("train-worker-3.log", "train-worker-3"),
        ("nvidia-smi.txt", None),
        ("slurm-4711.out", None),
        ("node-labels.txt", None),
        ("host.txt", None),
        ("host-check.txt", None),
        ("hostnames.txt", None),
        ("job-12/train.log", None),
        ("", None),
    ],
)
def test_host(name: str, host: str | None) -> None:
    assert name_host(name) == host


@given(st.text(max_size=200))
def test_any_name(name: str) -> None:
    name_rank(name)
    name_host(name)
    assert displayable(name).isprintable() or not name.isascii()


@pytest.mark.parametrize("unit", ["1", "node1", "node-1", "a-", "rank1", "attempt_1/", "-", "node", "1-"])
def test_no_name_makes_it_slow(unit: str) -> None:
    start = time.perf_counter()
    name_host(unit * 2000)
    name_rank(unit * 2000)
    assert time.perf_counter() - start < 2
