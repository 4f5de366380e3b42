"""gzip and zstd as bounded streams: little memory, a budget, and everything before damage is kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Protocol

from analyzer.sources.limits import Budget, Damaged, Readable, StreamFault

# An error loses what its own call would have given, hence small steps (still several GB/s).
_STEP_OUT = 16 << 10
_GZIP_IN = 32 << 10
_GZIP_FORMAT = 31  # zlib's number for the largest window and a gzip header
# One KiB of zstd can hold 256 run-length blocks of 128 KiB, and this interface has no cap on what it returns.
_ZSTD_IN = 1 << 10


class _Decoder(Protocol):
    """What zlib, isal and zstandard have in common."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes: ...


class Inflater:
    """A decompressed view of ``source``; reads across concatenated frames.

    ``read`` raises Damaged when the data is cut or corrupt, LimitReached past a cap, after all good bytes were given.
    """

    def __init__(self, source: Readable, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._ready = bytearray()
        self._fault: StreamFault | None = None
        self._done = False

    def read(self, n: int, /) -> bytes:
        """The next decompressed bytes, at most ``n``, and fewer only at the end."""
        ready = self._ready
        while len(ready) < n and not self._done:
            try:
                piece = self._step()
                ready += piece
                self._budget.take_inflated(len(piece))
            except StreamFault as fault:
                self._fault, self._done = fault, True
        if not ready and self._fault is not None:
            late, self._fault = self._fault, None
            raise late
        part = bytes(ready[:n])
        del ready[:n]
        return part

    def _step(self) -> bytes:
        """The next piece; sets ``_done`` at the end."""
        raise NotImplementedError


class GzipInflater(Inflater):
    """gzip, by isal where it is installed (three times as fast) and by zlib elsewhere."""

    def __init__(self, source: Readable, budget: Budget) -> None:
        super().__init__(source, budget)
        self._new, self._error = _gzip_backend()
        self._decoder: Any = None
        self._pending = b""

    def _step(self) -> bytes:
        if not self._pending:
            self._pending = self._source.read(_GZIP_IN)
            if not self._pending:
                return self._end()
        if self._decoder is None and not self._begin():
            return b""
        try:
            piece: bytes = self._decoder.decompress(self._pending, _STEP_OUT)
        except self._error as error:
            raise Damaged("gzip data is corrupt, the rest is not read") from error
        if self._decoder.eof:
            self._pending = self._decoder.unused_data
            self._decoder = None
        else:
            self._pending = self._decoder.unconsumed_tail
        return piece

    def _begin(self) -> bool:
        """Starts the next gzip member; False while only padding is left."""
        self._pending = self._pending.lstrip(b"\x00")
        if not self._pending:
            return False
        if self._pending[0] != 0x1F:
            raise Damaged("gzip data is followed by something else, which is not read")
        self._decoder = self._new()
        return True

    def _end(self) -> bytes:
        self._done = True
        if self._decoder is None:
            return b""
        # The decoder can hold back bytes of a full output buffer.
        try:
            rest: bytes = self._decoder.decompress(b"", _STEP_OUT)
        except self._error:
            rest = b""
        if rest:
            self._done = False
            return rest
        raise Damaged("gzip data ends early (truncated), the rest is missing")


def _gzip_backend() -> tuple[Callable[[], Any], type[Exception]]:
    try:
        from isal import isal_zlib
    except ImportError:
        return lambda: zlib.decompressobj(_GZIP_FORMAT), zlib.error
    error: Any = isal_zlib.error
    return lambda: isal_zlib.decompressobj(_GZIP_FORMAT), error


class ZstdInflater(Inflater):
    """zstd, frame after frame."""

    def __init__(self, source: Readable, budget: Budget) -> None:
        super().__init__(source, budget)
        try:
            import zstandard
        except ImportError as error:
            raise Damaged("zstd data, and the module zstandard is not installed") from error
        decompressor = zstandard.ZstdDecompressor()
        self._new: Callable[[], _Decoder] = lambda: decompressor.decompressobj()
        self._error = zstandard.ZstdError
        self._decoder: _Decoder | None = None
        self._pending = b""

    def _step(self) -> bytes:
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
            piece = self._decoder.decompress(data)
        except self._error as error:
            raise Damaged("zstd data is corrupt, the rest is not read") from error
        if self._decoder.eof:
            self._pending = self._decoder.unused_data
            self._decoder = None
        return piece
