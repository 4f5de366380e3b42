"""Compares the candidates of a rule with what a test expects."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analyzer.engine.candidate import Candidate
from analyzer.engine.rule import WHERE_COLUMNS, Expected


def mismatch(found: Sequence[Candidate], expected: Sequence[Expected]) -> str:
    """What differs, or nothing when each expected finding can be given a finding of its own and none is left."""
    if len(found) != len(expected):
        return f"expected {_counted(len(expected))}, got {_counted(len(found))}{_messages(found)}"
    differences = [[_difference(one, candidate) for candidate in found] for one in expected]
    for place, row in enumerate(differences):
        if all(row):
            return f"expectation in line {expected[place].line}: {min(row, key=len)}"
    return "" if _assigned(differences) else "two expectations are met by the same finding only"


def _counted(number: int) -> str:
    return "no finding" if number == 0 else "1 finding" if number == 1 else f"{number} findings"


def _messages(found: Sequence[Candidate]) -> str:
    return "".join(f"; {one.finding.message}" for one in found[:3])


def _assigned(differences: Sequence[Sequence[str]]) -> bool:
    """Whether every expectation gets a finding of its own (augmenting paths)."""
    owner: dict[int, int] = {}

    def place(expectation: int, tried: set[int]) -> bool:
        for finding, difference in enumerate(differences[expectation]):
            if difference or finding in tried:
                continue
            tried.add(finding)
            if finding not in owner or place(owner[finding], tried):
                owner[finding] = expectation
                return True
        return False

    return all(place(number, set()) for number in range(len(differences)))


def _difference(expected: Expected, candidate: Candidate) -> str:
    for name, value in expected.values.items():
        actual = _actual(candidate, name.removesuffix("~"))
        if name.endswith("~"):
            missing = next((part for part in _as_tuple(value) if str(part) not in str(actual)), None)
            if missing is not None:
                return f"{name[:-1]} lacks '{missing}': {actual}"
        elif name in WHERE_COLUMNS:
            if {str(part) for part in _as_tuple(value)} != {str(part) for part in _as_tuple(actual)}:
                return f"{name}: expected {_shown(value)}, got {_shown(actual)}"
        elif not _equal(value, actual):
            return f"{name}: expected {_shown(value)}, got {_shown(actual)}"
    return ""


def _actual(candidate: Candidate, name: str) -> object:
    one = candidate.finding
    if name in WHERE_COLUMNS:
        found: object = getattr(one.where, name)
        return found
    if name in ("fix", "considered"):
        return "\n".join(one.advice if name == "fix" else one.considered)
    if name in ("message", "title", "role", "severity", "confidence", "at"):
        return getattr(one, name)
    return candidate.values.get(name)


def _as_tuple(value: object) -> tuple[object, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _equal(expected: object, actual: object) -> bool:
    if isinstance(expected, (int, float)) and isinstance(actual, (int, float)):
        return math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-9)
    return expected == actual or (expected is not None and actual is not None and str(expected) == str(actual))


def _shown(value: object) -> str:
    parts = _as_tuple(value)
    return ", ".join(str(part) for part in parts) if parts else "nothing"
