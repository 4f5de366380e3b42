"""Dates without a year (syslog, glog) get the year that the other lines of the evidence print."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import datetime, timezone

from analyzer.evidence import Evidence
from analyzer.schema import RAW

_MARCH = 59 * 86400.0
_TIMELESS = frozenset({"stream", "channel", "comm_alloc", "ring_order", "tree_edge", "nccl_layout"})

YEARLESS_BEFORE = 366 * 86400.0
"""Sources stamp a date without year into 1970."""


def fix_years(evidence: Evidence) -> None:
    """Moves every time of 1970 into the most frequent year of the dated lines; leaves it where none is dated."""
    years: Counter[int] = Counter()
    for table in RAW:
        if evidence.has(table.name):
            times = evidence[table.name]["at"].dropna()
            for value in times[times > YEARLESS_BEFORE].head(1000):
                years[datetime.fromtimestamp(float(value), tz=timezone.utc).year] += 1
    if not years:
        return
    year = max(years, key=lambda y: (years[y], y))
    offset = datetime(year, 1, 1, tzinfo=timezone.utc).timestamp()
    for table in RAW:
        if evidence.has(table.name):
            frame = evidence[table.name]
            yearless = frame["at"].notna() & (frame["at"] < YEARLESS_BEFORE)
            if yearless.any():
                times = frame.loc[yearless, "at"]
                late = (times >= _MARCH).astype("Float64") * _leap_shift(year)
                frame.loc[yearless, "at"] = times + offset + late
    evidence.edited()


def _leap_shift(year: int) -> float:
    """Seconds that a date after February lies later in a leap year than in 1970."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 86400.0 if leap else 0.0


class NearTimes:
    """The last time that a stream printed before a line: a lower bound for lines without a stamp of their own."""

    def __init__(self, evidence: Evidence) -> None:
        found: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for table in RAW:
            if table.name not in _TIMELESS and evidence.has(table.name):
                for row in evidence.rows(table.name):
                    if row["at"] is not None and row.get("boot_s") is None:
                        found[row["stream"]].append((row["ref"], row["at"]))
        self._times = {stream: sorted(times) for stream, times in found.items()}

    def before(self, stream: int, ref: int) -> float | None:
        """Seconds since the epoch, None where the stream printed no time before."""
        times = self._times.get(stream, [])
        index = bisect_right(times, (ref, float("inf")))
        return times[index - 1][1] if index else None
