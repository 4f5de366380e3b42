"""Stacks of all ranks side by side: who stands in a collective, and who stands elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_COLLECTIVE = re.compile(
    r"distributed_c10d|all_reduce|allreduce|all_gather|allgather|reduce_scatter|barrier|broadcast|nccl|all_to_all|"
    r"ProcessGroup|_sync_params|c10d_logger"
)
_WAITING = re.compile(
    r"synchronize|cudaStreamSynchronize|cudaEventSynchronize|cuStreamSynchronize|\bitem\b|backward|\bcpu\b"
)


def from_stacks(evidence: Evidence) -> Iterator[Row]:
    """Rows of ``missing_rank``: the fewer ranks that stand elsewhere than most, who are in one collective."""
    main: dict[int, Row] = {}
    for row in evidence.rows("stack"):
        if row["rank"] is not None and row["active"]:
            main[row["rank"]] = row
    if len(main) < 2:
        return
    inside = {rank: row for rank, row in main.items() if _COLLECTIVE.search(row["frames"] or "")}
    inside |= {rank: row for rank, row in main.items() if _WAITING.search((row["frames"] or "").partition(" < ")[0])}
    outside = {rank: row for rank, row in main.items() if rank not in inside}
    if outside and len(outside) < len(inside):
        yield _row(outside, inside, "working", 0.7)
        return
    places = Counter(row["place"] for row in inside.values() if row["place"])
    if len(places) > 1 and not outside:
        most, number = places.most_common(1)[0]
        others = {rank: row for rank, row in inside.items() if row["place"] not in (None, most)}
        if others and len(others) < number:
            yield _row(others, {rank: row for rank, row in inside.items() if rank not in others}, "extra_call", 0.65)


def _row(culprits: dict[int, Row], others: dict[int, Row], verdict: str, confidence: float) -> Row:
    first = culprits[min(culprits)]
    stood = Counter(row["place"] or row["frames"] for row in others.values()).most_common(1)[0][0]
    here = first["place"] or (first["frames"] or "").partition(" < ")[0]
    rows = [*culprits.values(), *list(others.values())[:8]]
    return {
        "verdict": verdict,
        "rank": ",".join(str(rank) for rank in sorted(culprits)),
        "waiting": len(others),
        "source": "stacks",
        "detail": f"stood at {here} while the others waited in a collective at {stood}",
        "confidence": confidence,
        "at": first["at"],
        "ref": first["ref"],
        "refs": ",".join(str(row["ref"]) for row in rows),
    }
