"""The time line: every event of a failure with its clock, and how much it can say of the cause.

Weight 2 can be a cause, 1 raises a question, 0 only follows (time-outs, closed connections, aborts).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.derive.clock import NearTimes
from analyzer.evidence import Evidence

Row = dict[str, Any]

FOLLOWER_XIDS = frozenset({43, 45, 108, 137, 144, 145, 146, 147, 148, 150, 154})
_FOLLOWER_WARNS = frozenset({"remote_closed", "recv_failed", "proxy_failed", "aborted"})
_KERNEL_WEIGHTS = {
    "aer": 1,
    "link_down": 2,
    "oom_kill": 2,
    "mce": 2,
    "gpu_lost": 2,
    "iommu_fault": 2,
    "dpc": 2,
    "hung_task": 1,
    "segfault": 1,
}


def derive_timeline(evidence: Evidence) -> None:
    """Fills ``event``, dated events first by time, then the others by their place."""
    near = NearTimes(evidence)
    rows = [*_failures(evidence), *_kernel(evidence), *_exits(evidence)]
    for row in rows:
        row["clock"] = "wall" if row.get("at") is not None else "boot" if row.get("boot_s") is not None else "none"
        if row["clock"] == "none" and (at := near.before(row.pop("stream"), row["ref"])) is not None:
            row["clock"], row["at"] = "after", at
    order = {"wall": 0, "after": 0, "boot": 1, "none": 2}
    rows.sort(key=lambda r: (order[r["clock"]], r.get("at") or r.get("boot_s") or 0.0, -r["weight"], r["ref"]))
    evidence.set("event", rows)


def _event(row: Row, kind: str, text: str, weight: int, gpu: int | None = None) -> Row:
    return {
        "at": row["at"],
        "boot_s": row.get("boot_s"),
        "stream": row["stream"],
        "host": row["host"],
        "rank": row["rank"],
        "gpu": gpu,
        "kind": kind,
        "text": text,
        "weight": weight,
        "ref": row["ref"],
    }


def _failures(evidence: Evidence) -> Iterator[Row]:
    for row in evidence.rows("oom_event"):
        yield _event(row, "oom", row["text"] or "out of memory", 2, row["gpu"])
    for row in evidence.rows("cuda_error"):
        yield _event(row, "cuda_error", row["text"] or row["name"] or "CUDA error", 1)
    for row in evidence.rows("kernel_assert"):
        yield _event(row, "kernel_assert", f"{row['site']}: {row['condition']}", 2)
    for row in evidence.rows("exception"):
        yield _event(row, "exception", f"{row['type']}: {row['message'] or ''}", 1)
    for row in evidence.rows("collective_timeout"):
        limit = f" after {row['ran_ms'] / 1000:.0f} s" if row["ran_ms"] else ""
        yield _event(row, "collective_timeout", f"{row['operation']} {row['seq']} timed out{limit}", 0)
    for row in evidence.rows("distributed_error"):
        yield _event(row, row["kind"], row["text"] or row["kind"], 0)
    for row in evidence.rows("nccl_message"):
        if row["level"] == "WARN":
            weight = 0 if row["kind"] in _FOLLOWER_WARNS else 1
            yield _event(row, "nccl_warn", row["text"] or "", weight, row["dev"])
    for row in evidence.rows("device_fault"):
        yield _event(row, "device_fault", row["text"] or "", 1, row["gpu"])


def _kernel(evidence: Evidence) -> Iterator[Row]:
    for row in evidence.rows("xid"):
        weight = 0 if row["code"] in FOLLOWER_XIDS else 2
        yield _event(row, "xid", f"Xid {row['code']} on {row['bus_id']}: {row['text'] or ''}", weight)
    for row in evidence.rows("sxid"):
        if row["severity"] == "Fatal":
            yield _event(row, "sxid", f"SXid {row['code']} on {row['bus_id']}: {row['text'] or ''}", 1)
    for row in evidence.rows("kernel_event"):
        if row["kind"] in _KERNEL_WEIGHTS:
            fatal = row["kind"] == "aer" and "(fatal)" in (row["severity"] or "").lower()
            weight = 2 if fatal else _KERNEL_WEIGHTS[row["kind"]]
            yield _event(row, row["kind"], row["text"] or row["kind"], weight)


def _exits(evidence: Evidence) -> Iterator[Row]:
    for row in evidence.rows("exit_status"):
        how = f"signal {row['signal']}" if row["signal"] else f"exit code {row['code']}"
        yield _event(row, "exit", f"process {row['pid']} ended: {how} (says {row['says']})", 0)
