"""The earlier good run that a failing one is compared with: from ``--baseline``, or found among the inputs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]


def peak_of(row: Row) -> int | None:
    """The highest allocated figure of one line."""
    figures = [row[name] for name in ("max_allocated_bytes", "allocated_bytes") if row[name] is not None]
    return max(figures) if figures else None


def reference_peak(evidence: Evidence, baseline: Evidence | None) -> Row | None:
    """Peak of memory that the framework allocated in the reference run: ``bytes``, ``ref`` (own inputs only)."""
    if baseline is not None:
        peaks = [(p, r) for r in baseline.rows("memory_step") if (p := peak_of(r)) is not None]
        if peaks:
            best = max(peaks, key=lambda item: item[0])
            return {"bytes": best[0], "ref": None, "stream": None}
    return _among_inputs(evidence)


def _among_inputs(evidence: Evidence) -> Row | None:
    """A stream without communicators and failures whose last line is older than the failing streams' first."""
    failing: set[int] = set()
    for table in ("oom_event", "cuda_error", "exception", "collective_timeout", "communicator"):
        failing |= {row["stream"] for row in evidence.rows(table)}
    streams: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("memory_step"):
        if row["at"] is not None and peak_of(row) is not None:
            streams[row["stream"]].append(row)
    starts = [min(r["at"] for r in rows) for stream, rows in streams.items() if stream in failing]
    starts += [r["at"] for r in evidence.rows("oom_event") if r["at"] is not None]
    if not starts:
        return None
    found = [
        max(rows, key=lambda r: peak_of(r) or 0)
        for stream, rows in streams.items()
        if stream not in failing and max(r["at"] for r in rows) < min(starts)
    ]
    if not found:
        return None
    best = max(found, key=lambda r: peak_of(r) or 0)
    return {"bytes": peak_of(best), "ref": best["ref"], "stream": best["stream"]}
