"""Reports built in code: the seed story (out of memory by communication buffers), a healthy one, an empty one."""

from __future__ import annotations

from analyzer.model import (
    Comparison,
    EvidenceLine,
    Figure,
    Finding,
    InputFile,
    InventoryRow,
    LedgerCard,
    LedgerEntry,
    LinkRow,
    NotEvaluated,
    Problem,
    Report,
    TimelineRow,
    Verdict,
    Where,
)

CAPACITY = 85_099_282_432
T0 = 1_741_921_496.212  # 2025-03-14 03:04:56.212 UTC
OOM = EvidenceLine(
    "rank2.log",
    6187,
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 2 has a total capacity of "
    "79.25 GiB of which 246.19 MiB is free. Of the allocated memory 66.39 GiB is allocated by PyTorch",
)
ALLOC = EvidenceLine("rank2.log", 86, "node-a:4103:4177 [2] NCCL INFO Cuda Alloc Size 10485760 pointer 0x7f2e4c000000")
P2P = EvidenceLine("p2p.txt", 61, "     0   1.61   2.31   2.33   4.71")
TOPO = EvidenceLine("topo.txt", 2, "GPU0\t X \tNV4\tNV4\tPXB\t0-31\t0")
WATCHDOG = EvidenceLine("rank1.log", 6159, "[rank1]:[E314 03:14:56] Watchdog caught collective operation timeout")

ADVICE = (
    "Create the process groups once before the epoch loop, or call dist.destroy_process_group(g) after each epoch: "
    "frees 7.44 GiB on every card.\nCheck: grep -c 'Destroy COMPLETE' rank0.log",
    "Restart with micro-batch 32 and two accumulation steps: makes room, does not remove the cause.",
)


def entries(allocated: int = 71_283_245_056, free: int = 258_154_496) -> tuple[LedgerEntry, ...]:
    """The five parts of the failing card."""
    return (
        LedgerEntry("framework_allocated", allocated, "read", 5_368_709, "out-of-memory message", (OOM,)),
        LedgerEntry("framework_reserved_unallocated", 883_949_568, "read", 5_242, "out-of-memory message", (OOM,)),
        LedgerEntry("comm_buffers", 12_164_936_000, "computed", 0, "1,078 distinct buffers", (ALLOC,)),
        LedgerEntry("context_and_other", 508_997_312, "computed", 5_368_709, "remainder; 0.4 to 0.6 GiB is usual"),
        LedgerEntry("free", free, "read", 0, "", (OOM,)),
    )


def card(gpu: int, failed: bool = False) -> LedgerCard:
    """One of the four cards; only the failing one asked for more."""
    shift = 0 if failed else 190_000_000 + gpu * 9_000_000
    return LedgerCard(
        host="node-a",
        gpu=gpu,
        bus_id=f"0000:{7 + 4 * gpu:02x}:00.0",
        rank=gpu,
        name="NVIDIA A100-SXM4-80GB",
        total_bytes=85_899_345_920,
        driver_reserved_bytes=800_063_488,
        capacity_bytes=CAPACITY,
        used_bytes=CAPACITY - 258_154_496 - shift,
        entries=entries(71_283_245_056 - shift, 258_154_496 + shift),
        balanced=True,
        tolerance_bytes=20_000_000,
        communicators=22,
        requested_bytes=2_684_354_560 if failed else None,
        failed=failed,
        demand_bytes=91_173_933_312 if failed else None,
        demand_note="Peak of the one-card run (78.5 GB) and the buffers and the context." if failed else "",
    )


def link(a: int, b: int) -> LinkRow:
    """A pair of the node; 0-3 is the slow one."""
    slow = (a, b) == (0, 3)
    return LinkRow(
        host="node-a",
        a=f"GPU{a}",
        b=f"GPU{b}",
        path="PXB" if slow else "NV4",
        nvlinks=0 if slow else 4,
        latency_us=4.71 if slow else 2.30 + 0.01 * (a + b),
        bandwidth_gbps=19.8 if slow else 92.4,
        class_latency_us=2.32,
        class_bandwidth_gbps=92.4,
        ratio=4.71 / 2.32 if slow else 1.0,
        in_ring=b - a == 1 or slow,
        transport="P2P/CUMEM" if not slow else "P2P/IPC",
        verdict="slow, no NVLink" if slow else "normal",
        evidence=(P2P, TOPO) if slow else (),
    )


