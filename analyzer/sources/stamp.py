"""Time stamps as numbers: seconds since the epoch, UTC; a stamp without a zone is taken as UTC."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable
from functools import lru_cache

MONTHS = {name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
MONTH = "(?:" + "|".join(MONTHS) + ")"
DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"

# Lines of one second come in a row, so the last few thousand seconds are remembered.
_CACHE_MOST = 4096
_seconds: dict[str, float | None] = {}

_ISO = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)")
_TAIL = re.compile(r"(?:[.,](\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?").match
_NAMED = re.compile(
    rf"(?:{DAY} )?({MONTH}) +(\d{{1,2}})(?: (\d{{4}}))?"
    r" (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?: (\d{4}))?"
)


def iso_seconds(stamp: str) -> float | None:
    """``2025-02-23T16:24:18,123456+00:00`` and its relatives; None where the numbers are no date."""
    base = _cached(stamp[:19], _iso_base)
    if base is None or len(stamp) == 19:
        return base
    found = _TAIL(stamp, 19)
    if found is None:
        return base
    fraction, zone = found.groups()
    if fraction:
        base += float(f".{fraction}")
    return base - _offset(zone) if zone else base


@lru_cache(maxsize=_CACHE_MOST)
def named_seconds(stamp: str) -> tuple[float | None, bool]:
    """``Sun Feb 23 16:24:18 2025``, ``Feb 25 2025 13:59:45``, ``Feb 01 14:25:31``; second: is the year printed.

    Without a year the result lies in 1970.
    """
    found = _NAMED.match(stamp)
    if found is None:
        return None, False
    month, day, early_year, hour, minute, second, fraction, late_year = found.groups()
    year = early_year or late_year
    # 29 February of an unknown year counts as 1 March, for 1970 has none.
    at = _seconds_of(int(year or 1970), MONTHS[month], int(day), int(hour), int(minute), int(second))
    if at is not None and fraction:
        at += float(f".{fraction}")
    return at, year is not None


def _iso_base(stamp: str) -> float | None:
    found = _ISO.match(stamp)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    return _seconds_of(year, month, day, hour, minute, second)


def _seconds_of(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float | None:
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60 and year >= 1970):
        return None
    return float(timegm((year, month, day, hour, minute, second)))


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return seconds if zone[0] == "+" else -seconds


def _cached(key: str, compute: Callable[[str], float | None]) -> float | None:
    try:
        return _seconds[key]
    except KeyError:
        pass
    if len(_seconds) >= _CACHE_MOST:
        _seconds.clear()
    value = _seconds[key] = compute(key)
    return value
