"""Runs rules over a database. A rule that cannot run is told of, never lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from analyzer.engine.candidate import Candidate, candidates_of
from analyzer.engine.rank import rank
from analyzer.engine.rule import Rule
from analyzer.engine.sandbox import SECONDS, Database, QueryFault
from analyzer.engine.sql_error import query_error
from analyzer.model import EvidenceLine, Finding, NotEvaluated, split_ref
from analyzer.schema import TABLES

EVIDENCE_LINES = 12
Cite = Callable[[int], EvidenceLine]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``findings`` in their final order and roles; ``candidates`` is what they were made from."""

    findings: list[Finding]
    not_evaluated: list[NotEvaluated]
    candidates: list[Candidate] = field(default_factory=list)


def tables_of(rules: Iterable[Rule]) -> frozenset[str]:
    """The tables that some rule reads: only these have to be loaded."""
    return frozenset(name for rule in rules for name in rule.tables)


def evaluate(rules: Sequence[Rule], database: Database, cite: Cite, seconds: float = SECONDS) -> Evaluation:
    """Findings of all rules, ranked. ``cite`` turns a reference into its line; ``seconds`` is the limit of one rule."""
    candidates: list[Candidate] = []
    skipped: list[NotEvaluated] = []
    for rule in sorted(rules, key=lambda rule: rule.id):
        missing = missing_tables(rule, database)
        if missing:
            skipped.append(_lacking(rule, missing))
            continue
        try:
            found = run_rule(rule, database, seconds)
        except QueryFault as fault:
            reason = str(query_error(fault, rule.query, rule.file, rule.lines.get("query", 0)))
            skipped.append(NotEvaluated(rule.id, rule.cause, (), f"the rule failed: {reason}"))
            continue
        candidates += [cited(candidate, cite) for candidate in found]
    return Evaluation(rank(candidates), skipped, candidates)


def run_rule(rule: Rule, database: Database, seconds: float = SECONDS) -> list[Candidate]:
    """The candidates of one rule, without evidence lines. Raises QueryFault."""
    return candidates_of(rule, database.query(rule.query, seconds=seconds))


def missing_tables(rule: Rule, database: Database) -> tuple[str, ...]:
    """The needs that are not met, each as ``a`` or ``a|b``."""
    return tuple("|".join(names) for names in rule.needs if not any(database.counts[name] for name in names))


def cited(candidate: Candidate, cite: Cite) -> Candidate:
    """The candidate with its evidence: each line once, at most 12, the first line of each input before second ones.

    A reference that is none (a rule may compute anything) is left out.
    """
    lines: dict[EvidenceLine, None] = {}
    for ref in spread(candidate.refs, EVIDENCE_LINES):
        with suppress(LookupError):
            lines[cite(ref)] = None
    return replace(candidate, finding=replace(candidate.finding, evidence=tuple(lines)))


def spread(refs: Sequence[int], limit: int) -> list[int]:
    """At most ``limit`` of the references: the first of each input, then the second of each, and so on."""
    by_input: dict[int, list[int]] = {}
    for ref in dict.fromkeys(refs):
        by_input.setdefault(split_ref(ref)[0], []).append(ref)
    turns = zip_longest(*(by_input[name][:limit] for name in sorted(by_input)))
    return [ref for turn in turns for ref in turn if ref is not None][:limit]


def _lacking(rule: Rule, missing: tuple[str, ...]) -> NotEvaluated:
    hints: dict[str, None] = {}
    for need in missing:
        offers = [TABLES[name].hint for name in need.split("|") if TABLES[name].hint]
        hints.update(dict.fromkeys([" or ".join(dict.fromkeys(offers))] if offers else []))
    return NotEvaluated(rule.id, rule.cause, missing, "; ".join(hints) or "no input holds it")
