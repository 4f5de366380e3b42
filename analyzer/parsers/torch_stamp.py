"""The time in the head of a log line of PyTorch (glog style): month, day and time without a year."""

from __future__ import annotations

import re
from calendar import timegm

_STAMP = re.compile(r"\[?[IWEF]([0-9]{1,2})([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")


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
