"""Who filled the card when a request of NCCL itself failed: its own buffers, the framework's pool, somebody else.

The request is small against the card, so what matters is how the rest is split:

    outside = own process - framework's pool  (a context takes 0.3 to 0.6 GiB of it, the rest is NCCL and libraries)
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from analyzer.derive.card_collection import collect_cards
from analyzer.derive.cards import Card
from analyzer.derive.contexts import JobPids
from analyzer.evidence import Evidence
from analyzer.model import split_ref

Row = dict[str, Any]

_BUFFERS = 4 << 30
_NOTABLE_SHARE = 0.05
_LATE_POINTS = 3
_LATE_REQUEST = 32 << 20
_KINDS = ("malloc_failed", "cuda_out_of_memory", "cuda_failure")
_OUT = "out of memory"
_NOT_MEMORY = ("nvls", "Multicast", "NVLS")
_MOST_REFS = 10


def derive_nccl_shortfall(evidence: Evidence) -> None:
    """Fills ``nccl_shortfall`` for every process in which NCCL got no memory."""
    failures = _failures(evidence)
    if not failures:
        evidence.set("nccl_shortfall", ())
        return
    cards = collect_cards(evidence)
    processes = {(row["host"], row["pid"]): row for row in evidence.rows("process")}
    by_rank = {row["rank"]: row for row in evidence.rows("process") if row["rank"] is not None}
    jobs = JobPids(evidence)
    rows = []
    for found in failures.values():
        first = found[0]
        pid = next((row["pid"] for row in found if row.get("pid") is not None), None)
        process = processes.get((first["host"], pid)) or by_rank.get(first["rank"]) or {}
        rows.append(_row(evidence, found, process, _card(cards, process, first), jobs))
    evidence.set("nccl_shortfall", rows)


def _failures(evidence: Evidence) -> dict[tuple[Any, ...], list[Row]]:
    """Failed requests, by process where NCCL's own line names one, else by what PyTorch says of its rank."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    streams: set[int] = set()
    ranks: set[int] = set()
    for row in sorted(evidence.rows("nccl_message"), key=lambda r: r["ref"]):
        if row["kind"] in _KINDS and _on_card(f"{row['site'] or ''} {row['text'] or ''}"):
            found[(row["host"], row["pid"])].append(row)
            streams.add(row["stream"])
            ranks |= {row["rank"]} - {None}
    for row in sorted(evidence.rows("distributed_error"), key=lambda r: r["ref"]):
        known = row["stream"] in streams or row["rank"] in ranks
        if row["kind"] == "nccl_error" and not known and _on_card(row["text"] or ""):
            found[(row["host"], row["rank"], row["stream"])].append({**row, "bytes": row["value"], "dev": None})
    return found


def _on_card(text: str) -> bool:
    """Whether a message is about memory of the card: not of the host, and no slot of the switches (NVLS)."""
    failed = "Failed to CUDA" in text or _OUT in text.lower()
    return failed and "host alloc" not in text and not any(word in text for word in _NOT_MEMORY)


def _card(cards: list[Card], process: Row, first: Row) -> Card | None:
    near = [c for c in cards if first["host"] is None or c.host in (None, first["host"])]
    for card in near:
        if process.get("bus_id") and card.bus_id == process["bus_id"]:
            return card
    gpu = process.get("gpu") if process.get("gpu") is not None else first.get("dev")
    for card in near:
        if gpu is not None and card.gpu == gpu:
            return card
    by_rank = [c for c in near if first["rank"] is not None and c.rank == first["rank"]]
    if by_rank:
        return by_rank[0]
    summed = [c for c in near if c.summary or c.step]
    if len(summed) == 1:
        return summed[0]
    sized = [c for c in near if c.memory is not None]
    return sized[0] if len(sized) == 1 else None


