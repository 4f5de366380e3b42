"""The strict reader of rule files: plain mappings, lists and scalars, each with its line.

Refused, each with one error line: anchors, aliases, tags, duplicate keys, keys that are no text, several
documents, nesting deeper than 12 levels and files above 256 KiB. Only ``true``/``false``/``null``,
decimal integers (``80_000`` too) and decimal floats are anything but text, so that ``no``, ``on``,
``0000:3b:00.0`` and ``2024-01-01`` stay what the author wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from analyzer.engine.suggest import quoted, rule_error

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12

Plain: TypeAlias = "str | int | float | bool | None"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]{1,20}(?:_[0-9]{1,20}){0,8}\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,20}\.[0-9]{0,20}|\.[0-9]{1,20}|[0-9]{1,20}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?\Z")
_WORDS: dict[str, Plain] = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar: ``value`` as understood, ``raw`` as written; ``first`` is the line of its first character."""

    value: Plain
    raw: str
    line: int
    first: int


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping; ``lines`` holds the line of each key."""

    entries: dict[str, Node]
    lines: dict[str, int]
    line: int


Node: TypeAlias = "Scalar | Items | Table"


def read_yaml(text: str, file: str) -> Node:
    """The one document of ``text``; ``file`` is only for error texts. Raises RuleError."""
    try:
        return _Reader(yaml.parse(text, Loader=_LOADER), file).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(error.problem or error.context or "not YAML").split())
        raise rule_error(file, mark.line + 1 if mark else 1, f"not YAML: {what}") from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1 if isinstance(error.position, int) else 1
        raise rule_error(file, line, "not YAML: a character that YAML does not allow") from None
    except yaml.YAMLError as error:
        raise rule_error(file, 1, f"not YAML: {quoted(error)}") from None


def understood(raw: str) -> Plain:
    """A plain scalar as a value (see the module's text for the few that are not text)."""
    if raw in _WORDS:
        return _WORDS[raw]
    if _INT.match(raw):
        return int(raw)
    return float(raw) if _FLOAT.match(raw) else raw


class _Reader:
    """Builds nodes from parser events; the depth is bounded, so recursion is too."""

    def __init__(self, events: Iterator[Any], file: str) -> None:
        self._events = events
        self._file = file

    def document(self) -> Node:
        """Reads the whole stream and demands exactly one document in it."""
        next(self._events)
        start = next(self._events)
        if isinstance(start, yaml.StreamEndEvent):
            raise rule_error(self._file, 1, "the file is empty")
        node = self._node(next(self._events), 1)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise rule_error(self._file, after.start_mark.line + 1, "a second document; one rule per file")
        return node

    def _node(self, event: Any, depth: int) -> Node:
        line = event.start_mark.line + 1
        self._refuse(event, line, depth)
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style in (None, "")
            first = line + 1 if event.style in ("|", ">") else line
            return Scalar(understood(event.value) if plain else event.value, event.value, line, first)
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(tuple(self._items(depth)), line)
        return self._mapping(line, depth)

    def _refuse(self, event: Any, line: int, depth: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise rule_error(self._file, line, "an alias (*name); write the value out")
        if event.anchor is not None:
            raise rule_error(self._file, line, "an anchor (&name); write the value out")
        if event.tag is not None:
            raise rule_error(self._file, line, f"a tag ({quoted(event.tag)}); only plain values are read")
        if depth > MAX_DEPTH:
            raise rule_error(self._file, line, f"nested deeper than {MAX_DEPTH} levels")

    def _items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            yield self._node(event, depth + 1)

    def _mapping(self, line: int, depth: int) -> Table:
        entries: dict[str, Node] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if not isinstance(key, Scalar):
                raise rule_error(self._file, key.line, "a key that is not a word")
            if key.raw in entries:
                what = f"key {quoted(key.raw)} is already in line {lines[key.raw]}"
                raise rule_error(self._file, key.line, what)
            lines[key.raw] = key.line
            entries[key.raw] = self._node(next(self._events), depth + 1)
        return Table(entries, lines, line)
