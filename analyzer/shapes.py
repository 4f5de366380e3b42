"""Shape plans: lark parses one exemplar of each shape of a line, the plan reads all others of that shape.

The *shape* of a line is the line with its digit runs, hexadecimal words and blanks masked. For the first line
of a shape lark builds a parse tree; from the tree comes a *plan*: a regular expression that repeats the
exemplar, with the masked runs open and one group for each field. A line that does not fully match a plan of
its shape goes to lark itself, so both ways give the same result (a test compares them over real logs).

Grammar conventions: rules named ``k_...`` name the kind of the line, a rule that holds nothing but tokens is a
field, the terminals in ``CLASS_TERMINALS`` are the only ones whose text may vary within a shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

CLASS_TERMINALS = frozenset({"INT", "SIGNED", "HEX", "PTR", "FLOAT", "NUMBER"})
MAX_SHAPES = 20_000
_RECENT = 4
_KEY = 6

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![0-9A-Za-z_])[a-f]*[0-9][0-9a-f]*(?![0-9A-Za-z_])|[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_BLANKS = re.compile(r"[ \t]+")
_OPEN = re.compile(
    r"(?P<ptr>0x[0-9a-fA-F]+)|(?P<hex>(?<![0-9A-Za-z_])[a-f]*[0-9][0-9a-f]*(?![0-9A-Za-z_]))"
    r"|(?P<int>[0-9]+)|(?P<blank>[ \t]+)"
)


class Match(NamedTuple):
    """A line that a grammar recognised: its kind and its fields as text."""

    kind: str
    fields: Mapping[str, str]


class _Plan(NamedTuple):
    kind: str
    names: tuple[str, ...]
    regex: re.Pattern[str]


class _Span(NamedTuple):
    name: str
    start: int
    end: int


def shape_of(text: str) -> str:
    """The line with numbers and blanks masked."""
    return _BLANKS.sub(" ", _NUMBER.sub("0", text))


class LineGrammar:
    """One lark grammar over single lines. ``plans=False`` sends every line to lark (the reference for tests).

    ``anchor`` is a text that most lines hold before the words that tell them apart; plans are tried by these words.
    """

    def __init__(self, name: str, *, plans: bool = True, anchor: str = "") -> None:
        self.name = name
        self._anchor = anchor
        self._skip = len(anchor) + 1 if anchor else 0
        self._use_plans = plans
        self._plans: dict[str, list[_Plan]] = {}
        self._rejected: set[str] = set()
        self._recent: dict[str, list[_Plan]] = {}
        self._lark: Lark | None = None
        self._class_regex: dict[str, str] = {}
        self._literal: frozenset[str] = frozenset()
        self.lark_parses = 0

    def parse(self, text: str) -> Match | None:
        """The kind and fields of a line, None where the grammar does not know it."""
        if not self._use_plans:
            return self._by_lark(text)[0]
        start = text.find(self._anchor) + self._skip if self._anchor else 0
        key = text[start : start + _KEY]
        for plan in self._recent.get(key, ()):
            found = plan.regex.fullmatch(text)
            if found:
                return Match(plan.kind, dict(zip(plan.names, found.groups(), strict=True)))
        return self._by_shape(text, key)

    def _remember(self, key: str, plan: _Plan) -> None:
        if len(self._recent) >= MAX_SHAPES:
            self._recent.clear()
        recent = self._recent.setdefault(key, [])
        if plan not in recent:
            recent.insert(0, plan)
            del recent[_RECENT:]

    def _by_shape(self, text: str, key: str) -> Match | None:
        shape = shape_of(text)
        for plan in self._plans.get(shape, ()):
            found = plan.regex.fullmatch(text)
            if found:
                self._remember(key, plan)
                return Match(plan.kind, dict(zip(plan.names, found.groups(), strict=True)))
        strict = _BLANKS.sub(" ", _DIGITS.sub("0", text))
        if strict in self._rejected:
            return None
        match, plan_made = self._by_lark(text)
        if match is None:
            if len(self._rejected) >= MAX_SHAPES:
                self._rejected.clear()
            self._rejected.add(strict)
        elif plan_made is not None:
            if len(self._plans) >= MAX_SHAPES:
                self._plans.clear()
            self._plans.setdefault(shape, []).append(plan_made)
            self._remember(key, plan_made)
        return match

    def _by_lark(self, text: str) -> tuple[Match | None, _Plan | None]:
        from lark.exceptions import LarkError

        lark = self._load()
        self.lark_parses += 1
        try:
            tree = lark.parse(text)
        except LarkError:
            return None, None
        kind, spans, tokens = _read_tree(tree)
        match = Match(kind, {span.name: text[span.start : span.end] for span in spans if span.end > span.start})
        return match, self._make_plan(text, kind, spans, tokens) if self._use_plans else None

    def _load(self) -> Lark:
        if self._lark is None:
            from lark.lexer import PatternStr

            from analyzer.grammar_store import load

            self._lark = load(self.name)
            for terminal in self._lark.terminals:
                if terminal.name in CLASS_TERMINALS:
                    self._class_regex[terminal.name] = terminal.pattern.to_regexp()
            self._literal = frozenset(t.name for t in self._lark.terminals if isinstance(t.pattern, PatternStr))
        return self._lark

    def _make_plan(self, text: str, kind: str, spans: Sequence[_Span], tokens: Sequence[Token]) -> _Plan | None:
        spans = [span for span in spans if span.end > span.start]
        names = tuple(span.name for span in spans)
        if len(set(names)) != len(names):
            return None
        marks: dict[int, str] = {}
        for span in spans:
            marks[span.start] = marks.get(span.start, "") + "("
        ends = {span.end for span in spans}
        parts: list[str] = []
        at = 0
        for token in tokens:
            start, end = token.start_pos or 0, token.end_pos or 0
            parts.append(_open_text(text[at:start]))
            parts.append(marks.get(start, ""))
            parts.append(self._token_regex(token))
            if end in ends:
                parts.append(")")
            at = end
        parts.append(_open_text(text[at:]))
        return _Plan(kind, names, re.compile("".join(parts)))

    def _token_regex(self, token: Token) -> str:
        if token.type in self._class_regex:
            return f"(?:{self._class_regex[token.type]})"
        if token.type in self._literal:
            return re.escape(token)
        return _open_text(str(token))


def _open_text(text: str) -> str:
    """A regular expression for the text with its numbers and blanks open."""
    parts: list[str] = []
    at = 0
    for run in _OPEN.finditer(text):
        parts.append(re.escape(text[at : run.start()]))
        if run.lastgroup == "ptr":
            parts.append("0x[0-9a-fA-F]+")
        elif run.lastgroup == "hex":
            parts.append("[a-f]*[0-9][0-9a-f]*")
        else:
            parts.append("[0-9]+" if run.lastgroup == "int" else "[ \\t]+")
        at = run.end()
    parts.append(re.escape(text[at:]))
    return "".join(parts)


def _read_tree(tree: Tree[Token]) -> tuple[str, list[_Span], list[Token]]:
    """Kind, field spans and tokens of a parse tree, in the order of the line."""
    from lark import Token, Tree

    kind = ""
    spans: list[_Span] = []
    tokens: list[Token] = []
    stack: list[Tree[Token] | Token] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Token):
            tokens.append(node)
            continue
        if node.data.startswith("k_"):
            kind = str(node.data)[2:]
        elif node.children and not any(isinstance(child, Tree) for child in node.children) and node.data != "start":
            first, last = node.children[0], node.children[-1]
            assert isinstance(first, Token) and isinstance(last, Token)
            spans.append(_Span(str(node.data), first.start_pos or 0, last.end_pos or 0))
        stack.extend(reversed(node.children))
    return kind, spans, tokens