def findings() -> tuple[Finding, ...]:
    """Root cause, an independent risk and a consequence."""
    return (
        Finding(
            cause="memory.comm-buffers-over-capacity",
            rule="memory/comm-buffers-over-capacity",
            role="root",
            severity="error",
            confidence=0.95,
            title="Communication buffers push the total over the capacity of the card",
            message="22 NCCL communicators hold 11.33 GiB on each card outside PyTorch; 7 more are made each epoch and "
            "none is destroyed. The one-card run had none and fitted with a peak of 73.11 GiB (78.5 GB).",
            where=Where(host=("node-a",), rank=(2,), gpu=("2",), bus_id=("0000:0f:00.0",)),
            explains=("nccl.watchdog-timeout",),
            evidence=(OOM, ALLOC),
            advice=ADVICE,
            considered=("Fragmentation: only 0.82 GiB is reserved but not allocated, 2.50 GiB was asked for.",),
            references=("NCCL user guide, NCCL_BUFFSIZE",),
            at=T0,
        ),
        Finding(
            cause="topology.asymmetric-link-latency",
            rule="topology/asymmetric-link-latency",
            role="risk",
            severity="warning",
            confidence=0.9,
            title="GPU0-GPU3 has 2.03 times the latency of its siblings",
            message="GPU0-GPU3 takes 4.71 us against 2.32 us; it crosses PCIe switches (PXB) where the others use NVLink.",
            where=Where(host=("node-a",), gpu=("0", "3"), link=("GPU0-GPU3",)),
            evidence=(P2P, TOPO),
            advice=("Look at the inactive links: nvidia-smi nvlink -s",),
            considered=("It did not cause the crash: a slow link takes no memory.",),
        ),
        Finding(
            cause="nccl.watchdog-timeout",
            rule="nccl/watchdog-timeout",
            role="consequence",
            severity="error",
            confidence=0.9,
            title="Ranks 0, 1 and 3 waited 600 s for rank 2",
            message="Ranks 0, 1 and 3 did not fail; the watchdog ended them.",
            where=Where(host=("node-a",), rank=(0, 1, 3)),
            evidence=(WATCHDOG,),
            at=T0 + 600,
        ),
    )


def full() -> Report:
    """The seed story on four A100-SXM4-80GB."""
    return Report(
        verdict=Verdict(
            "Communication buffers filled all four cards; rank 2 was the first to run out of memory",
            "memory.comm-buffers-over-capacity",
            0.95,
            Where(host=("node-a",), rank=(2,), gpu=("2",), bus_id=("0000:0f:00.0",)),
        ),
        findings=findings(),
        not_evaluated=(
            NotEvaluated("gpu/xid", "gpu.xid", ("xid",), "dmesg -T | grep -iE 'xid|nvrm|pcieport|aer'"),
            NotEvaluated("pcie/aer", "pcie.aer", ("kernel_event",), "dmesg -T | grep -iE 'xid|nvrm|pcieport|aer'"),
            NotEvaluated("topology/acs", "topology.acs", ("pci_link",), "sudo lspci -vvv"),
        ),
        ledger=tuple(card(gpu, gpu == 2) for gpu in range(4)),
        links=tuple(link(a, b) for a in range(4) for b in range(a + 1, 4)),
        timeline=(
            TimelineRow(T0 - 1.5, "wall", "node-a", 0, "step", "step 4,811 finished", False),
            TimelineRow(T0, "wall", "node-a", 2, "oom", "CUDA out of memory, asked for 2.50 GiB", True, (OOM,)),
            TimelineRow(T0 + 600.2, "wall", "node-a", 1, "collective_timeout", "watchdog", False, (WATCHDOG,)),
            TimelineRow(91.5, "boot", "node-a", None, "kernel", "NVRM: loading", False),
            TimelineRow(None, "wall", None, None, "exit", "torchrun: rank 1 observed first", False),
        ),
        inventory=(
            InventoryRow("version", "node-a", "NCCL", "2.20.5+cuda12.4"),
            InventoryRow("gpu", "node-a", "GPU 2", "NVIDIA A100-SXM4-80GB", (OOM,)),
        ),
        inputs=(
            InputFile("rank2.log", "PyTorch + NCCL log", 912_345, 6188, 6160),
            InputFile("topo.txt", "nvidia-smi topo -m", 1_204, 15, 15),
            InputFile("p2p.txt", "p2pBandwidthLatencyTest", 4_096, 77, 77),
        ),
        problems=(Problem("rank2.log", 4711, "line cut in the middle", 3), Problem("rank9.log", 0, "cannot be read")),
        baseline=(
            Comparison(
                "allocated at the peak",
                Figure(78_500_000_000, "bytes", "read", 50_000_000, "single-gpu.log:30"),
                Figure(71_283_245_056, "bytes", "read", 5_368_709, "rank2.log:6187", (OOM,)),
            ),
            Comparison("communication buffers", None, Figure(12_164_936_000, "bytes", "computed"), "none on one card"),
            Comparison("communicators", Figure(0, "", "read"), Figure(22, "", "read"), "none is destroyed"),
        ),
        meta={"version": "0.1.0", "rules": 64, "job": "ft-16b-r64"},
    )


def healthy() -> Report:
    """A run in which no rule found anything above info."""
    return Report(
        verdict=Verdict("Nothing was found: the run looks healthy on this input", None, 0.0),
        findings=(
            Finding("run.finished", "run/finished", "info", "info", 0.9, "The job ended with exit code 0", "All is well."),
        ),
        not_evaluated=(NotEvaluated("gpu/xid", "gpu.xid", ("xid",), "dmesg -T"),),
        links=(link(0, 1), link(1, 2)),
        inputs=(InputFile("rank0.log", "PyTorch log", 3_000, 40, 38),),
    )


def empty() -> Report:
    """Nothing at all: no input, no finding."""
    return Report(Verdict("No input could be read", None, 0.0))
