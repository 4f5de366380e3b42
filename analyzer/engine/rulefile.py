"""Reads rule files: one rule per YAML file below a folder, ``rules/<area>/<name>.yaml``.

A rule that loads is known to be sound in form: known keys, cause, tables and columns, one SELECT that SQLite
accepts, texts whose place holders are columns of the query, and a test that fires and one that stays quiet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analyzer.engine.fields import Fields, as_fields, template_of
from analyzer.engine.rule import REF_COLUMNS, ROLES, SCOPES, SEVERITIES, Explains, Rule
from analyzer.engine.sandbox import Database, QueryFault
from analyzer.engine.sql_error import query_error, text_error
from analyzer.engine.sqltext import SqlError, check_select, named_tables
from analyzer.engine.strict_yaml import MAX_BYTES, Scalar, read_yaml
from analyzer.engine.suggest import did_you_mean, quoted, rule_error
from analyzer.engine.template import Template
from analyzer.engine.testcase import read_tests
from analyzer.errors import RuleError
from analyzer.schema import TABLES

REQUIRED = ("cause", "role", "severity", "confidence", "title", "needs", "query", "key", "message", "fix", "tests")
KEYS = ("id", *REQUIRED, "explains", "considered", "references")
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*(?::[a-z0-9._-]+)?\Z")
_SHOWN_ERRORS = 20


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rules that are sound, sorted by id, and one error per broken file."""

    rules: tuple[Rule, ...]
    errors: tuple[RuleError, ...]


def load_rules(folders: Sequence[Path], catalogue: Collection[str] | None = None) -> list[Rule]:
    """All rules below the folders, sorted by id. Raises one RuleError with a line for each broken file.

    ``catalogue`` holds the known ids of causes and symptoms; without it, ids are not checked.
    """
    loaded = read_rules(folders, catalogue)
    if loaded.errors:
        lines = [str(error) for error in loaded.errors]
        rest = [f"... and {len(lines) - _SHOWN_ERRORS} more"] * (len(lines) > _SHOWN_ERRORS)
        raise RuleError("\n".join(lines[:_SHOWN_ERRORS] + rest), loaded.errors[0].help_text)
    return list(loaded.rules)


def read_rules(folders: Sequence[Path], catalogue: Collection[str] | None = None) -> Loaded:
    """Like load_rules, but keeps the sound rules beside the errors of the broken ones."""
    schema = Database().seal()
    rules: dict[str, Rule] = {}
    errors = []
    for path in _rule_paths(folders):
        try:
            rule = read_rule(_text_of(path), str(path), catalogue, schema)
            if rule.id in rules:
                what = f"id {quoted(rule.id)} is already that of {rules[rule.id].file}"
                raise rule_error(rule.file, rule.lines.get("id", rule.lines["cause"]), what)
            rules[rule.id] = rule
        except RuleError as error:
            errors.append(error)
    return Loaded(tuple(rules[name] for name in sorted(rules)), tuple(errors))


def read_rule(
    text: str, file: str, catalogue: Collection[str] | None = None, schema: Database | None = None
) -> Rule:
    """The rule that a file's text holds. Raises RuleError. ``schema`` is an empty database to try the query on."""
    fields = as_fields(read_yaml(text, file), file, "a rule")
    fields.check_keys(KEYS, REQUIRED)
    cause = fields.text("cause")
    _check_cause(cause, fields.scalar("cause").line, file, catalogue)
    sql, lines, columns = _query(fields, schema or Database().seal())
    message = template_of(fields.scalar("message"), file)
    rule = Rule(
        id=_identity(fields, cause),
        cause=cause,
        role=fields.choice("role", ROLES),
        severity=fields.choice("severity", SEVERITIES),
        confidence=fields.share("confidence"),
        title=fields.text("title"),
        needs=tuple(_needs(fields)),
        query=sql,
        key=fields.texts("key"),
        message=message,
        explains=tuple(_explains(entry, catalogue) for entry in fields.mappings("explains")),
        considered=fields.templates("considered"),
        fix=fields.templates("fix"),
        references=fields.texts("references"),
        tests=read_tests(fields, columns),
        columns=columns,
        tables=named_tables(sql, TABLES),
        file=file,
        lines=lines,
    )
    _check_columns(rule)
    return rule


