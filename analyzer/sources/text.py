"""Blocks of whole lines, as fast as the source gives bytes and with flat memory whatever the source holds.

No line becomes an object of its own here: the cost is one copy, one count of line ends and a few searches per block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analyzer.model import Problem
from analyzer.sources.encoding import encoding_of, transcoder
from analyzer.sources.limits import MIB
from analyzer.sources.magic import HEAD, binary_kind
from analyzer.sources.member import Member
from analyzer.sources.repeats import Repeats

BLOCK = 4 * MIB
LINE_CAP = MIB
"""The longest line that is kept, in bytes; the rest of a longer one is dropped."""

TOO_LONG = "line is longer than 1 MiB, the rest is not read"

# A line over the cap covers at least one aligned window of half its length, so that looking for a line end in
# each window finds all of them.
_WINDOW = LINE_CAP // 2


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, each ending in a line feed; ``first_line`` is the 1-based number of the first."""

    data: bytes
    first_line: int


def blocks(member: Member, problem: Callable[[Problem], None]) -> Iterator[Block]:
    """The text of ``member`` as UTF-8 in blocks of about 4 MiB, without byte order mark.

    Binary files give no block and one problem. Sets ``member.total_lines`` and ``member.total_bytes``.
    """
    head = member.peek(HEAD)
    encoding, mark = encoding_of(head)
    kind = None if encoding or mark else binary_kind(head)
    if kind is not None:
        problem(Problem(member.name, 0, f"binary file ({kind}), not read"))
        return
    repeats = Repeats(problem)
    cutter = _Cutter(member.name, repeats)
    for chunk in _chunks(member, encoding, mark):
        first = cutter.next_line
        data = cutter.feed(chunk)
        member.total_lines = cutter.next_line - 1
        if data:
            yield Block(data, first)
    first = cutter.next_line
    data = cutter.finish()
    member.total_lines = cutter.next_line - 1
    repeats.close()
    if data:
        yield Block(data, first)


def _chunks(member: Member, encoding: str | None, mark: int) -> Iterator[bytes]:
    """The bytes of ``member`` as UTF-8, without the mark and without NULs before the first text."""
    convert = transcoder(encoding) if encoding else None
    started = False
    while True:
        chunk = _fill(member)
        member.total_bytes += len(chunk)
        last = len(chunk) < BLOCK
        if mark:
            chunk, mark = chunk[mark:], 0
        if convert is not None:
            chunk = convert(chunk, last)
        if not started:
            # A log that was truncated while its writer kept it open starts with a hole as long as its old content.
            chunk = chunk.lstrip(b"\x00")
            started = bool(chunk)
        if chunk:
            yield chunk
        if last:
            return


def _fill(member: Member) -> bytes:
    """A full block, or what is left; pipes and decompressors give less per call."""
    part = member.read(BLOCK)
    if len(part) == BLOCK or not part:
        return part
    parts = [part]
    missing = BLOCK - len(part)
    while missing and (part := member.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class _Cutter:
    """Cuts chunks at line ends, carries the open line over, and shortens what is longer than the cap."""

    def __init__(self, name: str, repeats: Repeats) -> None:
        self.next_line = 1
        self._name = name
        self._repeats = repeats
        self._carry = b""
        self._cut = False  # the carried line has reached the cap; its rest is dropped

    def feed(self, chunk: bytes) -> bytes:
        """The lines that ``chunk`` completes."""
        end = chunk.rfind(b"\n") + 1
        if end == 0:
            self._hold(chunk)
            return b""
        parts: list[bytes | memoryview] = []
        start = 0
        if self._carry:
            start = chunk.index(b"\n") + 1
            self._hold(chunk[: start - 1])
            parts = [self._carry, b"\n"]
            self._carry, self._cut = b"", False
        elif end == len(chunk) and not self._gap(chunk, 0, end):
            self.next_line += chunk.count(b"\n")
            return chunk
        parts += self._shortened(chunk, start, end)
        self.next_line += chunk.count(b"\n", 0, end)
        self._hold(chunk[end:])
        return b"".join(parts)

    def finish(self) -> bytes:
        """The last line, with a line end of its own, when the text ends without one."""
        if not self._carry:
            return b""
        self.next_line += 1
        last, self._carry = self._carry + b"\n", b""
        return last

    def _hold(self, part: bytes) -> None:
        """Adds to the open line what fits under the cap."""
        if not self._carry and not part.strip(b"\x00"):
            return  # nothing, or the hole at the end of a file whose writer's machine went down
        room = LINE_CAP - len(self._carry)
        if len(part) > room:
            if not self._cut:
                self._cut = True
                self._too_long(self.next_line)
            part = part[:room]
        self._carry += part

    def _shortened(self, chunk: bytes, start: int, end: int) -> list[bytes | memoryview]:
        """The whole lines of a chunk without what is over the cap."""
        view = memoryview(chunk)
        parts: list[bytes | memoryview] = []
        window = start
        while window := self._gap(chunk, window, end):
            begin = chunk.rfind(b"\n", start, window) + 1 or start
            stop = chunk.index(b"\n", window)
            if stop - begin > LINE_CAP:
                parts.append(view[start : begin + LINE_CAP])
                self._too_long(self.next_line + chunk.count(b"\n", 0, begin))
                start = stop
            window = stop
        parts.append(view[start:end])
        return parts

    @staticmethod
    def _gap(chunk: bytes, start: int, end: int) -> int:
        """The end of the first window without a line end, 0 when there is none."""
        for low in range(start, end - _WINDOW + 1, _WINDOW):
            if chunk.find(b"\n", low, low + _WINDOW) < 0:
                return low + _WINDOW
        return 0

    def _too_long(self, line: int) -> None:
        self._repeats.add(Problem(self._name, line, TOO_LONG))
