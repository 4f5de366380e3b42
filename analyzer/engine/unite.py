"""One cause found by two rules in the same place is one finding: the better one, with the evidence of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from analyzer.engine.candidate import Candidate
from analyzer.engine.scope import agree
from analyzer.model import Finding, Where

EVIDENCE_LINES = 12
# What happened beats what may happen, whatever their support.
_ROLE_ORDER = {"root": 0, "consequence": 1, "risk": 2, "info": 3}


def unite(ordered: Sequence[Candidate]) -> list[Candidate]:
    """Keeps the better of findings of one cause that overlap; ``ordered`` is in stable order, best first."""
    groups: dict[str, list[list[Candidate]]] = {}
    for item in sorted(ordered, key=lambda item: _ROLE_ORDER[item.finding.role]):
        of_cause = groups.setdefault(item.finding.cause, [])
        for group in of_cause:
            if _same(group[0], item):
                group.append(item)
                break
        else:
            of_cause.append([item])
    return [_united(group) for of_cause in groups.values() for group in of_cause]


def _same(kept: Candidate, item: Candidate) -> bool:
    return kept.finding.rule != item.finding.rule and agree(kept.finding.where, item.finding.where)


def _united(group: Sequence[Candidate]) -> Candidate:
    first = group[0]
    if len(group) == 1:
        return first
    rest = [item.finding for item in group[1:]]
    dated = [one.at for one in rest if one.at is not None]
    finding = replace(
        first.finding,
        where=_where(first.finding.where, rest),
        evidence=_together(one.evidence for one in (first.finding, *rest))[:EVIDENCE_LINES],
        considered=_together(one.considered for one in (first.finding, *rest)),
        references=_together(one.references for one in (first.finding, *rest)),
        at=min(dated, default=None) if first.finding.at is None else first.finding.at,
    )
    return replace(first, finding=finding, explains=_together(item.explains for item in group))


def _where(kept: Where, rest: Sequence[Finding]) -> Where:
    """The place of the kept finding; the others fill in what it does not know."""
    filled: dict[str, tuple[Any, ...]] = {}
    for name in (field.name for field in fields(Where)):
        others = {value for one in rest for value in getattr(one.where, name)}
        filled[name] = getattr(kept, name) or tuple(sorted(others))
    return Where(**filled)


def _together(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value for part in parts for value in part))
