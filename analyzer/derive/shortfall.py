"""Which part of a full card decides: the part that alone would have made room, and is the largest such part.

A part decides only if it covers what was missing and takes a notable share of the card: contexts, one communicator
and a little cached memory belong to every job.
"""

from __future__ import annotations

from typing import Any

from analyzer.derive.clock import NearTimes
from analyzer.evidence import Evidence

Row = dict[str, Any]

NOTABLE_SHARE = 0.05
"""Of the capacity: 4 GiB of an 80 GiB card; a usual job holds 0.5 to 2 GiB of buffers and context."""
_USUAL_CONTEXT = 1 << 30
_LIVE_SHARE = 0.6


def derive_shortfall(evidence: Evidence) -> None:
    """Fills ``shortfall`` for every card of the ledger on which a request failed."""
    near = NearTimes(evidence)
    times = {
        row["ref"]: row["at"] if row["at"] is not None else near.before(row["stream"], row["ref"])
        for row in evidence.rows("oom_event")
    }
    orphans = {row["pid"]: row["ref"] for row in evidence.rows("os_process") if row["ppid"] == 1}
    rows = [row for row in evidence.rows("ledger_total") if row["failed"]]
    evidence.set("shortfall", (_shortfall(row, times.get(row["ref"]), orphans) for row in rows))


def _shortfall(row: Row, at: float | None, orphans: dict[int, int]) -> Row:
    requested, free, capacity = row["requested_bytes"], row["free_bytes"], row["capacity_bytes"]
    missing = requested - free if requested is not None and free is not None else None
    outside = row["context_bytes"]
    demand = None
    if row["allocated_bytes"] is not None and requested is not None:
        held = row["allocated_bytes"] + (row["unallocated_bytes"] or 0)
        tensors = max(held + requested, row["peak_allocated_bytes"] or 0)
        demand = tensors + (row["comm_bytes"] or 0) + (outside or 0)
    decisive, size, second = _decide(row, missing)
    others = [int(pid) for pid in (row["other_pids"] or "").split(",") if pid]
    lost = [orphans[pid] for pid in others if pid in orphans]
    names = ("host", "gpu", "bus_id", "rank", "capacity_bytes", "allocated_bytes", "unallocated_bytes", "comm_bytes")
    more = ("comm_origin", "communicators", "other_bytes", "allowed_bytes", "peak_allocated_bytes", "other_pids", "ref")
    return {name: row[name] for name in names + more} | {
        "refs": ",".join([row["refs"], *map(str, lost)]),
        "orphans": len(lost),
        "requested_bytes": requested,
        "free_bytes": free,
        "missing_bytes": missing,
        "outside_bytes": outside,
        "demand_bytes": demand,
        "decisive": decisive,
        "decisive_bytes": size,
        "runner_up_bytes": second,
        "used_share": round(1 - free / capacity, 4) if free is not None and capacity else None,
        "at": at,
    }


def _decide(row: Row, missing: int | None) -> tuple[str, int | None, int | None]:
    """The deciding part, its size and the size of the next."""
    capacity, requested = row["capacity_bytes"], row["requested_bytes"]
    if missing is None or requested is None:
        return "unknown", None, None
    if row["allowed_bytes"] is not None and missing <= 0:
        return "process_limit", row["allowed_bytes"], None
    if requested > capacity:
        return "workload", requested, None
    parts = {
        "other_processes": row["other_bytes"] or 0,
        "reserved_unallocated": row["unallocated_bytes"] or 0,
        "comm_buffers": row["comm_bytes"] or 0,
        "outside": max((row["context_bytes"] or 0) - _USUAL_CONTEXT, 0),
    }
    ordered = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    (name, size), (_, second) = ordered[0], ordered[1]
    if missing > 0 and size >= missing and size >= NOTABLE_SHARE * capacity:
        return name, size, second
    if (row["allocated_bytes"] or 0) + requested >= _LIVE_SHARE * capacity:
        return "workload", row["allocated_bytes"], size
    return "unknown", size, second
