"""Caps against archives that unpack to more than they should, and the faults of a damaged stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

GIB = 1 << 30
MIB = 1 << 20


class Readable(Protocol):
    """A source of bytes: ``read`` gives at most ``n`` of them, and ``b""`` at the end."""

    def read(self, n: int, /) -> bytes:
        """The next bytes, at most ``n``."""
        ...


class StreamFault(Exception):
    """A stream that cannot be read on; the text goes into a problem. What came before it stays valid."""


class Damaged(StreamFault):
    """The stream is cut or corrupt."""


class LimitReached(StreamFault):
    """A cap stopped the reading of a whole job."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps for one job: bytes after inflating, growth over the compressed size, files per archive, nesting."""

    inflated_bytes: int = 64 * GIB
    ratio: int = 600
    ratio_from_bytes: int = 64 * MIB
    members: int = 100_000
    depth: int = 3


class Budget:
    """Counts the bytes of one job on both sides of the decompression and raises when a cap is passed."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.raw = 0
        self.inflated = 0
        self.reported = False

    def take_raw(self, count: int) -> None:
        """Counts bytes as they lie on disk."""
        self.raw += count

    def take_inflated(self, count: int) -> None:
        """Counts bytes that a decompressor gave.

        Raises LimitReached past a cap.
        """
        self.inflated += count
        limits = self.limits
        if self.inflated > limits.inflated_bytes:
            raise LimitReached(f"unpacks to more than {_size(limits.inflated_bytes)}, the rest is not read")
        if self.inflated > limits.ratio_from_bytes and self.inflated > limits.ratio * max(self.raw, 1):
            raise LimitReached(f"unpacks to more than {limits.ratio} times its size, the rest is not read")


def _size(count: int) -> str:
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
