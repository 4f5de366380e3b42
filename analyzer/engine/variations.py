"""Variations of a rule's test that must not change what the rule finds, or must stay quiet.

- every row of a raw table (and of ``event``) once more with another reference: an event that was logged twice;
- rows and tables in another order;
- the rows of a quiet test, moved to another host with its own ranks, processes and communicators.

Rows of derived tables other than ``event`` are not repeated: their makers give each of them once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analyzer.engine.rule import RuleTest
from analyzer.model import Where, make_ref
from analyzer.schema import TABLES

Rows = dict[str, list[dict[str, object]]]

_COPY = make_ref(1000, 0)
_ELSEWHERE = make_ref(2000, 0)
_OTHER = "-other"
_SHIFTS = {"rank": 1000, "label_rank": 1000, "name_rank": 1000, "stream": 1000, "pid": 1_000_000, "tid": 1_000_000}
_SUFFIXED = ("comm", "comm_id", "uuid")
_UNIQUE = frozenset(name for name, table in TABLES.items() if table.derived and name != "event") | {"stream"}


@dataclass(frozen=True, slots=True)
class Variation:
    """Rows to run a rule on. ``label`` says what was done; ``same`` whether the findings must equal the given ones."""

    label: str
    rows: Rows
    same: bool


def numbered(test: RuleTest) -> Rows:
    """The given rows; a row that names no reference gets one, so that findings can be asked for their evidence."""
    rows: Rows = {}
    line = 0
    for name, entries in test.given.items():
        own = TABLES[name].names
        rows[name] = []
        for entry in entries:
            line += 1
            ref = make_ref(1, line)
            given = dict(entry)
            if "ref" in own:
                given.setdefault("ref", ref)
            if "refs" in own:
                given.setdefault("refs", str(given.get("ref") or ref))
            rows[name].append(given)
    return rows


def variations(test: RuleTest, quiet: Sequence[RuleTest]) -> Iterator[Variation]:
    """The given rows first, then their variations; ``quiet`` are the tests of the rule that expect nothing."""
    rows = numbered(test)
    yield Variation("", rows, True)
    yield Variation("rows and tables reversed", {name: rows[name][::-1] for name in reversed(rows)}, True)
    twice = {name: [*entries, *_copies(name, entries)] for name, entries in rows.items()}
    yield Variation("every event logged twice", twice, True)
    yield Variation("every event logged twice, shuffled", _shuffled(twice), True)
    if test.expect:
        for other in quiet:
            label = f"with the rows of quiet test '{other.name}' on another host"
            yield Variation(label, _merged(rows, moved(numbered(other))), False)


def is_elsewhere(where: Where) -> bool:
    """Whether a finding blames only the host or the ranks that ``moved`` made."""
    hosts = bool(where.host) and all(host.endswith(_OTHER) for host in where.host)
    return hosts or (bool(where.rank) and all(rank >= _SHIFTS["rank"] for rank in where.rank))


def moved(rows: Rows) -> Rows:
    """The rows as another host would have printed them."""
    return {name: [_moved(name, entry) for entry in entries] for name, entries in rows.items()}


def _moved(table: str, entry: Mapping[str, object]) -> dict[str, object]:
    away = _shifted(entry, _ELSEWHERE)
    if "host" in TABLES[table].names:
        away["host"] = f"{entry.get('host') or 'host'}{_OTHER}"
    for name, shift in _SHIFTS.items():
        value = away.get(name)
        if isinstance(value, int):
            away[name] = value + shift
    for name in _SUFFIXED:
        if away.get(name):
            away[name] = f"{away[name]}{_OTHER}"
    return away


def _copies(table: str, entries: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    return [] if table in _UNIQUE else [_shifted(entry, _COPY) for entry in entries]


def _shifted(entry: Mapping[str, object], shift: int) -> dict[str, object]:
    """The row with all its references moved to another input."""
    copy = dict(entry)
    for name in ("ref", "event_ref"):
        value = copy.get(name)
        if isinstance(value, int):
            copy[name] = value + shift
    if isinstance(copy.get("refs"), str):
        parts = (part.strip() for part in str(copy["refs"]).split(","))
        copy["refs"] = ",".join(str(int(part) + shift) if part.isdigit() else part for part in parts)
    return copy


def _shuffled(rows: Rows) -> Rows:
    chance = random.Random(7)
    return {name: chance.sample(entries, len(entries)) for name, entries in rows.items()}


def _merged(a: Rows, b: Rows) -> Rows:
    return {name: [*a.get(name, []), *b.get(name, [])] for name in (*a, *(name for name in b if name not in a))}
