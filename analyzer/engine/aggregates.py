"""Functions that queries may call beside SQLite's own: median, stddev, mode, percentile, gib and a few roots.

The aggregates skip NULL, do not depend on the order of rows, and give NULL for no values.
"""

from __future__ import annotations

import math
import sqlite3
import statistics
from collections import Counter
from collections.abc import Callable
from typing import Any

from analyzer.engine.textfunctions import TEXT_FUNCTIONS

GIB = 2**30


class _Numbers:
    """Collects the numbers of a group."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, value: object, *_: object) -> None:
        """One row."""
        if isinstance(value, (int, float)):
            self.values.append(value)


class Median(_Numbers):
    """The median."""

    def finalize(self) -> float | None:
        """The result of the group."""
        return statistics.median(self.values) if self.values else None


class Stddev(_Numbers):
    """The sample standard deviation; NULL for fewer than two values."""

    def finalize(self) -> float | None:
        """The result of the group."""
        if len(self.values) < 2:
            return None
        mean = math.fsum(self.values) / len(self.values)
        return math.sqrt(math.fsum((v - mean) ** 2 for v in self.values) / (len(self.values) - 1))


class Percentile(_Numbers):
    """``percentile(x, p)`` with p from 0 to 100, linear between neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.share: float | None = None

    def step(self, value: object, *rest: object) -> None:
        """One row; p is taken from the first."""
        super().step(value)
        if self.share is None and rest and isinstance(rest[0], (int, float)):
            self.share = min(max(rest[0] / 100, 0.0), 1.0)

    def finalize(self) -> float | None:
        """The result of the group."""
        if not self.values or self.share is None:
            return None
        ordered = sorted(self.values)
        place = self.share * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


class Mode:
    """The most frequent value, text too; the smallest of those that are equally frequent."""

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()

    def step(self, value: object) -> None:
        """One row."""
        if value is not None:
            self.counts[value] += 1

    def finalize(self) -> Any:
        """The result of the group."""
        if not self.counts:
            return None
        return min(self.counts, key=lambda v: (-self.counts[v], isinstance(v, str), v))


def _of_number(function: Callable[[float], float]) -> Callable[[object], float | None]:
    def call(value: object) -> float | None:
        try:
            return function(value) if isinstance(value, (int, float)) else None
        except (ValueError, OverflowError):
            return None

    return call


_AGGREGATES: dict[str, tuple[int, Any]] = {
    "median": (1, Median),
    "stddev": (1, Stddev),
    "percentile": (2, Percentile),
    "mode": (1, Mode),
}
_FUNCTIONS: dict[str, Callable[[object], float | None]] = {
    "gib": _of_number(lambda value: value / GIB),
    "sqrt": _of_number(math.sqrt),
    "floor": _of_number(math.floor),
    "ceil": _of_number(math.ceil),
    "ln": _of_number(math.log),
}
_NAMES = """
    abs avg coalesce count cume_dist dense_rank first_value format glob group_concat ifnull iif instr lag
    last_value lead length like lower ltrim max min nth_value ntile nullif percent_rank printf rank replace round
    row_number rtrim sign substr substring sum total trim typeof upper
"""

ALLOWED = frozenset(_NAMES.split()) | frozenset(_AGGREGATES) | frozenset(_FUNCTIONS)


def register(connection: sqlite3.Connection) -> None:
    """Adds the functions to a connection."""
    for name, (arguments, kind) in _AGGREGATES.items():
        connection.create_aggregate(name, arguments, kind)
    for name, function in _FUNCTIONS.items():
        connection.create_function(name, 1, function, deterministic=True)
    for name, (arguments, function) in TEXT_FUNCTIONS.items():
        connection.create_function(name, arguments, function, deterministic=True)
