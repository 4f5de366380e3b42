"""Puts a Report together from evidence, derived tables and the ranked findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from analyzer.compare import compare
from analyzer.engine import Evaluation
from analyzer.evidence import Evidence
from analyzer.model import (
    EvidenceLine,
    Finding,
    InventoryRow,
    LedgerCard,
    LedgerEntry,
    LinkRow,
    NotEvaluated,
    Report,
    TimelineRow,
    Verdict,
    Where,
)

Row = dict[str, Any]

SLOW_RATIO = 1.5
_MOST_EVENTS = 500
_MOST_LINES = 6
_FAULTS = frozenset({"oom", "cuda_error", "kernel_assert", "xid", "oom_kill", "link_down", "gpu_lost", "mce", "dpc"})
_REAL = ("error", "warning")


def assemble(evidence: Evidence, evaluation: Evaluation, baseline: Evidence | None, meta: dict[str, Any]) -> Report:
    """The finished report."""
    findings = tuple(evaluation.findings)
    return Report(
        verdict=_verdict(evidence, findings),
        findings=findings,
        not_evaluated=tuple(_open_questions(evaluation)),
        ledger=tuple(_ledger(evidence)),
        links=tuple(_links(evidence)),
        timeline=tuple(_timeline(evidence)),
        inventory=tuple(_inventory(evidence)),
        inputs=evidence.inputs,
        problems=tuple(evidence.problems),
        baseline=tuple(compare(evidence, baseline)),
        meta=meta,
    )


def _open_questions(evaluation: Evaluation) -> Iterable[NotEvaluated]:
    """Rules that lacked input, without those whose cause another rule has found."""
    found = {finding.cause for finding in evaluation.findings}
    return (row for row in evaluation.not_evaluated if row.cause not in found or not row.missing)


def _verdict(evidence: Evidence, findings: tuple[Finding, ...]) -> Verdict:
    roots = [f for f in findings if f.role == "root" and f.severity in _REAL]
    if roots:
        top = roots[0]
        place = where_words(top.where)
        return Verdict(f"{top.title}{f' ({place})' if place else ''}", top.cause, top.confidence, top.where)
    failures = [row for row in evidence.rows("event") if row["kind"] in _FAULTS]
    if any(f.cause.startswith("symptom.") for f in findings) or failures:
        first = next((row for row in failures if row["weight"] > 0), failures[0] if failures else None)
        what = f"; the first fault is: {first['text'][:160]}" if first else ""
        return Verdict(f"No cause is provable from this input{what}", None, 0.0)
    if not any(entry.recognised_lines for entry in evidence.inputs):
        return Verdict("No line of the input was understood", None, 0.0)
    unread = sum(1 for problem in evidence.problems if problem.line == 0)
    cut = f"; {unread} of the inputs could not be read whole" if unread else ""
    return Verdict(f"No fault found in this input{cut}", None, 0.0)


def where_words(where: Where) -> str:
    """``host node-a, rank 2, GPU 2``."""
    parts = []
    for name, values in (
        ("host", where.host),
        ("rank", where.rank),
        ("GPU", where.gpu),
        ("link", where.link),
        ("process", where.process),
    ):
        if values:
            shown = ", ".join(str(value) for value in values[:4])
            parts.append(f"{name} {shown}{' ...' if len(values) > 4 else ''}")
    if where.bus_id and not where.gpu:
        parts.append("GPU at " + ", ".join(where.bus_id[:4]))
    return ", ".join(parts)


def _cited(evidence: Evidence, refs: object, most: int = _MOST_LINES) -> tuple[EvidenceLine, ...]:
    numbers = [int(ref) for ref in str(refs).split(",") if ref.isdigit()] if refs else []
    return tuple(evidence.cite(ref) for ref in numbers[:most])


def _ledger(evidence: Evidence) -> Iterable[LedgerCard]:
    entries: dict[tuple[object, ...], list[LedgerEntry]] = defaultdict(list)
    for row in evidence.rows("ledger"):
        lines = _cited(evidence, row["refs"])
        entry = LedgerEntry(row["entry"], row["bytes"], row["origin"], row["error_bytes"] or 0, _entry_note(row), lines)
        entries[(row["host"], row["gpu"], row["bus_id"])].append(entry)
    for row in evidence.rows("ledger_total"):
        demand, note = _demand(row)
        yield LedgerCard(
            host=row["host"],
            gpu=row["gpu"],
            bus_id=row["bus_id"],
            rank=row["rank"],
            name=row["name"],
            total_bytes=row["total_bytes"],
            driver_reserved_bytes=row["driver_reserved_bytes"],
            capacity_bytes=row["capacity_bytes"],
            used_bytes=row["used_bytes"],
            entries=tuple(entries[(row["host"], row["gpu"], row["bus_id"])]),
            balanced=bool(row["balanced"]),
            tolerance_bytes=row["tolerance_bytes"] or 0,
            note=row["note"] or "",
            communicators=row["communicators"] or 0,
            requested_bytes=row["requested_bytes"],
            failed=bool(row["failed"]),
            demand_bytes=demand,
            demand_note=note,
        )


def _entry_note(row: Row) -> str:
    if row["entry"] == "comm_buffers" and row["bytes"]:
        how = "ALLOC lines of NCCL" if row["origin"] == "computed" else "channels, peers and version; no ALLOC lines"
        return f"from {how}"
    if row["entry"] == "context_and_other" and row["origin"] == "computed":
        return "process minus framework minus communication buffers"
    return ""


def _demand(row: Row) -> tuple[int | None, str]:
    """What the job would have needed: tensors at their peak, buffers, context and the request that failed."""
    outside = (row["comm_bytes"] or 0) + (row["context_bytes"] or 0)
    if row["allocated_bytes"] is None or not row["failed"]:
        return None, ""
    now = row["allocated_bytes"] + (row["unallocated_bytes"] or 0) + (row["requested_bytes"] or 0)
    if row["peak_allocated_bytes"] and row["peak_allocated_bytes"] > now:
        return row[
            "peak_allocated_bytes"
        ] + outside, "peak of the run without these communicators, plus buffers and context"
    return now + outside, "reserved, the failed request, buffers and context"


def _links(evidence: Evidence) -> Iterable[LinkRow]:
    for row in evidence.rows("edge"):
        reference = row["class_latency_us"] if (row["class_size"] or 0) >= 2 else row["best_latency_us"]
        ratio = round(row["latency_us"] / reference, 2) if row["latency_us"] and reference else None
        verdict = "unmeasured" if row["latency_us"] is None and row["bandwidth_gbps"] is None else "normal"
        if ratio is not None and ratio >= SLOW_RATIO:
            verdict = "slow"
        yield LinkRow(
            host=row["host"],
            a=f"GPU{row['a']}",
            b=f"GPU{row['b']}",
            path=row["path"],
            nvlinks=row["nvlinks"],
            latency_us=row["latency_us"],
            bandwidth_gbps=row["bandwidth_gbps"],
            class_latency_us=reference,
            class_bandwidth_gbps=row["class_bandwidth_gbps"]
            if (row["class_size"] or 0) >= 2
            else row["best_bandwidth_gbps"],
            ratio=ratio,
            in_ring=None if row["ring_channels"] is None else row["ring_channels"] > 0,
            transport=row["transport"],
            verdict=verdict,
            evidence=_cited(evidence, row["refs"], 3),
        )


def _timeline(evidence: Evidence) -> Iterable[TimelineRow]:
    rows = evidence.rows("event")
    first = next((row for row in rows if row["weight"] == 2 and row["clock"] != "none"), None)
    first = first or next((row for row in rows if row["weight"] == 2), rows[0] if rows else None)
    for row in rows[:_MOST_EVENTS]:
        yield TimelineRow(
            at=row["at"] if row["at"] is not None else row["boot_s"],
            clock=row["clock"],
            host=row["host"],
            rank=row["rank"],
            kind=row["kind"],
            text=row["text"],
            first=row is first,
            evidence=(evidence.cite(row["ref"]),),
        )


def _inventory(evidence: Evidence) -> Iterable[InventoryRow]:
    for row in evidence.rows("process"):
        parts = [f"rank {row['rank']}" if row["rank"] is not None else ""]
        parts += [f"GPU {row['gpu']}" if row["gpu"] is not None else "", row["bus_id"] or ""]
        parts += [f"{row['communicators']} communicators" if row["communicators"] else ""]
        yield InventoryRow("process", row["host"], str(row["pid"]), ", ".join(p for p in parts if p))
    for row in evidence.rows("gpu"):
        total = f", {row['total_bytes'] / (1 << 30):.2f} GiB" if row["total_bytes"] else ""
        name = f"GPU {row['gpu']}" if row["gpu"] is not None else "GPU"
        yield InventoryRow(
            "gpu", row["host"], name, f"{row['name'] or 'unknown model'} at {row['bus_id'] or 'unknown bus id'}{total}"
        )
    seen: set[tuple[object, ...]] = set()
    for row in evidence.rows("version"):
        key = (row["host"], row["component"], row["value"])
        if key not in seen:
            seen.add(key)
            yield InventoryRow("version", row["host"], row["component"], row["value"], (evidence.cite(row["ref"]),))
