"""Which part of a full card decides: the part that alone would have made room, and is the largest such part.

A part decides only if it covers what was missing and takes a notable share of the card: contexts, one communicator
and a little cached memory belong to every job. The parts exclude each other, so a card has one cause.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from analyzer.derive.clock import NearTimes
from analyzer.derive.contexts import JobPids, are_contexts
from analyzer.derive.workload import Workload
from analyzer.evidence import Evidence
from analyzer.model import split_ref

Row = dict[str, Any]

NOTABLE_SHARE = 0.05
"""Of the capacity: 4 GiB of an 80 GiB card; a usual job holds 0.5 to 2 GiB of buffers and context."""
_USUAL_CONTEXT = 1 << 30
_LIVE_SHARE = 0.6
_STRAIGHT = 0.97
_LEAST_RISE = 0.15
_LEAST_POINTS = 5
_LARGE_REQUEST = 0.01
_COPIED = (
    *("host", "gpu", "bus_id", "rank", "capacity_bytes", "allocated_bytes", "unallocated_bytes", "comm_bytes"),
    *("comm_origin", "communicators", "other_bytes", "allowed_bytes", "peak_allocated_bytes", "ref", "process"),
)


def derive_shortfall(evidence: Evidence) -> None:
    """Fills ``shortfall`` for every card of the ledger on which a request failed."""
    near = NearTimes(evidence)
    events = {row["ref"]: row for row in evidence.rows("oom_event")}
    times = {
        ref: row["at"] if row["at"] is not None else near.before(row["stream"], ref) for ref, row in events.items()
    }
    view = _View(evidence)
    rows = [row for row in evidence.rows("ledger_total") if row["failed"]]
    evidence.set("shortfall", (_shortfall(row, times.get(row["ref"]), events.get(row["ref"]), view) for row in rows))


class _View:
    """What the other tables say of the processes and streams of a failure."""

    def __init__(self, evidence: Evidence) -> None:
        self.orphans = {row["pid"]: row["ref"] for row in evidence.rows("os_process") if row["ppid"] == 1}
        self.jobs = JobPids(evidence)
        self.failures = {row["stream"]: row for row in evidence.rows("memory_failure")}
        self.trends: dict[int, list[Row]] = defaultdict(list)
        for row in evidence.rows("trend"):
            self.trends[row["stream"]].append(row)
        self.free: dict[int, list[Row]] = defaultdict(list)
        for row in evidence.rows("free_trend"):
            self.free[row["input"]].append(row)
        self.holders: dict[int, dict[int, int]] = defaultdict(dict)
        for row in evidence.rows("device_holder"):
            if row["gpu"] is not None:
                self.holders[row["gpu"]][row["pid"]] = row["ref"]
        self.workload = Workload(evidence)
        self.pools = [row for row in evidence.rows("allocator_stat") if row["metric"] == "pool"]

    def growth(self, event: Row, capacity: int) -> int | None:
        """How much memory rose along a line before the failure; None where it did not."""
        for row in self.trends[event["stream"]]:
            rise = row["last_bytes"] - row["first_bytes"]
            straight = row["points"] >= _LEAST_POINTS and row["r2"] >= _STRAIGHT and rise >= _LEAST_RISE * capacity
            if straight and row["last_bytes"] >= 1.5 * row["first_bytes"] and not _asked_for(event, row, capacity):
                return int(rise)
        for row in self.free[split_ref(event["ref"])[0]]:
            steady = row["fall_bytes"] > 0 and row["spread_bytes"] <= 0.2 * row["fall_bytes"]
            if row["kind"] == "shape" and row["sizes"] >= _LEAST_POINTS and steady:
                return int(row["total_fall_bytes"])
        return None

    def pool(self, row: Row, event: Row) -> int:
        """What another framework took of the card when it started."""
        own = str(event["framework"] or "")
        found = [
            pool["bytes"]
            for pool in self.pools
            if pool["framework"] != own and pool["gpu"] in (None, row["gpu"]) and pool["host"] == row["host"]
        ]
        return max(found, default=0)


def _shortfall(row: Row, at: float | None, event: Row | None, view: _View) -> Row:
    requested, free, capacity = row["requested_bytes"], row["free_bytes"], row["capacity_bytes"]
    missing = requested - free if requested is not None and free is not None else None
    outside = row["context_bytes"]
    event = event or {"stream": None, "ref": row["ref"] or 0, "framework": None}
    others = [int(pid) for pid in (row["other_pids"] or "").split(",") if pid]
    contexts = are_contexts(row, others, view.jobs)
    decisive, size, second = _decide(row, missing, contexts, view.pool(row, event))
    seen = [ref for pid, ref in view.holders[row["gpu"]].items() if decisive == "other_processes" and not others]
    if decisive == "other_processes" and not others:
        own = {int(row["process"])} if row["process"] else set()
        others = sorted(set(view.holders[row["gpu"]]) - own)
    lost = [view.orphans[pid] for pid in others if pid in view.orphans]
    failure = view.failures.get(event["stream"], {})
    growth = view.growth(event, capacity) if event["stream"] is not None else None
    if decisive == "workload":
        decisive = view.workload.kind(failure, growth, capacity)
    weights, weights_ref = view.workload.weights()
    told = [failure["phase_ref"]] if failure.get("phase_ref") else []
    told += [weights_ref] if decisive == "weights" and weights_ref is not None else []
    return {name: row[name] for name in _COPIED} | {
        "process": row["process"] or (str(failure["pid"]) if failure.get("pid") else None),
        "refs": ",".join(dict.fromkeys([*row["refs"].split(","), *map(str, (*seen, *lost, *told))])),
        "other_pids": ",".join(map(str, others)) or None,
        "orphans": len(lost),
        "requested_bytes": requested,
        "free_bytes": free,
        "missing_bytes": missing,
        "outside_bytes": outside,
        "demand_bytes": _demand(row, requested, outside),
        "decisive": decisive,
        "decisive_bytes": size,
        "runner_up_bytes": second,
        "used_share": round(1 - free / capacity, 4) if free is not None and capacity else None,
        "phase": failure.get("phase"),
        "phase_ref": failure.get("phase_ref"),
        "growth_bytes": growth,
        "weights_bytes": weights,
        "at": at,
    }


def _asked_for(event: Row, trend: Row, capacity: int) -> bool:
    """Whether the rise of a step is the request itself: a program that takes a large piece each time leaks nothing."""
    requested = event.get("requested_bytes") or 0
    large = requested >= _LARGE_REQUEST * capacity
    return large and abs(requested - trend["slope_bytes_per_step"]) <= 0.1 * requested


def _demand(row: Row, requested: int | None, outside: int | None) -> int | None:
    """What the job needs: tensors at their peak, buffers, context."""
    if row["allocated_bytes"] is None or requested is None:
        return None
    held = row["allocated_bytes"] + (row["unallocated_bytes"] or 0)
    tensors = max(held + requested, row["peak_allocated_bytes"] or 0)
    return int(tensors + (row["comm_bytes"] or 0) + (outside or 0))


def _decide(row: Row, missing: int | None, contexts: bool, pool: int) -> tuple[str, int | None, int | None]:
    """The deciding part, its size and the size of the next."""
    capacity, requested = row["capacity_bytes"], row["requested_bytes"]
    if missing is None or requested is None:
        return "unknown", None, None
    if row["allowed_bytes"] is not None and missing <= 0:
        return "process_limit", row["allowed_bytes"], None
    if requested > capacity:
        return "workload", requested, None
    other = row["other_bytes"] or 0
    parts = {
        "contexts" if contexts else "other_processes": other if contexts or _named(row, other) else 0,
        "reserved_unallocated": row["unallocated_bytes"] or 0,
        "comm_buffers": row["comm_bytes"] or 0,
        "outside": max((row["context_bytes"] or 0) - _USUAL_CONTEXT, 0),
    }
    if pool >= NOTABLE_SHARE * capacity:
        largest = max(parts.values())
        if min(pool, largest) >= missing and largest >= 0.5 * pool:
            return "preallocation", pool, None
    ordered = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    (name, size), (_, second) = ordered[0], ordered[1]
    least = missing if name == "contexts" else NOTABLE_SHARE * capacity
    if missing > 0 and size >= missing and size >= least:
        return name, size, second
    if (row["allocated_bytes"] or 0) + requested >= _LIVE_SHARE * capacity:
        return "workload", row["allocated_bytes"], size
    return "unknown", size, second


def _named(row: Row, other: int) -> bool:
    """Memory of nobody in particular is another process's only where it is much: drivers keep some, texts round."""
    return bool(row["other_pids"]) or other >= 3 * NOTABLE_SHARE * row["capacity_bytes"]
