"""Processor masks of Linux tools as lists: ``0xff00`` is ``8-15``."""

from __future__ import annotations

import re
from collections.abc import Iterable


def format_list(numbers: Iterable[int]) -> str:
    """The shortest list of ranges."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def from_mask(text: str) -> str | None:
    """The list that a mask such as ``0xff00`` or ``00ff,00000000`` (words of 32 bits) stands for."""
    words = [word.removeprefix("0x") for word in text.split(",")]
    digits = words[0] + "".join(word.zfill(8) for word in words[1:])
    if not digits or len(digits) > 2048 or re.fullmatch("[0-9a-fA-F]+", digits) is None:
        return None
    value = int(digits, 16)
    return format_list(bit for bit in range(value.bit_length()) if value >> bit & 1)
