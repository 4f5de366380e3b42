"""Sizes as XLA prints them: ``34912723376 bytes``, ``20.00GiB``, ``154.06GiB (165425291480B)``."""

from __future__ import annotations

import re

from analyzer.parsers.values import Size, size

_SIZE = re.compile(r"^\s*(?:more than )?([0-9]+(?:\.[0-9]+)?) ?([KMGTP]?i?B(?:ytes)?|bytes|[KMGTP](?![A-Za-z]))?")
_EXACT = re.compile(r"\(?(?:rounded to )?([0-9]{4,})(?: bytes|B)?\)")


def xla_size(text: str) -> Size | None:
    """The first figure; the exact one in brackets behind it where there is one."""
    match = _SIZE.match(text)
    if match is None:
        return None
    number, unit = match.groups()
    unit = unit or "bytes"
    if unit[0] in "KMGTP":
        unit = unit[0] + "iB"
    rounded = size(f"{number} {'bytes' if unit in ('B', 'bytes', 'Bytes') else unit}")
    exact = _EXACT.search(text)
    if (
        rounded is not None
        and exact is not None
        and abs(int(exact.group(1)) - rounded.bytes) <= 2 * rounded.error + 4096
    ):
        return Size(int(exact.group(1)), 0)
    return rounded
