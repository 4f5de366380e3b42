"""Dates without a year (syslog, glog) get the year that the other lines of the evidence print."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone

from analyzer.evidence import Evidence
from analyzer.schema import RAW

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
                leap = _leap_shift(year)
                moved = frame.loc[yearless, "at"].map(lambda at: offset + at + (leap if at >= 59 * 86400 else 0.0))
                frame.loc[yearless, "at"] = moved.astype("Float64")
    evidence.edited()


def _leap_shift(year: int) -> float:
    """Seconds that a date after February lies later in a leap year than in 1970."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 86400.0 if leap else 0.0
