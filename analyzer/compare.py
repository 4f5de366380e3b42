"""Compares a failing run with an earlier good one: memory and demand, and with a baseline also versions and links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analyzer.derive.reference_run import peak_of, reference_peak
from analyzer.evidence import Evidence
from analyzer.model import Comparison, Figure

Row = dict[str, Any]

_NOTABLE = 0.2


def compare(evidence: Evidence, baseline: Evidence | None) -> Iterable[Comparison]:
    """Lines of the comparison; empty where there is no earlier run."""
    peak = reference_peak(evidence, baseline)
    if peak is not None:
        yield from _memory(evidence, baseline, peak)
    if baseline is not None:
        yield from _versions(evidence, baseline)
        yield from _links(evidence, baseline)


def _memory(evidence: Evidence, baseline: Evidence | None, peak: Row) -> Iterable[Comparison]:
    lines = (evidence.cite(peak["ref"]),) if peak["ref"] is not None else ()
    before = Figure(peak["bytes"], "bytes", "read", source="peak that the earlier run printed", evidence=lines)
    now = _highest(evidence, peak.get("stream"))
    yield Comparison(
        "framework allocated, peak", before, now, "the framework's own count; no communication buffers in it"
    )
    failed = [row for row in evidence.rows("shortfall") if row["demand_bytes"] is not None]
    if not failed:
        return
    card = max(failed, key=lambda row: row["demand_bytes"])
    comm_before = _comm(baseline) if baseline is not None else 0
    if card["comm_bytes"] is not None:
        yield Comparison(
            "communication buffers",
            Figure(comm_before, "bytes", "computed") if comm_before is not None else None,
            Figure(card["comm_bytes"], "bytes", card["comm_origin"] or "computed"),
            f"{card['communicators'] or 0} communicators on the card that failed",
        )
    context = card["outside_bytes"] or 0
    needed_before = peak["bytes"] + (comm_before or 0) + context
    short = card["demand_bytes"] - card["capacity_bytes"]
    fits = f"{short / (1 << 30):.2f} GiB more than the card has" if short > 0 else "below the capacity"
    yield Comparison(
        "needed in all",
        Figure(needed_before, "bytes", "computed", source="peak, communication buffers and the same context"),
        Figure(card["demand_bytes"], "bytes", "computed", source="tensors, communication buffers and context"),
        f"the card has {card['capacity_bytes'] / (1 << 30):.2f} GiB; now {fits}",
    )


def _highest(evidence: Evidence, without: int | None) -> Figure | None:
    rows = [r for r in evidence.rows("memory_step") if r["stream"] != without and peak_of(r) is not None]
    if not rows:
        return None
    best = max(rows, key=lambda row: peak_of(row) or 0)
    return Figure(float(peak_of(best) or 0), "bytes", "read", evidence=(evidence.cite(best["ref"]),))


def _comm(evidence: Evidence) -> int | None:
    """The largest sum of buffers of one process; None where the run had communicators and no figures."""
    sizes: list[int] = [row["bytes"] for row in evidence.rows("comm_memory")]
    if sizes:
        return max(sizes)
    return None if evidence.has("communicator") else 0


def _versions(evidence: Evidence, baseline: Evidence) -> Iterable[Comparison]:
    """Components that both runs print with different versions."""
    before, now = _version_texts(baseline), _version_texts(evidence)
    for component in sorted(before.keys() & now.keys()):
        if before[component] != now[component]:
            yield Comparison(f"{component} version", None, None, f"{before[component]} before, {now[component]} now")


def _version_texts(evidence: Evidence) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for row in evidence.rows("version"):
        found.setdefault(row["component"], set()).add(row["value"])
    return {component: ", ".join(sorted(values)) for component, values in found.items()}


def _links(evidence: Evidence, baseline: Evidence) -> Iterable[Comparison]:
    """Pairs whose path or figures differ by more than a fifth."""
    before = {(row["a"], row["b"]): row for row in baseline.rows("edge")}
    for row in evidence.rows("edge"):
        good = before.get((row["a"], row["b"]))
        if good is None:
            continue
        changes = [
            text
            for name, unit in (("latency_us", "us"), ("bandwidth_gbps", "GB/s"))
            if (text := _change(good, row, name, unit))
        ]
        if good["path"] and row["path"] and good["path"] != row["path"]:
            changes.append(f"path {good['path']} before, {row['path']} now")
        if changes:
            yield Comparison(f"GPU{row['a']}-GPU{row['b']}", None, None, "; ".join(changes))


def _change(good: Row, row: Row, name: str, unit: str) -> str:
    a, b = good[name], row[name]
    if a is None or b is None or abs(a - b) <= _NOTABLE * a:
        return ""
    return f"{a:.2f} {unit} before, {b:.2f} {unit} now"
