"""The memory ledger of each GPU: its parts add up to what CUDA can hand out.

    capacity = framework allocated + reserved but unallocated + communication buffers
             + context and libraries + other processes + free

Each part is read, computed or estimated. Where two tools print the same quantity, the finer figure is taken.
"""

from __future__ import annotations

from typing import Any

from analyzer.derive.card_collection import collect_cards
from analyzer.derive.cards import CONTEXT_USUAL, Card
from analyzer.derive.reference_run import reference_peak
from analyzer.evidence import Evidence

Row = dict[str, Any]

_ROUNDING = 4 << 20


def derive_ledger(evidence: Evidence, baseline: Evidence | None) -> None:
    """Fills ``ledger`` and ``ledger_total`` for every card whose capacity is known."""
    peak = reference_peak(evidence, baseline)
    parts: list[Row] = []
    totals: list[Row] = []
    for card in collect_cards(evidence):
        capacity = card.capacity()
        if capacity is None:
            continue
        entries = _entries(card, capacity.value)
        identity = {"host": card.host, "gpu": card.gpu, "bus_id": card.bus_id, "rank": card.rank}
        parts.extend(identity | entry for entry in entries)
        totals.append(identity | _total(card, entries, peak))
    evidence.set("ledger", parts)
    evidence.set("ledger_total", totals)


def _entry(name: str, size: int, origin: str, error: int, refs: tuple[int, ...]) -> Row:
    return {
        "entry": name,
        "bytes": size,
        "origin": origin,
        "error_bytes": error,
        "refs": ",".join(str(ref) for ref in dict.fromkeys(refs)),
    }


def _entries(card: Card, capacity: int) -> list[Row]:
    """The parts of one card in the order of the report."""
    entries: list[Row] = []
    own = card.own()
    allocated, unallocated = card.allocated(), card.unallocated()
    other = card.other(capacity)
    if allocated:
        entries.append(
            _entry("framework_allocated", allocated.value, allocated.origin, allocated.error, allocated.refs)
        )
    if unallocated:
        entries.append(
            _entry(
                "framework_reserved_unallocated",
                unallocated.value,
                unallocated.origin,
                unallocated.error,
                unallocated.refs,
            )
        )
    comm = card.comm
    if comm is not None:
        entries.append(_entry("comm_buffers", comm.value, comm.origin, comm.error, comm.refs))
    if own is not None and allocated:
        entries.extend(
            _rest(
                card,
                own.value - sum(e["bytes"] for e in entries),
                sum(e["error_bytes"] for e in entries) + own.error,
                own.refs,
            )
        )
    elif allocated and card.free() is not None:
        free_ = card.free()
        assert free_ is not None
        left = capacity - free_.value - sum(e["bytes"] for e in entries) - (other.value if other else 0)
        entries.extend(_rest(card, left, free_.error + sum(e["error_bytes"] for e in entries), free_.refs))
    elif own is not None:
        entries.append(
            _entry("context_and_other", own.value - (comm.value if comm else 0), "computed", own.error, own.refs)
        )
    if other is not None:
        entries.append(_entry("other_processes", other.value, other.origin, other.error, other.refs))
    free = card.free()
    if free is not None:
        entries.append(_entry("free", free.value, free.origin, free.error, free.refs))
    return entries


def _rest(card: Card, rest: int, error: int, refs: tuple[int, ...]) -> list[Row]:
    """What the process holds beyond the named parts: its context, and a rest that nothing explains."""
    if rest <= 2 * CONTEXT_USUAL or (
        card.comm is not None and card.comm.origin == "estimated" and rest <= CONTEXT_USUAL + card.comm.error
    ):
        return [_entry("context_and_other", rest, "computed", error, refs)]
    return [
        _entry("context_and_other", CONTEXT_USUAL, "estimated", CONTEXT_USUAL // 2, ()),
        _entry("unexplained", rest - CONTEXT_USUAL, "computed", error + CONTEXT_USUAL // 2, refs),
    ]


def _total(card: Card, entries: list[Row], peak: Row | None) -> Row:
    capacity = card.capacity()
    assert capacity is not None
    size = {entry["entry"]: entry["bytes"] for entry in entries}
    printed = sum(e["error_bytes"] for e in entries if e["origin"] == "read")
    tolerance = printed + capacity.error + max(_ROUNDING, capacity.value // 1000)
    complete = {"free", "context_and_other"} <= size.keys()
    gap = capacity.value - sum(size.values())
    balanced = complete and abs(gap) <= tolerance and size.get("context_and_other", 0) >= -tolerance
    own, free = card.own(), card.free()
    refs = [ref for entry in entries for ref in entry["refs"].split(",") if ref]
    main = card.event["ref"] if card.event else int(refs[0]) if refs else None
    return {
        "name": card.name,
        "total_bytes": card.total_bytes,
        "driver_reserved_bytes": card.reserved_bytes,
        "capacity_bytes": capacity.value,
        "used_bytes": capacity.value - free.value if free else None,
        "free_bytes": free.value if free else None,
        "own_bytes": own.value if own else None,
        "other_bytes": size.get("other_processes"),
        "other_pids": ",".join(str(pid) for pid in sorted({row["pid"] for row in card.foreign()})) or None,
        "allocated_bytes": size.get("framework_allocated"),
        "unallocated_bytes": size.get("framework_reserved_unallocated"),
        "comm_bytes": size.get("comm_buffers"),
        "comm_origin": card.comm.origin if card.comm else None,
        "communicators": card.communicators,
        "context_bytes": size.get("context_and_other", 0) + size.get("unexplained", 0)
        if "context_and_other" in size
        else None,
        "requested_bytes": card.event["requested_bytes"] if card.event else None,
        "allowed_bytes": card.event["allowed_bytes"] if card.event else None,
        "peak_allocated_bytes": peak["bytes"] if peak else None,
        "balanced": balanced,
        "tolerance_bytes": tolerance,
        "note": _note(complete, gap, tolerance, size),
        "failed": card.event is not None,
        "ref": main,
        "process": str(card.own_pid) if card.own_pid is not None else None,
        "refs": ",".join(dict.fromkeys([*refs, *([str(peak["ref"])] if peak and peak["ref"] is not None else [])])),
    }


def _note(complete: bool, gap: int, tolerance: int, size: dict[str, int]) -> str:
    if not complete:
        missing = [
            what
            for name, what in (
                ("free", "free memory (nvidia-smi -q)"),
                ("context_and_other", "memory of the job's process (nvidia-smi -q)"),
            )
            if name not in size
        ]
        return "cannot add up without " + " and ".join(missing)
    if abs(gap) > tolerance:
        return f"the parts differ from the capacity by {gap / (1 << 20):.0f} MiB"
    if size.get("unexplained"):
        return f"{size['unexplained'] / (1 << 30):.2f} GiB are held outside the framework and no line explains them"
    return ""
