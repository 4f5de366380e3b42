"""One readable stream of a job, with the faults of its source turned into problems."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.sources.limits import Readable, StreamFault
from analyzer.sources.magic import HEAD, binary_kind

OnFault = Callable[[str, Exception], None]


class Member:
    """A file, or one file of an archive. ``size`` is its length in bytes where that is known beforehand.

    ``total_lines`` and ``total_bytes`` are filled by ``blocks`` and final after its last block. Members of one job
    share one stream: read a member to its end, or leave it, before the next one is asked for.
    """

    __slots__ = ("_head", "_on_fault", "_stream", "failed", "name", "size", "total_bytes", "total_lines")

    def __init__(self, name: str, stream: Readable, size: int | None = None, on_fault: OnFault | None = None) -> None:
        self.name = name
        self.size = size
        self.total_lines = 0
        self.total_bytes = 0
        self.failed = False
        self._stream: Readable | None = stream
        self._head = b""
        self._on_fault = on_fault

    def read(self, n: int, /) -> bytes:
        """The next bytes, at most ``n``; ``b""`` at the end and after a fault, which is reported as a problem."""
        if self._head:
            part, self._head = self._head[:n], self._head[n:]
            return part
        return self._next(n)

    def peek(self, n: int = HEAD) -> bytes:
        """The first ``n`` bytes of what is unread (fewer at the end); they stay unread."""
        while len(self._head) < n:
            more = self._next(n - len(self._head))
            if not more:
                break
            self._head += more
        return self._head[:n]

    def binary_kind(self) -> str | None:
        """The binary format that the unread part starts (``pickle``, ``ELF``, ...), or None for text."""
        return binary_kind(self.peek())

    def _next(self, n: int) -> bytes:
        if self._stream is None:
            return b""
        try:
            return self._stream.read(n)
        except (StreamFault, OSError) as fault:
            self._stream = None
            self.failed = True
            if self._on_fault is None:
                raise
            self._on_fault(self.name, fault)
            return b""
