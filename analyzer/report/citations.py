"""Numbers for evidence: each cited line of an input is E1, E2 ... once, wherever it is cited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.model import EvidenceLine, Report
from analyzer.report.digest import odd_links

_PER_OWNER = 12
_SHOWN = 4
_MOST = 200


@dataclass(frozen=True, slots=True)
class Cited:
    """One numbered line."""

    number: int
    line: EvidenceLine


@dataclass(frozen=True, slots=True)
class Passage:
    """The lines first cited by one owner, those that an earlier one cited, and how many were left out."""

    cited: tuple[Cited, ...]
    earlier: tuple[int, ...]
    left_out: int


def place(line: EvidenceLine) -> str:
    """``rank2.log:6187``; the file alone where the whole file is meant."""
    return f"{line.file}:{line.line}" if line.line else line.file


class Citations:
    """Gives numbers in the order of first use; at most 200, twelve for each owner."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}

    def passage(self, evidence: tuple[EvidenceLine, ...]) -> Passage:
        """Numbers the lines of one owner."""
        new, earlier = [], []
        for line in evidence[:_PER_OWNER]:
            key = (line.file, line.line)
            if key in self._numbers:
                earlier.append(self._numbers[key])
            elif len(self._numbers) < _MOST:
                self._numbers[key] = len(self._numbers) + 1
                new.append(Cited(self._numbers[key], line))
        left_out = len(evidence) - len(new) - len(earlier)
        return Passage(tuple(new), tuple(dict.fromkeys(earlier)), left_out)

    def numbers(self, evidence: Iterable[EvidenceLine]) -> list[int]:
        """The numbers of already known lines, at most four."""
        known = (self._numbers.get((line.file, line.line)) for line in evidence)
        return list(dict.fromkeys(number for number in known if number is not None))[:_SHOWN]


def rest(report: Report) -> tuple[EvidenceLine, ...]:
    """What sections other than the findings cite: ledger, odd links, time line."""
    owners = (
        *(entry.evidence for card in report.ledger for entry in card.entries),
        *(link.evidence for link in odd_links(report)),
        *(row.evidence for row in report.timeline if row.first),
        *(row.evidence for row in report.timeline),
    )
    return tuple(dict.fromkeys(line for evidence in owners for line in evidence))
