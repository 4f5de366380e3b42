"""The head of a log line of PyTorch: time (glog style, without a year), process group and rank.

    [E314 03:12:11.482174118 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 0] ...
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping

from analyzer.parsers.base import Line

_STAMP = re.compile(r"\[?[IWEF]([0-9]{1,2})([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_WHO = re.compile(r"\[(?:(PG .*?) )?Rank ([0-9]+)\]$")
_HEAD = re.compile(r"^.*?\[[IWEF][^\]]*\.(?:cpp|hpp|h):[0-9]+\] ")


def glog_seconds(head: str) -> float | None:
    """``[E314 03:12:11.482113907 ...`` or ``E0314 03:12:11.482113 ...`` as seconds since the epoch, in the year 1970.

    None where the head has no time, as before PyTorch 2.2, or where the numbers are no date.
    """
    found = _STAMP.match(head)
    if found is None:
        return None
    month, day, hour, minute, second = (int(part) for part in found.groups()[:5])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
        return None
    fraction = found.group(6)
    at = float(timegm((1970, month, day, hour, minute, second)))
    return at + int(fraction) / 10 ** len(fraction) if fraction else at


def where(f: Mapping[str, str], line: Line) -> dict[str, object]:
    """Process group, rank and time that the fields glog, who and inner of a line state; a prefix's time counts more."""
    values: dict[str, object] = {}
    for head in (f.get("who"), f.get("inner")):
        found = _WHO.search(head) if head else None
        if found:
            values["rank"] = int(found.group(2))
            values["pg"] = found.group(1) or values.get("pg")
    if line.at is None and "glog" in f:
        values["at"] = glog_seconds(f["glog"])
    return values


def message(text: str) -> str:
    """The line without what the logger put before it."""
    return _HEAD.sub("", text).strip()
