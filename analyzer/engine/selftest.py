"""Tests of rules: as written, under the variations of ``variations`` and with each term of the query dropped.

A term of a WHERE, HAVING or ON clause whose removal fails no test is untested: either a test is missing or
the term does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from analyzer.engine.candidate import Candidate
from analyzer.engine.evaluate import missing_tables, run_rule
from analyzer.engine.expectation import mismatch
from analyzer.engine.rule import Rule, RuleTest
from analyzer.engine.sandbox import Database, QueryFault
from analyzer.engine.sql_error import query_error
from analyzer.engine.sqltext import Term, terms, without
from analyzer.engine.suggest import quoted
from analyzer.engine.variations import Variation, is_elsewhere, variations

_MUTANT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that a rule's tests show to be wrong; prints as ``file:line: what``."""

    rule: str
    file: str
    line: int
    what: str
    test: str = ""

    def __str__(self) -> str:
        where = f"test {quoted(self.test)}: " if self.test else ""
        return f"{self.file}:{self.line}: {self.rule}: {where}{self.what}"


@dataclass(frozen=True, slots=True)
class _Case:
    """One variation of one test, loaded; ``base`` holds the candidates of the test as given."""

    test: RuleTest
    variation: Variation
    database: Database
    base: tuple[Candidate, ...]


def test_rules(rules: Iterable[Rule]) -> list[Failure]:
    """All failures of all rules, in the order of the rules."""
    return [failure for rule in rules for failure in test_rule(rule)]


# The names are part of the API; pytest must not collect them where a test module imports them.
test_rules.__test__ = False  # type: ignore[attr-defined]


def test_rule(rule: Rule) -> list[Failure]:
    """The failures of one rule; its terms are tried only when its tests pass."""
    try:
        cases = list(_cases(rule))
        failures = _failures(rule, cases)
    except QueryFault as fault:
        error = query_error(fault, rule.query, rule.file, rule.lines.get("query", 0))
        return [Failure(rule.id, rule.file, rule.lines.get("query", 0), f"the query fails: {error}")]
    return failures or list(_untested(rule, cases))


test_rule.__test__ = False  # type: ignore[attr-defined]


def _cases(rule: Rule) -> Iterator[_Case]:
    quiet = [test for test in rule.tests if not test.expect]
    for test in rule.tests:
        base: tuple[Candidate, ...] | None = None
        for variation in variations(test, quiet):
            database = Database.from_rows(variation.rows, rule.tables)
            if base is None:
                base = tuple(run_rule(rule, database))
            yield _Case(test, variation, database, base)


def _failures(rule: Rule, cases: Sequence[_Case]) -> list[Failure]:
    """The first failure of each test; variations are tried once all tests pass as given."""
    found: dict[str, Failure] = {}
    for given in (True, False):
        for case in cases:
            if case.test.name in found or given is bool(case.variation.label):
                continue
            what = _lacking(rule, case) or _wrong(case, run_rule(rule, case.database))
            if what:
                label = "" if given else f"{case.variation.label}: "
                found[case.test.name] = Failure(rule.id, rule.file, case.test.line, label + what, case.test.name)
        if found:
            break
    return list(found.values())


def _lacking(rule: Rule, case: _Case) -> str:
    missing = missing_tables(rule, case.database)
    if missing:
        return f"given has no row of {', '.join(missing)}, which the rule needs: it would not be evaluated"
    return ""


def _wrong(case: _Case, found: Sequence[Candidate]) -> str:
    """What is wrong with these candidates, or nothing."""
    if not case.variation.same:
        stray = next((one for one in found if is_elsewhere(one.finding.where)), None)
        return f"a finding for that host: {stray.finding.message}" if stray else ""
    uncited = next((one for one in found if not one.refs), None)
    if uncited:
        return f"a finding cites no line (ref and refs are NULL): {uncited.finding.message}"
    return mismatch(found, case.test.expect) or (_changed(case.base, found) if case.variation.label else "")


def _changed(base: Sequence[Candidate], found: Sequence[Candidate]) -> str:
    """The first figure or text that the variation changed."""
    for before, after in zip(base, found, strict=False):
        for name in ("message", "where", "confidence", "severity", "role", "title", "advice", "considered", "at"):
            a, b = getattr(before.finding, name), getattr(after.finding, name)
            if a != b:
                return f"{name} changed from {a} to {b}"
    return "" if len(base) == len(found) else f"{len(found)} findings instead of {len(base)}"


def _untested(rule: Rule, cases: Sequence[_Case]) -> Iterator[Failure]:
    for term in terms(rule.query):
        mutant = replace(rule, query=without(rule.query, term))
        if not any(_detects(mutant, case) for case in cases):
            yield Failure(rule.id, rule.file, _line(rule, term), f"{term.clause} term {quoted(term.text)} is untested")


def _detects(mutant: Rule, case: _Case) -> bool:
    """Whether the case fails with the changed query; a query that no longer runs is noticed too."""
    try:
        return bool(_wrong(case, run_rule(mutant, case.database, _MUTANT_SECONDS)))
    except QueryFault:
        return True


def _line(rule: Rule, term: Term) -> int:
    return rule.lines.get("query", 0) + rule.query[: term.start].count("\n")
