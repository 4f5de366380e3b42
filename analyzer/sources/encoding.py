"""Which encoding a file has, and its conversion to UTF-8 while it streams."""

from __future__ import annotations

import codecs
from collections.abc import Callable

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, None),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1024
_FEWEST = 8
_MANY, _FEW = 0.8, 0.05

Transcode = Callable[[bytes, bool], bytes]
"""Takes bytes and whether they are the last, gives UTF-8."""


def encoding_of(head: bytes) -> tuple[str | None, int]:
    """The encoding that has to be converted (None: bytes pass as they are) and the length of the byte order mark."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    return _utf16_without_mark(head[:_SAMPLE]), 0


def _utf16_without_mark(sample: bytes) -> str | None:
    """UTF-16 of mostly Latin text has a NUL in every second byte, and nearly none in the others."""
    pairs = len(sample) // 2
    if pairs < _FEWEST // 2:
        return None
    first = sample[0 : 2 * pairs : 2].count(0) / pairs
    second = sample[1 : 2 * pairs : 2].count(0) / pairs
    if second >= _MANY and first <= _FEW:
        return "utf-16-le"
    if first >= _MANY and second <= _FEW:
        return "utf-16-be"
    return None


def transcoder(encoding: str) -> Transcode:
    """A converter to UTF-8 that keeps a character cut by a block border for the next block."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return lambda data, final: decoder.decode(data, final).encode("utf-8", "replace")
