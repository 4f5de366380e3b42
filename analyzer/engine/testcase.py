"""The ``tests`` of a rule file: given rows and expected findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from analyzer.engine.fields import Fields, as_fields
from analyzer.engine.rule import OVERRIDES, REF_COLUMNS, WHERE_COLUMNS, Expected, RuleTest
from analyzer.engine.strict_yaml import Items, Node, Scalar
from analyzer.engine.suggest import did_you_mean, quoted, rule_error
from analyzer.schema import TABLES, Type

# Texts of a finding that a test can ask about by "name~: part of the text".
TEXTS = ("message", "title", "fix", "considered")
_ACCEPTED: dict[Type, tuple[type, ...]] = {"int": (int,), "bool": (bool, int), "float": (int, float), "str": (str,)}
_WORDS: dict[Type, str] = {"int": "an integer", "bool": "true or false", "float": "a number", "str": "a text"}


def read_tests(fields: Fields, columns: Collection[str]) -> tuple[RuleTest, ...]:
    """The tests of a rule whose query gives ``columns``; one must fire and one must stay quiet."""
    tests = tuple(_test(entry, columns) for entry in fields.mappings("tests"))
    line = fields.line("tests")
    if not any(test.expect for test in tests):
        raise fields.error(line, "tests: none fires; add one whose expect lists a finding")
    if all(test.expect for test in tests):
        raise fields.error(line, "tests: none stays quiet; add a look-alike with expect: []")
    names = [test.name for test in tests]
    for test in tests:
        if names.count(test.name) > 1:
            raise fields.error(test.line, f"tests: two tests are named {quoted(test.name)}")
    return tests


def _test(entry: Fields, columns: Collection[str]) -> RuleTest:
    entry.check_keys(("name", "given", "expect"), ("name", "given", "expect"))
    given = as_fields(entry.table.entries["given"], entry.file, "given")
    for name in given.table.entries:
        if name not in TABLES:
            what = f"given: unknown table {quoted(name)}{did_you_mean(name, TABLES)}"
            raise given.error(given.table.lines[name], what)
    rows = {name: tuple(_row(row, name) for row in given.mappings(name)) for name in given.table.entries}
    expect = tuple(_expected(one, columns) for one in entry.mappings("expect"))
    return RuleTest(entry.text("name"), rows, expect, entry.table.line)


def _row(row: Fields, table: str) -> Mapping[str, object]:
    types = {column.name: column.type for column in TABLES[table].columns}
    for name in row.table.entries:
        if name not in types:
            what = f"table {table} has no column {quoted(name)}{did_you_mean(name, types)}"
            raise row.error(row.table.lines[name], what)
    return {name: _cell(row, name, types[name]) for name in row.table.entries}


def _cell(row: Fields, name: str, kind: Type) -> object:
    node = row.scalar(name)
    if node.value is None:
        return None
    if kind == "str":
        return node.raw
    accepted = isinstance(node.value, _ACCEPTED[kind]) and (kind == "bool" or not isinstance(node.value, bool))
    if not accepted or (isinstance(node.value, int) and abs(node.value) >= 2**63):
        raise row.error(node.line, f"column {name} takes {_WORDS[kind]}, not {quoted(node.raw)}")
    return node.value


def _expected(entry: Fields, columns: Collection[str]) -> Expected:
    known = {*columns, *WHERE_COLUMNS, *OVERRIDES, *TEXTS, *(f"{name}~" for name in TEXTS)} - set(REF_COLUMNS)
    entry.check_keys(known)
    if not entry.table.entries:
        raise entry.error(entry.table.line, "expect: an empty entry; name the host, rank or figure that must come out")
    values = {name: _expectation(node, entry.file) for name, node in entry.table.entries.items()}
    return Expected(values, entry.table.line)


def _expectation(node: Node, file: str) -> object:
    """A value, or a tuple of values."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return tuple(_expectation(item, file) for item in node.items)
    raise rule_error(file, node.line, "expect: a value or a list of values")
