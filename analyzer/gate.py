"""The gate: one pass over a block of bytes finds the lines that can matter, for all parsers at once.

The literals come from the parsers' own declarations. ``hyperscan`` does the search where its wheel is
installed; a pure Python search of the same result takes its place elsewhere. No line becomes a Python
object here: the result is a list of (offset, literal number) pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Hit = tuple[int, int]


class Scanner(Protocol):
    """Finds literals in a block: pairs of (offset inside the literal's occurrence, literal number), sorted."""

    def scan(self, data: bytes) -> list[Hit]:
        """Every occurrence of every literal in ``data``; overlapping ones included."""
        ...


class HyperscanScanner:
    """Scans with hyperscan's literal matcher, about 1 GB/s whatever the number of literals."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        import hyperscan

        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=list(literals), ids=list(range(len(literals))), flags=[0] * len(literals), literal=True
        )

    def scan(self, data: bytes) -> list[Hit]:
        """Occurrences by their last byte."""
        hits: list[Hit] = []
        add = hits.append

        def on_match(number: int, start: int, end: int, flags: int, context: object) -> None:
            add((end - 1, number))

        self._database.scan(data, match_event_handler=on_match)
        return hits


class PureScanner:
    """The same result with ``bytes.find``, for platforms without a hyperscan wheel."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = tuple(literals)

    def scan(self, data: bytes) -> list[Hit]:
        """Occurrences by their last byte, sorted."""
        hits: list[Hit] = []
        for number, literal in enumerate(self._literals):
            reach = len(literal) - 1
            at = data.find(literal)
            while at >= 0:
                hits.append((at + reach, number))
                at = data.find(literal, at + 1)
        hits.sort()
        return hits


def make_scanner(literals: Sequence[bytes]) -> Scanner:
    """The fastest scanner that this installation offers."""
    try:
        return HyperscanScanner(literals)
    except ImportError:
        return PureScanner(literals)
