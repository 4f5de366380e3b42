"""The values that a rule file becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from analyzer.engine.template import Template
from analyzer.model import Role, Severity

Scope = Literal["host", "gpu", "rank", "link", "process"]

ROLES: tuple[Role, ...] = ("root", "consequence", "risk", "info")
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
SCOPES: tuple[Scope, ...] = ("host", "gpu", "rank", "link", "process")
# Query columns that fill Where, and those that override a field of the rule for their row.
WHERE_COLUMNS = ("host", "rank", "gpu", "bus_id", "link", "process", "file")
REF_COLUMNS = ("ref", "refs")
OVERRIDES = ("confidence", "severity", "role", "at", "title")


@dataclass(frozen=True, slots=True)
class Explains:
    """What a cause makes redundant: an id, or a prefix that ends in ``*``, where the scope agrees.

    ``before``: the explaining finding must not be later than the explained one, where both are dated.
    """

    cause: str
    scope: tuple[Scope, ...] = ()
    before: bool = False

    def names(self, cause: str) -> bool:
        """Whether the entry means this cause."""
        return cause.startswith(self.cause[:-1]) if self.cause.endswith("*") else cause == self.cause


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected finding: field or column -> value, ``message~`` -> substring(s)."""

    values: Mapping[str, object]
    line: int


@dataclass(frozen=True, slots=True)
class RuleTest:
    """One test of a rule: the given rows of each table (column -> value) and the expected findings."""

    name: str
    given: Mapping[str, tuple[Mapping[str, object], ...]]
    expect: tuple[Expected, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``columns`` are those of its query, ``tables`` the tables that it reads or needs.

    ``needs`` is a conjunction of alternatives; ``lines`` gives the line of each key of the file and, as
    ``query``, the line of the first line of the SQL text.
    """

    id: str
    cause: str
    role: Role
    severity: Severity
    confidence: float
    title: str
    needs: tuple[tuple[str, ...], ...]
    query: str
    key: tuple[str, ...]
    message: Template
    explains: tuple[Explains, ...] = ()
    considered: tuple[Template, ...] = ()
    fix: tuple[Template, ...] = ()
    references: tuple[str, ...] = ()
    tests: tuple[RuleTest, ...] = ()
    columns: tuple[str, ...] = ()
    tables: frozenset[str] = frozenset()
    file: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)
