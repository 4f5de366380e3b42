"""Zip archives read from front to back: on standard input, inside other archives, or with their directory cut off.

The directory of a zip archive stands at its end, but every file also has a header of its own in front of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.sources.archive import Entry, Part, check_count, hidden
from analyzer.sources.inflate import DeflateInflater
from analyzer.sources.limits import Budget, Damaged, Readable

_FILE = b"PK\x03\x04"
_DESCRIPTOR = b"PK\x07\x08"
_SPLIT = (b"PK\x07\x08", b"PK00")
_DIRECTORY = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06")
_HEADER = struct.Struct("<HHHHHIIIHH")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 0x1, 0x8, 0x800
_IN_EXTRA = 0xFFFFFFFF
_DRAIN = 1 << 20


@dataclass(frozen=True, slots=True)
class _Header:
    name: str
    flags: int
    method: int
    packed: int
    size: int

    @property
    def open_ended(self) -> bool:
        """Whether the length stands only behind the data."""
        return bool(self.flags & _SIZES_FOLLOW) and not self.packed


def forward_zip_entries(source: Readable, budget: Budget) -> Iterator[Entry]:
    """The files of a zip archive in the order in which they lie there. Raises StreamFault where it cannot go on."""
    stream = _Pushback(source)
    count = 0
    mark = stream.exactly(4)
    if mark in _SPLIT:
        mark = stream.exactly(4)
    while mark == _FILE:
        count += 1
        check_count(count, budget)
        header = _header(stream)
        packed: Readable = stream if header.open_ended else Part(stream, header.packed)
        data, skipped = _content(packed, header, budget)
        if header.name and not header.name.endswith("/") and not hidden(header.name):
            yield Entry(header.name, header.size or None, None if skipped else data, skipped)
        _leave(stream, header, packed, data)
        mark = stream.exactly(4)
    if mark not in _DIRECTORY:
        raise Damaged("zip archive is corrupt, what follows is not read")


def _header(stream: _Pushback) -> _Header:
    _, flags, method, _, _, _, packed, size, name_length, extra_length = _HEADER.unpack(stream.exactly(_HEADER.size))
    name = stream.exactly(name_length).decode("utf-8" if flags & _UTF8 else "cp437", "replace")
    extra = stream.exactly(extra_length)
    if _IN_EXTRA in (packed, size):
        size, packed = _zip64_sizes(extra, size, packed)
    return _Header(name, flags, method, packed, size)


def _zip64_sizes(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == 1 and length >= 16 and len(extra) >= 20:
            size, packed = struct.unpack_from("<QQ", extra, 4)
            break
        extra = extra[4 + length :]
    return size, packed


def _content(packed: Readable, header: _Header, budget: Budget) -> tuple[Readable, str]:
    """The file's data, and why it cannot be shown."""
    readable = header.method == _DEFLATED or (header.method == _STORED and not header.open_ended)
    if header.flags & _ENCRYPTED:
        skipped = "is encrypted, not read"
    elif not readable:
        skipped = "is packed in a way that cannot be read from front to back, not read"
    else:
        return (DeflateInflater(packed, budget) if header.method == _DEFLATED else packed), ""
    if header.open_ended:
        # Without the data's length there is no way to the next file.
        raise Damaged(f"zip archive cannot be read on: {header.name} {skipped}")
    return packed, skipped


def _leave(stream: _Pushback, header: _Header, packed: Readable, data: Readable) -> None:
    """Goes behind the data of a file, however much of it was read."""
    rest = data if header.open_ended else packed
    while rest.read(_DRAIN):
        pass
    if header.open_ended and isinstance(data, DeflateInflater):
        stream.give_back(data.leftover)
    if header.flags & _SIZES_FOLLOW:
        _skip_descriptor(stream)


def _skip_descriptor(stream: _Pushback) -> None:
    """Checksum and lengths behind the data: with or without mark, lengths of 4 or of 8 bytes."""
    first = stream.exactly(4)
    stream.exactly(12 if first == _DESCRIPTOR else 8)
    following = stream.exactly(4)
    stream.give_back(following)
    if following != _FILE and following not in _DIRECTORY:
        stream.exactly(8)


class _Pushback:
    """A source that takes bytes back."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._front = b""

    def read(self, n: int, /) -> bytes:
        if self._front:
            part, self._front = self._front[:n], self._front[n:]
            return part
        return self._source.read(n)

    def give_back(self, data: bytes) -> None:
        self._front = data + self._front

    def exactly(self, n: int) -> bytes:
        """Just ``n`` bytes; Damaged when there are fewer."""
        parts = bytearray()
        while len(parts) < n:
            part = self.read(n - len(parts))
            if not part:
                raise Damaged("zip archive ends early (truncated), what follows is missing")
            parts += part
        return bytes(parts)