def _rule_paths(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        if folder.is_file():
            yield folder
            continue
        if not folder.is_dir():
            raise rule_error(str(folder), 0, "no such folder of rules")
        for root, subfolders, names in os.walk(folder):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            for name in sorted(names):
                path = Path(root, name)
                if path.suffix in (".yaml", ".yml") and not name.startswith("."):
                    yield path


def _text_of(path: Path) -> str:
    if path.suffix != ".yaml":
        raise rule_error(str(path), 0, "rule files end in .yaml")
    if not path.is_file():
        raise rule_error(str(path), 0, "not a regular file")
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise rule_error(str(path), 0, f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise rule_error(str(path), 0, f"larger than {MAX_BYTES // 1024} KiB; a rule is a short text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise rule_error(str(path), data[: error.start].count(b"\n") + 1, "not UTF-8") from None


def _identity(fields: Fields, cause: str) -> str:
    name = fields.text("id", cause)
    if not _ID.match(name):
        what = f"id {quoted(name)} must be lower-case words joined by . - _, with one suffix after ':'"
        raise fields.error(fields.line("id"), what)
    return name


def _check_cause(cause: str, line: int, file: str, catalogue: Collection[str] | None) -> None:
    if catalogue is None or cause in catalogue:
        return
    if cause.endswith("*") and any(known.startswith(cause[:-1]) for known in catalogue):
        return
    raise rule_error(file, line, f"unknown cause {quoted(cause)}{did_you_mean(cause, catalogue)}")


def _needs(fields: Fields) -> Iterator[tuple[str, ...]]:
    for node in fields.scalars("needs"):
        names = tuple(part.strip() for part in node.raw.split("|"))
        for name in names:
            if name not in TABLES:
                what = f"needs: unknown table {quoted(name)}{did_you_mean(name, TABLES)}"
                raise fields.error(node.line, what)
        yield names


def _explains(entry: Fields, catalogue: Collection[str] | None) -> Explains:
    entry.check_keys(("cause", "scope", "before"), ("cause",))
    cause = entry.text("cause")
    line = entry.scalar("cause").line
    if "*" in cause[:-1]:
        raise entry.error(line, f"explains: a * may only end {quoted(cause)}")
    _check_cause(cause, line, entry.file, catalogue)
    for node in entry.scalars("scope"):
        if node.raw not in SCOPES:
            what = f"scope: {quoted(node.raw)} is not known{did_you_mean(node.raw, SCOPES)}; it is one of "
            raise entry.error(node.line, what + ", ".join(SCOPES))
    return Explains(cause, tuple(word for word in SCOPES if word in entry.texts("scope")), entry.flag("before"))


def _query(fields: Fields, schema: Database) -> tuple[str, dict[str, int], tuple[str, ...]]:
    """The SQL text, the lines of all keys (of the query: its first line) and the columns of the query."""
    node: Scalar = fields.scalar("query")
    sql, lines = node.raw.rstrip(), {**fields.table.lines, "query": node.first}
    try:
        check_select(sql)
        columns = schema.columns(sql)
    except SqlError as error:
        raise text_error(error, sql, fields.file, node.first) from None
    except QueryFault as fault:
        raise query_error(fault, sql, fields.file, node.first) from None
    twice = sorted({c.split(":")[0] for c in columns if ":" in c or columns.count(c) > 1})
    if twice:
        raise fields.error(node.first, f"query: column {quoted(twice[0])} is there twice; name it by AS")
    if not set(REF_COLUMNS) & set(columns):
        raise fields.error(node.first, "query: no column ref or refs; a finding cites the lines it stands on")
    return sql, lines, columns


def _check_columns(rule: Rule) -> None:
    for name in rule.key:
        if name not in rule.columns:
            raise _no_column(rule, "key", rule.lines["key"], name)
    texts: list[tuple[str, Template]] = [("message", rule.message)]
    texts += [("considered", text) for text in rule.considered] + [("fix", text) for text in rule.fix]
    for key, text in texts:
        for place in text.fields:
            if place.column not in rule.columns:
                raise _no_column(rule, key, rule.lines[key], place.column)


def _no_column(rule: Rule, key: str, line: int, name: str) -> RuleError:
    what = f"{key}: the query has no column {quoted(name)}{did_you_mean(name, rule.columns)}"
    return rule_error(rule.file, line, what)
