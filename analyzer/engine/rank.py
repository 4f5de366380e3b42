"""Ranking: which findings are roots and which only followed.

Findings form a graph by ``explains``. A root that another finding of at least equal support explains, where
both are in the same scope, is a consequence; in a cycle of equal support the first in the stable order wins.
The result does not depend on the order of the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from analyzer.engine.candidate import Candidate, natural_key
from analyzer.engine.components import components
from analyzer.engine.rule import WHERE_COLUMNS, Explains
from analyzer.engine.scope import agree
from analyzer.engine.unite import unite
from analyzer.model import SEVERITY_ORDER, Finding, Where

_ROLE_ORDER = {"root": 0, "risk": 1, "consequence": 2, "info": 3}
_LATE = float("inf")
Edges = list[set[int]]


def rank(findings: Iterable[Candidate | Finding]) -> list[Finding]:
    """Findings in their final order and roles: roots, risks, consequences, info; each by support, then time.

    A bare Finding explains the causes it names everywhere (it carries no scope).
    """
    given = (item if isinstance(item, Candidate) else _wrapped(item) for item in findings)
    kept = sorted(unite(sorted(given, key=stable_order)), key=stable_order)
    edges = _edges(kept)
    explained = set().union(*edges) if edges else set()
    aside = _beside_a_failure(kept, edges, explained)
    final = [_judged(kept, place, edges[place], place in explained, place in aside) for place in range(len(kept))]
    return [item.finding for item in sorted(final, key=_final_order)]


def stable_order(item: Candidate) -> tuple[Any, ...]:
    """Better supported first; ties by confidence, severity, time, cause, place and at last everything else."""
    one = item.finding
    return (
        -item.support,
        -one.confidence,
        -SEVERITY_ORDER[one.severity],
        _LATE if one.at is None else one.at,
        one.cause,
        _place(one.where),
        one.rule,
        repr(item.key),
        repr(one),
        repr(item.explains),
    )


def _place(where: Where) -> tuple[Any, ...]:
    return tuple([natural_key(str(value)) for value in getattr(where, name)] for name in WHERE_COLUMNS)


def _wrapped(one: Finding) -> Candidate:
    return Candidate(one, tuple(Explains(name) for name in one.explains))


def _edges(kept: Sequence[Candidate]) -> Edges:
    """For each candidate the places of those it makes consequences; ``kept`` is in stable order."""
    by_cause: dict[str, list[int]] = {}
    for place, item in enumerate(kept):
        by_cause.setdefault(item.finding.cause, []).append(place)
    edges = [_explained_by(kept, place, by_cause) for place in range(len(kept))]
    ties = [{to for to in edges[place] if kept[to].support == kept[place].support} for place in range(len(kept))]
    group = components(ties)
    return [{to for to in edges[place] if to > place or group[to] != group[place]} for place in range(len(kept))]


def _explained_by(kept: Sequence[Candidate], place: int, by_cause: dict[str, list[int]]) -> set[int]:
    """All of at most equal support and another cause that the candidate explains in its scope."""
    one = kept[place]
    found: set[int] = set()
    for entry in one.explains:
        for cause, places in by_cause.items():
            if cause != one.finding.cause and entry.names(cause):
                found.update(to for to in places if to not in found and _explains(one, kept[to], entry))
    return found


def _explains(one: Candidate, other: Candidate, entry: Explains) -> bool:
    if one.support < other.support or not agree(one.finding.where, other.finding.where, entry.scope):
        return False
    a, b = one.finding.at, other.finding.at
    return not (entry.before and a is not None and b is not None and a > b)


def _beside_a_failure(kept: Sequence[Candidate], edges: Edges, explained: set[int]) -> set[int]:
    """Warnings that explain no symptom while an error's symptom stays open: true, but not why the job failed."""
    symptoms = {
        place
        for place, item in enumerate(kept)
        if item.finding.cause.startswith("symptom.") and item.finding.severity == "error"
    }
    if not symptoms - explained:
        return set()
    return {
        place
        for place, item in enumerate(kept)
        if item.finding.severity == "warning" and item.finding.role == "root" and not edges[place] & symptoms
    }


def _judged(kept: Sequence[Candidate], place: int, explains: set[int], explained: bool, aside: bool) -> Candidate:
    """The finding with its final role; ``explains`` holds declared names and, for prefixes, those found."""
    item = kept[place]
    names = {entry.cause for entry in item.explains if not entry.cause.endswith("*")}
    names |= {kept[to].finding.cause for to in explains}
    role = item.finding.role
    if role == "root" and (explained or aside):
        role = "consequence" if explained else "risk"
    return replace(item, finding=replace(item.finding, role=role, explains=tuple(sorted(names))))


def _final_order(item: Candidate) -> tuple[Any, ...]:
    return (_ROLE_ORDER[item.finding.role], *stable_order(item)[:1], *stable_order(item)[3:])
