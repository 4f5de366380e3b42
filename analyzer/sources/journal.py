"""The systemd journal in its machine forms becomes the lines that ``journalctl -o short-iso`` would have printed.

    {"__REALTIME_TIMESTAMP":"1727172000000000","_HOSTNAME":"node-a","_TRANSPORT":"kernel","MESSAGE":"NVRM: Xid ..."}

    __CURSOR=s=1;i=2
    __REALTIME_TIMESTAMP=1727172000000000
    _HOSTNAME=node-a
    _TRANSPORT=kernel
    MESSAGE=NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.

``-o json`` has one record in a line, ``-o json-pretty`` one over many, ``-o export`` one field in a line (a field with
line ends in it has its length in front) and a blank line behind each record. The line numbers stay those of the file:
the lines of a record that carry no message become blank.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_HEAD = 8192
_CHUNK = 1 << 20
_LONGEST_RECORD = 4000  # lines; a longer one is broken
_LONGEST_FIELD = 1 << 24
_KEY = re.compile(rb"[A-Z_][A-Z0-9_]{0,63}")
_ODD = re.compile(r"[^\w./@()-]")
_JSON_MARKS = (
    b'"__REALTIME_TIMESTAMP"',
    b'"_SOURCE_REALTIME_TIMESTAMP"',
    b'"__CURSOR"',
    b'"_HOSTNAME"',
    b'"_TRANSPORT"',
)


class Bytes(Protocol):
    """What is read from."""

    def read(self, n: int, /) -> bytes:
        """At most ``n`` bytes, none at the end."""
        ...


def is_journal(head: bytes) -> bool:
    """Whether these are the first bytes of a journal in one of its machine forms."""
    start = head[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n\x1e")
    if start.startswith(b"__CURSOR=") or start.startswith(b"__REALTIME_TIMESTAMP="):
        return True
    if not start.startswith(b"{") or b'"MESSAGE"' not in start:
        return False
    return sum(mark in start for mark in _JSON_MARKS) >= 2


class JournalLines:
    """A stream of text lines made from a journal, to be read like a file."""

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._rest = b""
        self._at = 0
        self._ended = False
        self._ready = b""
        self._lines = self._rendered()

    def read(self, n: int, /) -> bytes:
        """At most ``n`` bytes, none at the end."""
        while len(self._ready) < n:
            part = b"".join(line for _, line in zip(range(2000), self._lines, strict=False))
            if not part:
                break
            self._ready += part
        part, self._ready = self._ready[:n], self._ready[n:]
        return part

    def _more(self) -> bool:
        """Adds a chunk to what is left; false at the end and where a line is too long to be one."""
        if self._ended or len(self._rest) - self._at > _LONGEST_FIELD:
            return False
        chunk = self._source.read(_CHUNK)
        self._ended = not chunk
        self._rest, self._at = self._rest[self._at :] + chunk, 0
        return not self._ended

    def _line(self) -> bytes | None:
        """The next line without its end; None behind the last."""
        end = self._rest.find(b"\n", self._at)
        while end < 0:
            if not self._more():
                end = len(self._rest)
                break
            end = self._rest.find(b"\n", self._at)
        if self._at >= len(self._rest):
            return None
        line = self._rest[self._at : end]
        self._at = end + 1
        return line

    def _exactly(self, count: int) -> bytes:
        while len(self._rest) - self._at < count and self._more():
            pass
        part = self._rest[self._at : self._at + count]
        self._at += len(part)
        return part

    def _rendered(self) -> Iterator[bytes]:
        while (line := self._line()) is not None:
            bare = line.strip(b" \t\r\x1e")
            if bare.startswith(b"{"):
                yield from self._json(line)
            elif bare:
                yield from self._export(line)
            else:
                yield b"\n"

    def _json(self, line: bytes) -> Iterator[bytes]:
        """One record, in one line or pretty over several; what is no record stays as it is."""
        lines = [line]
        record = _loaded(line)
        while record is None and len(lines) < _LONGEST_RECORD and line.strip(b" \t\r\x1e") == b"{":
            more = self._line()
            if more is None:
                break
            lines.append(more)
            if more.rstrip() in (b"}", b"},"):
                record = _loaded(b"\n".join(lines))
                break
        if record is None:
            yield from (part + b"\n" for part in lines)
            return
        at = next((n for n, part in enumerate(lines) if part.lstrip().startswith(b'"MESSAGE"')), 0)
        prefix = _prefix(record)
        text = " ".join(str(_text(record.get("MESSAGE")) or "").split("\n"))
        for number in range(len(lines)):
            yield (prefix + text).encode("utf-8", "replace") + b"\n" if number == at and text else b"\n"

    def _export(self, line: bytes) -> Iterator[bytes]:
        """One record up to its blank line: the fields first, for the time may stand behind the message."""
        record: dict[str, object] = {}
        slots: list[str | None] = []
        current: bytes | None = line
        while current is not None and current.strip() and len(slots) < _LONGEST_RECORD:
            key, equals, value = current.rstrip(b"\r").partition(b"=")
            if equals:
                name, text = key.decode("ascii", "replace"), value.decode("utf-8", "replace")
                record.setdefault(name, text)
                slots.append(text if name == "MESSAGE" else None)
            else:
                slots.extend(self._sized(key, record))
            current = self._line()
        prefix = _prefix(record)
        for slot in slots:
            yield b"\n" if slot is None else (prefix + slot).encode("utf-8", "replace") + b"\n"
        if current is not None:
            yield b"\n"

    def _sized(self, key: bytes, record: dict[str, object]) -> list[str | None]:
        """A field with its length in front; its lines are lines of the file."""
        if not _KEY.fullmatch(key):
            return [key.decode("utf-8", "replace")]
        head = self._exactly(8)
        size = int.from_bytes(head, "little")
        if size > _LONGEST_FIELD:
            self._at -= len(head)
            return [None]
        data = self._exactly(size)
        self._exactly(1)
        text = data.decode("utf-8", "replace")
        record.setdefault(key.decode(), text)
        shown: list[str | None] = [None, *([None] * head.count(b"\n"))]
        lines = text.split("\n")
        return shown + (list(lines) if key == b"MESSAGE" else [None] * len(lines))


def _loaded(line: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(line.strip(b" \t\r\n\x1e").rstrip(b","))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: object) -> str | None:
    """A field as text; one that is no UTF-8 comes as a list of bytes, one that occurs twice as a list of texts."""
    if isinstance(value, list):
        if value and all(isinstance(part, int) and 0 <= part < 256 for part in value):
            return bytes(value).decode("utf-8", "replace")
        return " ".join(str(part) for part in value)
    return None if value is None else str(value)


def _prefix(record: dict[str, object]) -> str:
    """``2025-02-23T16:24:18.123456+00:00 host program[pid]: ``."""
    host = _ODD.sub("_", _text(record.get("_HOSTNAME")) or "")
    name = _text(record.get("SYSLOG_IDENTIFIER")) or _text(record.get("_COMM")) or "journal"
    pid = _text(record.get("_PID")) or _text(record.get("SYSLOG_PID")) or "0"
    writer = (
        "kernel"
        if record.get("_TRANSPORT") == "kernel"
        else f"{_ODD.sub('_', name)[:60]}[{pid if pid.isdigit() else 0}]"
    )
    stamp = _stamp(_text(record.get("__REALTIME_TIMESTAMP")) or _text(record.get("_SOURCE_REALTIME_TIMESTAMP")))
    return f"{stamp} {host} {writer}: " if stamp and host else f"{stamp} " if stamp else ""


def _stamp(microseconds: str | None) -> str:
    if not microseconds or not microseconds.isdigit() or len(microseconds) > 17:
        return ""
    at = _EPOCH + timedelta(microseconds=int(microseconds))
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
