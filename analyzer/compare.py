"""Compares a failing run with an earlier good one: peak of the framework, communicators, what the card lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analyzer.derive.reference_run import peak_of, reference_peak
from analyzer.evidence import Evidence
from analyzer.model import Comparison, Figure

Row = dict[str, Any]


def compare(evidence: Evidence, baseline: Evidence | None) -> Iterable[Comparison]:
    """Lines of the comparison; empty where there is no earlier run."""
    peak = reference_peak(evidence, baseline)
    if peak is None:
        return
    good = baseline or evidence
    lines = (evidence.cite(peak["ref"]),) if peak["ref"] is not None else ()
    before = Figure(peak["bytes"], "bytes", "read", source="peak that the earlier run printed", evidence=lines)
    failed = [row for row in evidence.rows("ledger_total") if row["failed"] and row["allocated_bytes"] is not None]
    card = max(failed, key=lambda row: row["requested_bytes"] or 0) if failed else None
    now = _highest(evidence, peak.get("stream"))
    yield Comparison(
        "framework allocated, peak", before, now, "the framework's own count; no communication buffers in it"
    )
    if card is None:
        return
    comm = card["comm_bytes"]
    if comm is not None:
        before_comm = _comm(good) if baseline is not None else 0
        yield Comparison(
            "communication buffers",
            Figure(before_comm, "bytes", "computed") if before_comm is not None else None,
            Figure(comm, "bytes", card["comm_origin"] or "computed"),
            f"{card['communicators'] or 0} communicators on this card",
        )
        outside = comm + (card["context_bytes"] or 0)
        need = peak["bytes"] + outside
        short = need - card["capacity_bytes"]
        yield Comparison(
            "demand against capacity",
            Figure(card["capacity_bytes"], "bytes", "computed", source="capacity of the card"),
            Figure(need, "bytes", "computed", source="peak + communication buffers + context"),
            f"{short / 1e9:.1f} GB more than the card has" if short > 0 else "fits",
        )


def _highest(evidence: Evidence, without: int | None) -> Figure | None:
    rows = [r for r in evidence.rows("memory_step") if r["stream"] != without and peak_of(r) is not None]
    if not rows:
        return None
    best = max(rows, key=lambda row: peak_of(row) or 0)
    return Figure(float(peak_of(best) or 0), "bytes", "read", evidence=(evidence.cite(best["ref"]),))


def _comm(evidence: Evidence) -> int | None:
    sizes = [row["bytes"] for row in evidence.rows("comm_memory")]
    return max(sizes) if sizes else 0
