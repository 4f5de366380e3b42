"""Memory over steps: the least-squares line through the figures that one stream printed."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

from analyzer.evidence import Evidence

_MOST_REFS = 8


def derive_trend(evidence: Evidence) -> None:
    """Fills ``trend``, one row per stream with at least three figures."""
    streams: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in evidence.rows("memory_step"):
        if _figure(row) is not None:
            streams[row["stream"]].append(row)
    evidence.set("trend", (_trend(rows) for _, rows in sorted(streams.items()) if len(rows) >= 3))


def _figure(row: dict[str, Any]) -> int | None:
    for name in ("allocated_bytes", "max_allocated_bytes"):
        if row[name] is not None:
            return int(row[name])
    return None


def _trend(rows: list[dict[str, Any]]) -> dict[str, object]:
    rows = sorted(rows, key=lambda r: r["ref"])
    values = [float(_figure(row) or 0) for row in rows]
    steps = _steps(rows)
    slope, r2 = _line(steps, values)
    every = max(1, len(rows) // _MOST_REFS)
    return {
        "stream": rows[0]["stream"],
        "rank": rows[0]["rank"],
        "points": len(rows),
        "slope_bytes_per_step": slope,
        "r2": r2,
        "first_bytes": int(values[0]),
        "last_bytes": int(values[-1]),
        "peak_bytes": int(max(values)),
        "ref": rows[0]["ref"],
        "refs": ",".join(str(row["ref"]) for row in (*rows[::every], rows[-1])),
    }


def _steps(rows: list[dict[str, Any]]) -> list[float]:
    """Step numbers where they rise throughout (no epoch boundary), else the order of the lines."""
    steps = [row["step"] for row in rows]
    if all(s is not None for s in steps) and all(a < b for a, b in pairwise(steps)):
        return [float(s) for s in steps]
    return [float(i) for i in range(len(rows))]


def _line(xs: list[float], ys: list[float]) -> tuple[float, float]:
    """Slope and share of explained variance."""
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    sxx = sum((x - mean_x) ** 2 for x in xs)
    syy = sum((y - mean_y) ** 2 for y in ys)
    sxy = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    if sxx == 0 or syy == 0:
        return 0.0, 0.0
    return sxy / sxx, sxy * sxy / (sxx * syy)
