"""Typed access to the keys of a YAML mapping; every fault is one RuleError with the line of the value."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

from analyzer.engine.strict_yaml import Items, Node, Scalar, Table
from analyzer.engine.suggest import did_you_mean, quoted, rule_error
from analyzer.engine.template import Template, TemplateError, parse_template

Word = TypeVar("Word", bound=str)
_KINDS = {Scalar: "a value", Items: "a list", Table: "a mapping"}


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping of a rule file, with the name of the file for error texts."""

    table: Table
    file: str

    def check_keys(self, known: Collection[str], required: Collection[str] = ()) -> None:
        """Refuses unknown keys and demands the required ones."""
        for key in self.table.entries:
            if key not in known:
                raise self.error(self.table.lines[key], f"unknown key {quoted(key)}{did_you_mean(key, known)}")
        for key in required:
            if key not in self.table.entries:
                raise self.error(self.table.line, f"key {quoted(key)} is missing")

    def error(self, line: int, what: str) -> Exception:
        """A RuleError at that line of the file."""
        return rule_error(self.file, line, what)

    def line(self, key: str) -> int:
        """The line of the key, or of the mapping where the key is absent."""
        return self.table.lines.get(key, self.table.line)

    def scalar(self, key: str) -> Scalar:
        """The scalar of that key."""
        node = self.table.entries[key]
        if not isinstance(node, Scalar):
            raise self.error(self.line(key), f"{key} must be one value, not {_KINDS[type(node)]}")
        return node

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty."""
        if default is not None and key not in self.table.entries:
            return default
        node = self.scalar(key)
        if not node.raw.strip() or node.value is None:
            raise self.error(node.line, f"{key} is empty")
        return node.raw.strip()

    def choice(self, key: str, words: Collection[Word]) -> Word:
        """One of the words."""
        return one_of(self.scalar(key), key, words, self.file)

    def share(self, key: str) -> float:
        """A number from 0 to 1."""
        node = self.scalar(key)
        value = node.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise self.error(node.line, f"{key} must be a number from 0 to 1, not {quoted(node.raw)}")
        return float(value)

    def flag(self, key: str) -> bool:
        """A truth value; false where the key is absent."""
        if key not in self.table.entries:
            return False
        node = self.scalar(key)
        if not isinstance(node.value, bool):
            raise self.error(node.line, f"{key} must be true or false, not {quoted(node.raw)}")
        return node.value

    def items(self, key: str) -> tuple[Node, ...]:
        """The entries of a list; none where the key is absent."""
        node = self.table.entries.get(key)
        if node is None:
            return ()
        if not isinstance(node, Items):
            raise self.error(self.line(key), f"{key} must be a list, not {_KINDS[type(node)]}")
        return node.items

    def scalars(self, key: str) -> Iterator[Scalar]:
        """The entries of a list of values, none of them empty."""
        for node in self.items(key):
            if not isinstance(node, Scalar) or not node.raw.strip() or node.value is None:
                raise self.error(node.line, f"{key} must hold texts (quote one that has ': ' or starts with {{)")
            yield node

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(node.raw.strip() for node in self.scalars(key))

    def mappings(self, key: str) -> Iterator[Fields]:
        """The entries of a list of mappings."""
        for node in self.items(key):
            yield as_fields(node, self.file, f"an entry of {key}")

    def templates(self, key: str) -> tuple[Template, ...]:
        """A list of texts with place holders."""
        return tuple(template_of(node, self.file) for node in self.scalars(key))


def as_fields(node: Node, file: str, what: str) -> Fields:
    """The node as a mapping."""
    if not isinstance(node, Table):
        raise rule_error(file, node.line, f"{what} must be a mapping, not {_KINDS[type(node)]}")
    return Fields(node, file)


def one_of(node: Node, what: str, words: Collection[Word], file: str) -> Word:
    """The word that the node names, of those allowed."""
    raw = node.raw if isinstance(node, Scalar) else ""
    for word in words:
        if word == raw:
            return word
    hint = did_you_mean(raw, words) or f" (one of {', '.join(sorted(words))})" * (len(words) <= 8)
    raise rule_error(file, node.line, f"{what}: {quoted(raw)} is not known{hint}")


def template_of(node: Scalar, file: str) -> Template:
    """The text as a template; the error names the line inside a block of text."""
    try:
        return parse_template(node.raw.strip())
    except TemplateError as error:
        line = node.first + node.raw.lstrip()[: error.offset].count("\n")
        raise rule_error(file, line, str(error)) from None
