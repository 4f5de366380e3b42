"""gzip and zstd as bounded streams: little memory, a budget, and everything before damage is kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from analyzer.sources.limits import Budget, Damaged, Readable, StreamFault

# An error loses what its own call would have given, hence small steps (still several GB/s).
_STEP_OUT = 16 << 10
_DEFLATE_IN = 32 << 10
# One KiB of zstd can hold 256 run-length blocks of 128 KiB, and this interface has no cap on what it returns.
_ZSTD_IN = 1 << 10


class Inflater:
    """A decompressed view of ``source``; reads across concatenated frames.

    ``read`` raises Damaged when the data is cut or corrupt, LimitReached past a cap, after all good bytes were given.
    """

    def __init__(self, source: Readable, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._ready = b""
        self._fault: StreamFault | None = None
        self._done = False

    def read(self, n: int, /) -> bytes:
        """The next decompressed bytes, at most ``n``, and fewer only at the end."""
        pieces = [self._ready]
        missing = n - len(self._ready)
        while missing > 0 and not self._done:
            try:
                piece = self._step(missing)
                pieces.append(piece)
                missing -= len(piece)
                self._budget.take_inflated(len(piece))
            except StreamFault as fault:
                self._fault, self._done = fault, True
        data = b"".join(pieces)
        if not data and self._fault is not None:
            late, self._fault = self._fault, None
            raise late
        self._ready = data[n:]
        return data[:n]

    def _step(self, wanted: int) -> bytes:
        """The next piece, of about ``wanted`` bytes at most; sets ``_done`` at the end."""
        raise NotImplementedError


class DeflateInflater(Inflater):
    """Raw deflate data, as zip holds it; ``leftover`` is what the source gave beyond its end."""

    _window_bits = -15
    _what = "deflate data"

    def __init__(self, source: Readable, budget: Budget) -> None:
        super().__init__(source, budget)
        new, self._error = _zlib_backend()
        self._new: Callable[[], Any] = lambda: new(self._window_bits)
        self._decoder: Any = self._new()
        self._pending = b""
        self._full = False

    @property
    def leftover(self) -> bytes:
        """Bytes of the source behind the compressed data."""
        return self._pending

    def _step(self, wanted: int) -> bytes:
        # After a full piece the decoder may hold more of it, which is due before a cut source is noticed.
        if not self._pending and not self._full:
            self._pending = self._source.read(_DEFLATE_IN)
            if not self._pending:
                raise Damaged(f"{self._what} ends early (truncated), the rest is missing")
        most = min(wanted, _STEP_OUT)
        try:
            piece: bytes = self._decoder.decompress(self._pending, most)
        except self._error as error:
            raise Damaged(f"{self._what} is corrupt, the rest is not read") from error
        self._full = len(piece) == most
        if self._decoder.eof:
            self._pending = self._decoder.unused_data
            self._after()
        else:
            self._pending = self._decoder.unconsumed_tail
        return piece

    def _after(self) -> None:
        """Called where the compressed data ends."""
        self._done = True


class GzipInflater(DeflateInflater):
    """gzip, member after member, by isal where it is installed (three times as fast) and by zlib elsewhere."""

    _window_bits = 31  # zlib's number for the largest window and a gzip header
    _what = "gzip data"

    def _after(self) -> None:
        pending = self._pending.lstrip(b"\x00")
        while not pending:
            more = self._source.read(_DEFLATE_IN)
            if not more:
                self._done = True
                return
            pending = more.lstrip(b"\x00")
        if pending[0] != 0x1F:
            # Not raised: the piece before it is still on its way.
            self._fault, self._done = Damaged("gzip data is followed by something else, which is not read"), True
            return
        self._pending = pending
        self._full = False
        self._decoder = self._new()


def _zlib_backend() -> tuple[Callable[[int], Any], type[Exception]]:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj, zlib.error
    error: Any = isal_zlib.error
    return isal_zlib.decompressobj, error


class ZstdInflater(Inflater):
    """zstd, frame after frame."""

    def __init__(self, source: Readable, budget: Budget) -> None:
        super().__init__(source, budget)
        try:
            import zstandard
        except ImportError as error:
            raise Damaged("zstd data, and the module zstandard is not installed") from error
        decompressor = zstandard.ZstdDecompressor()
        self._new: Callable[[], Any] = decompressor.decompressobj
        self._error = zstandard.ZstdError
        self._decoder: Any = None
        self._pending = b""

    def _step(self, wanted: int) -> bytes:
        data = self._pending or self._source.read(_ZSTD_IN)
        self._pending = b""
        if not data:
            self._done = True
            if self._decoder is not None:
                raise Damaged("zstd data ends early (truncated), the rest is missing")
            return b""
        if self._decoder is None:
            self._decoder = self._new()
        try:
            piece: bytes = self._decoder.decompress(data)
        except self._error as error:
            raise Damaged("zstd data is corrupt, the rest is not read") from error
        if self._decoder.eof:
            self._pending = self._decoder.unused_data
            self._decoder = None
        return piece