def _row(evidence: Evidence, found: list[Row], process: Row, card: Card | None, jobs: JobPids) -> Row:
    first = found[0]
    sizes = [row["bytes"] for row in found if row["bytes"]]
    comm = _begun(evidence, process, first)
    late_ref = _sized_before(evidence, first, comm)
    values = _split(card, process) if card is not None else {}
    requested = max(sizes, default=None)
    late = late_ref is not None and (comm or {}).get("nranks") is not None
    values |= {
        "host": first["host"],
        "rank": first["rank"] if first["rank"] is not None else process.get("rank"),
        "pid": first.get("pid") or process.get("pid"),
        "gpu": card.gpu if card else process.get("gpu", first.get("dev")),
        "bus_id": card.bus_id if card else process.get("bus_id"),
        "requested_bytes": requested,
        "communicators": process.get("communicators"),
        "nranks": comm["nranks"] if comm else None,
        "late": late,
        "late_ref": late_ref,
        "at": first["at"],
        "ref": first["ref"],
    }
    others = [int(pid) for pid in (values.get("other_pids") or "").split(",") if pid]
    values["decisive"] = _decide(values, others, jobs)
    refs = [*(row["ref"] for row in found[:3]), *values.pop("lines", ()), *([late_ref] if late_ref else [])]
    return values | {"refs": ",".join(str(ref) for ref in list(dict.fromkeys(refs))[:_MOST_REFS])}


def _split(card: Card, process: Row) -> Row:
    capacity, free, own = card.capacity(), card.free(), card.own()
    allocated, unallocated = card.allocated(), card.unallocated()
    foreign = card.foreign()
    used = own
    if used is None and card.memory is not None and card.memory["used_bytes"] is not None and not foreign:
        used = card.memory_amount()
    reserved = allocated.value + unallocated.value if allocated and unallocated else None
    lines = [ref for part in (used, allocated, unallocated, card.comm) if part for ref in part.refs[:2]]
    return {
        "free_bytes": free.value if free else None,
        "capacity_bytes": capacity.value if capacity else None,
        "own_bytes": used.value if used else None,
        "reserved_bytes": reserved,
        "allocated_bytes": allocated.value if allocated else None,
        "outside_bytes": max(used.value - reserved, 0) if used and reserved is not None else None,
        "comm_bytes": card.comm.value if card.comm and card.comm.value else None,
        "comm_origin": card.comm.origin if card.comm and card.comm.value else None,
        "other_bytes": sum(row["used_bytes"] for row in foreign) if foreign else None,
        "other_pids": ",".join(str(row["pid"]) for row in foreign) or None,
        "pool_bytes": card.pool["bytes"] if card.pool else None,
        "lines": lines,
    }


def _begun(evidence: Evidence, process: Row, first: Row) -> Row | None:
    """The communicator that was being made when the request failed."""
    open_: dict[str, Row] = {}
    for row in sorted(evidence.rows("communicator"), key=lambda r: r["ref"]):
        same = row["host"] == first["host"] and row["pid"] == (first.get("pid") or process.get("pid"))
        if not same or row["ref"] > first["ref"]:
            continue
        if row["state"] == "start":
            open_[row["handle"]] = row
        elif row["state"] == "complete":
            open_.pop(row["handle"], None)
    return max(open_.values(), key=lambda r: r["ref"], default=None)


def _sized_before(evidence: Evidence, first: Row, comm: Row | None) -> int | None:
    """A line that shows that memory was sized, or steps ran, before that communicator was begun."""
    begun = comm["ref"] if comm else first["ref"]
    number = split_ref(begun)[0]
    sized: list[int] = [
        row["ref"]
        for row in evidence.rows("engine_memory")
        if row["what"] in ("kv_cache", "graphs", "serving")
        and split_ref(row["ref"])[0] == number
        and row["ref"] < begun
    ]
    if sized:
        return max(sized)
    steps: list[int] = [
        row["ref"] for row in evidence.rows("memory_step") if split_ref(row["ref"])[0] == number and row["ref"] < begun
    ]
    return max(steps) if len(steps) >= _LATE_POINTS else None


def _decide(row: Row, others: list[int], jobs: JobPids) -> str:
    """The part that filled the card."""
    capacity = row.get("capacity_bytes") or 0
    notable = max(_NOTABLE_SHARE * capacity, 1 << 30)
    buffers = max(row.get("comm_bytes") or 0, (row.get("outside_bytes") or 0) if _many(row) else 0)
    other = row.get("other_bytes") or 0
    if (row.get("pool_bytes") or 0) >= 0.4 * capacity > 0:
        return "preallocation"
    if other >= notable and other > buffers and not all(jobs.belongs_elsewhere(p, row["gpu"]) for p in others):
        return "other_processes"
    if buffers >= _BUFFERS:
        return "comm_buffers"
    if row["late"] and ((row["requested_bytes"] or 0) >= _LATE_REQUEST or row["nranks"] == 1):
        return "lazy_communicator"
    return "no_headroom"


def _many(row: Row) -> bool:
    return (row.get("communicators") or 0) >= 2
