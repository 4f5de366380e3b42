"""The edges of NCCL's rings: which rank sends to which over what, in how many channels.

The ring order that rank 0 prints decides; where no rank 0 logged, the connections that each rank made for
collectives stand in. Communicators with the same members are counted once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]
Thread = tuple[str | None, int]


@dataclass(slots=True)
class RingEdge:
    """One directed edge; ``channels`` counts the rings that use it."""

    comm_id: str | None
    src: int
    dst: int
    transport: str | None
    channels: int
    ref: int
    host_a: str | None = None
    host_b: str | None = None
    src_gpu: int | None = None
    dst_gpu: int | None = None


@dataclass(slots=True)
class _Member:
    host: str | None
    gpu: int | None


def ring_edges(evidence: Evidence) -> list[RingEdge]:
    """Edges of the largest communicators, sorted by ranks."""
    comms = evidence.rows("communicator")
    if not comms:
        return []
    largest = max(row["nranks"] for row in comms)
    members: dict[str | None, dict[int, _Member]] = defaultdict(dict)
    spans: dict[Thread, list[tuple[int, str | None, int]]] = defaultdict(list)
    for row in sorted(comms, key=lambda r: r["ref"]):
        gpu = row["nvml_dev"] if row["nvml_dev"] is not None else row["cuda_dev"]
        members[row["comm_id"]].setdefault(row["comm_rank"], _Member(row["host"], gpu))
        spans[(row["host"], row["pid"])].append((row["ref"], row["comm_id"], row["nranks"]))
    chosen = _one_per_member_set(comms, members, largest)
    found: dict[tuple[str | None, int, int], RingEdge] = {}
    orders = _orders(evidence, spans, chosen)
    for row, comm_id in _connections(evidence, spans, chosen):
        key = (comm_id, row["src"], row["dst"])
        in_ring = orders.get(comm_id)
        if in_ring is not None and (row["channel"], row["src"], row["dst"]) not in in_ring:
            continue
        edge = found.get(key)
        if edge is None:
            found[key] = RingEdge(comm_id, row["src"], row["dst"], row["transport"], 1, row["ref"])
        else:
            edge.channels += 1
    for edge in found.values():
        ends = members[edge.comm_id]
        a, b = ends.get(edge.src), ends.get(edge.dst)
        edge.host_a, edge.src_gpu = (a.host, a.gpu) if a else (None, None)
        edge.host_b, edge.dst_gpu = (b.host, b.gpu) if b else (edge.host_a, None)
    return sorted(found.values(), key=lambda e: (e.comm_id or "", e.src, e.dst))


def _one_per_member_set(
    comms: list[Row], members: dict[str | None, dict[int, _Member]], largest: int
) -> set[str | None]:
    """The first of the largest communicators for each set of member GPUs."""
    seen: dict[tuple[tuple[int, str | None, int | None], ...], str | None] = {}
    for row in comms:
        if row["nranks"] == largest and largest > 1:
            ends = members[row["comm_id"]]
            signature = tuple(sorted((rank, m.host, m.gpu) for rank, m in ends.items()))
            seen.setdefault(signature, row["comm_id"])
    return set(seen.values())


def _comm_at(spans: list[tuple[int, str | None, int]], ref: int) -> str | None:
    """The communicator whose line stands last before ``ref`` (first after it for versions without a start line)."""
    before = [comm_id for at, comm_id, _ in spans if at <= ref]
    if before:
        return before[-1]
    return spans[0][1] if spans else None


def _orders(
    evidence: Evidence, spans: dict[Thread, list[tuple[int, str | None, int]]], chosen: set[str | None]
) -> dict[str | None, set[tuple[int, int, int]]]:
    """Per communicator the (channel, from, to) triples of its rings, where rank 0 printed them."""
    found: dict[str | None, set[tuple[int, int, int]]] = {}
    for row in evidence.rows("ring_order"):
        comm_id = _comm_at(spans.get((row["host"], row["pid"]), []), row["ref"])
        ranks = [int(rank) for rank in row["ranks"].split()]
        if comm_id not in chosen or len(ranks) < 2:
            continue
        triples = found.setdefault(comm_id, set())
        triples |= {(row["channel"], a, b) for a, b in zip(ranks, [*ranks[1:], ranks[0]], strict=True)}
    return found


def _connections(
    evidence: Evidence, spans: dict[Thread, list[tuple[int, str | None, int]]], chosen: set[str | None]
) -> list[tuple[Row, str | None]]:
    """Connections for collectives with the communicator that they belong to, each once."""
    found: dict[tuple[str | None, int, int, int], tuple[Row, str | None]] = {}
    for row in sorted(evidence.rows("channel"), key=lambda r: r["ref"]):
        if row["conn"] not in (0, None):
            continue
        comm_id = _comm_at(spans.get((row["host"], row["pid"]), []), row["ref"])
        if comm_id in chosen:
            found.setdefault((comm_id, row["channel"], row["src"], row["dst"]), (row, comm_id))
    return list(found.values())
