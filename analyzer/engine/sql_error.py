"""Turns what SQLite says of a query into one line: the place in the rule file and the nearest known names."""

from __future__ import annotations

import re
from collections.abc import Collection

from analyzer.engine.aggregates import ALLOWED
from analyzer.engine.sandbox import QueryFault
from analyzer.engine.sqltext import SqlError, named_tables
from analyzer.engine.suggest import did_you_mean, rule_error
from analyzer.errors import RuleError
from analyzer.schema import TABLES

_CULPRIT = re.compile(
    r"no such (?P<kind>column|table|function): (?P<name>\S+)"
    r'|near "(?P<near>[^"]+)"'
    r"|use function: (?P<denied>\S+)"
    r"|wrong number of arguments to (?:aggregate )?function (?P<wrong>\w+)"
    r"|ambiguous column name: (?P<ambiguous>\S+)"
)


def query_error(fault: QueryFault, sql: str, file: str, first_line: int) -> RuleError:
    """The fault as ``file:line: what (did you mean ...)``."""
    text = str(fault)
    match = _CULPRIT.search(text)
    if match is None:
        return rule_error(file, first_line, f"query: {text}")
    found = {name: value for name, value in match.groupdict().items() if value}
    culprit = next(value for name, value in found.items() if name != "kind")
    hint = did_you_mean(culprit.rsplit(".", 1)[-1], _known(found, sql))
    return rule_error(file, first_line + _line_of(culprit, sql), f"query: {text}{hint}")


def text_error(error: SqlError, sql: str, file: str, first_line: int) -> RuleError:
    """The same for a text that is not one SELECT."""
    return rule_error(file, first_line + sql[: error.offset].count("\n"), f"query: {error}")


def _known(found: dict[str, str], sql: str) -> Collection[str]:
    if "denied" in found or found.get("kind") == "function":
        return ALLOWED
    if found.get("kind") == "table":
        return TABLES
    if found.get("kind") == "column":
        return {column for table in named_tables(sql, TABLES) for column in TABLES[table].names}
    return ()


def _line_of(culprit: str, sql: str) -> int:
    """Lines before the first mention of the culprit; 0 where it does not stand in the text."""
    spot = re.search(rf"(?<![\w.]){re.escape(culprit)}(?!\w)", sql, re.IGNORECASE)
    return sql[: spot.start()].count("\n") if spot else 0
