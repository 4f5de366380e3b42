"""Memory over steps: the least-squares line through the figures that one stream printed, and free memory over sizes."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import Any

from analyzer.derive.phase import is_evaluation
from analyzer.evidence import Evidence
from analyzer.model import split_ref

Row = dict[str, Any]

_MOST_REFS = 8
_LEAST = 3


def derive_trend(evidence: Evidence) -> None:
    """Fills ``trend``, one row per stream (and one for its evaluation steps) with at least three figures."""
    streams: dict[tuple[int, bool], list[Row]] = defaultdict(list)
    for row in evidence.rows("memory_step"):
        if _figure(row) is not None:
            streams[(row["stream"], is_evaluation(evidence, row["ref"]))].append(row)
    failed = _failures(evidence)
    evidence.set(
        "trend",
        (_trend(rows, evaluating, failed) for (_, evaluating), rows in sorted(streams.items()) if len(rows) >= _LEAST),
    )


def derive_free_trend(evidence: Evidence) -> None:
    """Fills ``free_trend``, one row per writer and kind of line with at least three figures."""
    groups: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in evidence.rows("free_memory"):
        groups[(row["stream"], row["kind"])].append(row)
    owners = {row["stream"]: row for row in evidence.rows("process") if row["stream"] is not None}
    evidence.set(
        "free_trend",
        (_free(rows, owners.get(stream, {})) for (stream, _), rows in sorted(groups.items()) if len(rows) >= _LEAST),
    )


def _failures(evidence: Evidence) -> dict[int, int]:
    return {row["stream"]: row["ref"] for row in evidence.rows("memory_failure")}


def _figure(row: Row) -> int | None:
    for name in ("allocated_bytes", "max_allocated_bytes"):
        if row[name] is not None:
            return int(row[name])
    return None


def _trend(rows: list[Row], evaluating: bool, failed: dict[int, int]) -> dict[str, object]:
    rows = sorted(rows, key=lambda r: r["ref"])
    values = [float(_figure(row) or 0) for row in rows]
    slope, r2 = _line(_steps(rows), values)
    new, old = _by_shape(rows, values)
    last = failed.get(rows[0]["stream"])
    return {
        "host": rows[0]["host"],
        "stream": rows[0]["stream"],
        "input": split_ref(rows[0]["ref"])[0],
        "rank": rows[0]["rank"],
        "points": len(rows),
        "slope_bytes_per_step": slope,
        "r2": r2,
        "first_bytes": int(values[0]),
        "last_bytes": int(values[-1]),
        "peak_bytes": int(max(values)),
        "failed": last is not None and last > rows[0]["ref"],
        "evaluating": evaluating,
        "new_shape_bytes": new,
        "old_shape_bytes": old,
        "ref": rows[0]["ref"],
        "refs": _refs(rows),
    }


def _refs(rows: list[Row]) -> str:
    every = max(1, len(rows) // _MOST_REFS)
    return ",".join(str(row["ref"]) for row in (*rows[::every], rows[-1]))


def _by_shape(rows: list[Row], values: list[float]) -> tuple[int | None, int | None]:
    """How much memory rose at lines whose shape was new, and at the others."""
    if not any(row["shape"] for row in rows):
        return None, None
    seen: set[str] = {str(rows[0]["shape"])}
    new = old = 0.0
    for row, (before, after) in zip(rows[1:], pairwise(values), strict=True):
        shape = str(row["shape"])
        if shape in seen:
            old += after - before
        else:
            new += after - before
        seen.add(shape)
    return int(new), int(old)


def _steps(rows: list[Row]) -> list[float]:
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


def _free(rows: list[Row], owner: Row) -> dict[str, object]:
    """The usual fall from line to line where the size is one that did not occur before."""
    rows = sorted(rows, key=lambda r: r["ref"])
    seen: set[str] = {str(rows[0]["size"])}
    falls: list[int] = []
    for before, after in pairwise(rows):
        if str(after["size"]) not in seen or after["size"] is None:
            falls.append(before["free_bytes"] - after["free_bytes"])
        seen.add(str(after["size"]))
    usual = round(median(falls)) if falls else 0
    return {
        "host": rows[0]["host"],
        "stream": rows[0]["stream"],
        "input": split_ref(rows[0]["ref"])[0],
        "pid": next((row["pid"] for row in rows if row["pid"] is not None), owner.get("pid")),
        "gpu": next((row["gpu"] for row in rows if row["gpu"] is not None), owner.get("gpu")),
        "kind": rows[0]["kind"],
        "points": len(rows),
        "sizes": len(seen),
        "fall_bytes": usual,
        "spread_bytes": round(median(abs(fall - usual) for fall in falls)) if falls else 0,
        "total_fall_bytes": rows[0]["free_bytes"] - rows[-1]["free_bytes"],
        "first_bytes": rows[0]["free_bytes"],
        "last_bytes": rows[-1]["free_bytes"],
        "ref": rows[0]["ref"],
        "refs": _refs(rows),
    }
