"""From the rows of a query to candidates: findings with what ranking needs beside them.

Rows that share the rule's key become one candidate. Nothing here depends on the order of rows: references and
the values of Where are united and sorted, texts come from the row of best support.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from analyzer.engine.rule import ROLES, SEVERITIES, WHERE_COLUMNS, Explains, Rule
from analyzer.engine.sandbox import QueryFault
from analyzer.engine.suggest import quoted
from analyzer.model import Finding, Severity, Where

Row = Mapping[str, Any]
Word = TypeVar("Word", bound=str)

# One warning seen for sure counts as much as an error that is a toss-up.
SEVERITY_WEIGHT: Mapping[str, float] = {"error": 1.0, "warning": 0.5, "info": 0.1}
_MANY = 8
_FIGURES = frozenset("0123456789")
_DIGITS = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding before ranking. ``refs`` are its references, those of column ref first; ``values`` the row shown.

    ``finding`` carries no evidence yet when the candidate comes from rows; ``cite_all`` of evaluate adds it.
    """

    finding: Finding
    explains: tuple[Explains, ...] = ()
    key: tuple[Any, ...] = ()
    refs: tuple[int, ...] = ()
    values: Row = field(default_factory=dict)

    @property
    def support(self) -> float:
        """Confidence times the weight of the severity."""
        return self.finding.confidence * SEVERITY_WEIGHT[self.finding.severity]


def candidates_of(rule: Rule, rows: Sequence[Row]) -> list[Candidate]:
    """The candidates of one rule, sorted by key. Raises QueryFault for a value that fits no field."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in rule.key), []).append(row)
    return [_candidate(rule, key, groups[key]) for key in sorted(groups, key=_sort_key)]


def _candidate(rule: Rule, key: tuple[Any, ...], rows: Sequence[Row]) -> Candidate:
    shown = min(rows, key=lambda row: _row_order(rule, row))
    where = _where(rows)
    values = {**shown, **{name: _listed(getattr(where, name)) for name in WHERE_COLUMNS if name in shown}}
    finding = Finding(
        cause=rule.cause,
        rule=rule.id,
        role=_word(shown, "role", ROLES, rule.role),
        severity=_word(shown, "severity", SEVERITIES, rule.severity),
        confidence=_confidence(rule, shown),
        title=str(shown.get("title") or rule.title),
        message=rule.message.render(values),
        where=where,
        explains=tuple(entry.cause for entry in rule.explains),
        advice=tuple(text.render(values) for text in rule.fix),
        considered=tuple(text.render(values) for text in rule.considered),
        references=rule.references,
        at=min((at for row in rows if (at := _number(row, "at")) is not None), default=None),
    )
    return Candidate(finding, rule.explains, key, _united_refs(rows), values)


def _row_order(rule: Rule, row: Row) -> tuple[Any, ...]:
    """Best support first; then the first line, the most values; then anything but the order of rows."""
    gaps = sum(value is None for value in row.values())
    severity: Severity = _word(row, "severity", SEVERITIES, rule.severity)
    support = _confidence(rule, row) * SEVERITY_WEIGHT[severity]
    return (-support, min(_refs(row), default=0), gaps, _sort_key(tuple(row.values())))


def _confidence(rule: Rule, row: Row) -> float:
    own = _number(row, "confidence")
    return rule.confidence if own is None else min(max(own, 0.0), 1.0)


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, (int, float)):
        raise QueryFault("value", f"column {name} gives {quoted(value)}, which is no number")
    return float(value)


def _word(row: Row, name: str, words: Sequence[Word], default: Word) -> Word:
    value = row.get(name)
    if value is None:
        return default
    for word in words:
        if word == value:
            return word
    raise QueryFault("value", f"column {name} gives {quoted(value)}, which is none of {', '.join(words)}")


def _refs(row: Row, names: Sequence[str] = ("ref", "refs")) -> list[int]:
    found = []
    for name in names:
        for part in _parts(row.get(name)):
            if not part.isascii() or not part.isdigit() or len(part) > 19:
                raise QueryFault("value", f"column {name} gives {quoted(part)}, which is no reference")
            found.append(int(part))
    return found


def _united_refs(rows: Sequence[Row]) -> tuple[int, ...]:
    main = sorted({ref for row in rows for ref in _refs(row, ("ref",))})
    rest = sorted({ref for row in rows for ref in _refs(row, ("refs",))}.difference(main))
    return (*main, *rest)


def _parts(value: object) -> list[str]:
    """A value, or several in one text with commas, as texts; a whole float loses its point."""
    if value is None:
        return []
    if isinstance(value, float) and value.is_integer():
        return [str(int(value))]
    return [part for part in (piece.strip() for piece in str(value).split(",")) if part]


def _where(rows: Sequence[Row]) -> Where:
    found = {name: {part for row in rows for part in _parts(row.get(name))} for name in WHERE_COLUMNS}
    for rank in found["rank"]:
        if not re.fullmatch(r"-?[0-9]{1,9}", rank):
            raise QueryFault("value", f"column rank gives {quoted(rank)}, which is no rank")
    ranks = tuple(sorted(int(rank) for rank in found.pop("rank")))
    return Where(rank=ranks, **{name: natural(parts) for name, parts in found.items()})


def natural(words: Iterable[str]) -> tuple[str, ...]:
    """Sorted so that node2 comes before node10."""
    return tuple(sorted(words, key=natural_key))


def natural_key(word: str) -> list[tuple[int, int, str]]:
    """The key of that order."""
    return [(0, int(part), part) if part[:1] in _FIGURES else (1, 0, part) for part in _DIGITS.split(word) if part]


def _listed(values: Sequence[object]) -> str | None:
    """Values of Where as a text: ``3``, ``0, 1, 5``; many in a row as ``0-63``."""
    if not values:
        return None
    words = [str(value) for value in values]
    if len(words) <= _MANY or not all(word.isdigit() for word in words):
        return ", ".join(words)
    runs: list[list[int]] = []
    for number in sorted(int(word) for word in words):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def _sort_key(values: tuple[Any, ...]) -> tuple[tuple[int, float, str], ...]:
    """A total order over tuples of NULLs, numbers and texts."""
    return tuple(
        (0, 0.0, "") if v is None else (1, float(v), "") if isinstance(v, (int, float)) else (2, 0.0, str(v))
        for v in values
    )
