"""A small reader of SQL text: is it one SELECT, which tables does it name, which terms do its clauses have.

It respects strings, quoted names, comments, parentheses, CASE and BETWEEN; SQLite itself judges the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*(?:(?!\*/)[\s\S])*\*/)
    |(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])
    |(?P<word>[A-Za-z_][A-Za-z0-9_$]*)
    |(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+)
    |(?P<mark>[\s\S])""",
    re.VERBOSE,
)
MOST_EXPANDED = 500
_CLAUSES = {"WHERE", "HAVING", "ON"}
_FOLLOWERS = "GROUP ORDER LIMIT UNION EXCEPT INTERSECT WINDOW JOIN LEFT RIGHT FULL INNER CROSS NATURAL SELECT USING"
_ENDS = _CLAUSES | set(_FOLLOWERS.split())


@dataclass(frozen=True, slots=True)
class Token:
    """One token: ``word`` is upper case for keywords and names, the character itself for marks."""

    kind: str
    word: str
    start: int
    end: int
    depth: int


@dataclass(frozen=True, slots=True)
class Term:
    """One AND term of a clause: what stands at ``start:end`` of the query."""

    clause: str
    text: str
    start: int
    end: int


class SqlError(ValueError):
    """The text is not one SELECT; ``offset`` is the place in the text."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def tokens(sql: str) -> list[Token]:
    """All tokens without blanks and comments; a bracket has the depth of what stands around it."""
    found: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        kind, text = match.lastgroup or "mark", match.group()
        if kind == "space":
            continue
        if kind == "mark" and text in "'\"`[":
            raise SqlError("a quote that is not closed", match.start())
        word = text.upper() if kind == "word" else text
        if word == ")" or word == "END":
            depth -= 1
        if depth < 0:
            raise SqlError(f"{text} without its opening", match.start())
        found.append(Token(kind, word, match.start(), match.end(), depth))
        if word == "(" or word == "CASE":
            depth += 1
    if depth:
        raise SqlError("a parenthesis or CASE that is not closed", len(sql))
    return found


def check_select(sql: str) -> None:
    """Raises SqlError unless the text is one SELECT (or WITH ... SELECT) without parameters."""
    found = tokens(sql)
    if not found:
        raise SqlError("the query is empty", 0)
    if found[0].word not in ("SELECT", "WITH") or found[0].kind != "word":
        raise SqlError("the query must start with SELECT or WITH", found[0].start)
    if expansion(found) > MOST_EXPANDED:
        raise SqlError(f"its CTEs use each other more than {MOST_EXPANDED} times in all", 0)
    for token in found:
        if token.word == ";" and token is not found[-1]:
            raise SqlError("a second statement; a rule has one SELECT", token.start)
        if token.kind == "mark" and token.word in "?@$:":
            raise SqlError(f"a parameter ({token.word}); write the value itself", token.start)


def expansion(found: Sequence[Token]) -> int:
    """How many uses of CTEs SQLite has to write out; it does so before any time limit holds, doubling in chains."""
    cost: dict[str, int] = {}
    total = 0
    inside: list[tuple[str, int, int]] = []
    for place, token in enumerate(found):
        if inside and token.word == ")" and token.depth == inside[-1][1]:
            name, _, before = inside.pop()
            cost[name] = 1 + min(total - before, MOST_EXPANDED)
            total = before
        elif token.kind in ("word", "name"):
            total += cost.get(token.word.strip('"`[]').upper(), 0)
        elif token.word == "(" and (name := _cte_name(found, place)):
            inside.append((name, token.depth, total))
    return total


def _cte_name(found: Sequence[Token], place: int) -> str:
    """The name in ``name [(columns)] AS [[NOT] MATERIALIZED] (`` that ends at this parenthesis, or nothing."""
    at = place - 1
    while at >= 0 and found[at].word in ("NOT", "MATERIALIZED"):
        at -= 1
    if at < 1 or found[at].word != "AS":
        return ""
    at -= 1
    if found[at].word == ")":
        depth = found[at].depth
        while at > 0 and not (found[at].word == "(" and found[at].depth == depth):
            at -= 1
        at -= 1
    return found[at].word.strip('"`[]').upper() if at >= 0 else ""


def bare(sql: str) -> str:
    """The query without its closing semicolon, so that it can stand in parentheses."""
    found = tokens(sql)
    return sql[: found[-1].start] if found and found[-1].word == ";" else sql


def named_tables(sql: str, known: Collection[str]) -> frozenset[str]:
    """Which of the known tables the text names anywhere (at least those that it reads)."""
    lower = {name.lower(): name for name in known}
    words = (t.word.lower() if t.kind == "word" else sql[t.start + 1 : t.end - 1].lower() for t in tokens(sql))
    return frozenset(lower[word] for word in words if word in lower)


def terms(sql: str) -> list[Term]:
    """Every AND term of every WHERE, HAVING and ON clause, at any depth, in the order of the text."""
    found = tokens(sql)
    every = (term for index, token in enumerate(found) for term in _clause_terms(sql, found, index, token))
    return sorted(every, key=lambda term: (term.start, -term.end))


def without(sql: str, term: Term) -> str:
    """The query with the term replaced by one that always holds."""
    return f"{sql[: term.start]} 1 {sql[term.end :]}"


def _clause_terms(sql: str, found: list[Token], index: int, token: Token) -> Iterator[Term]:
    if token.kind != "word" or token.word not in _CLAUSES:
        return
    start = index + 1
    between = 0
    for place in range(start, len(found) + 1):
        at_end = place == len(found) or _ends_clause(found[place], token.depth)
        here = found[place] if not at_end else None
        if here and here.depth == token.depth and here.kind == "word":
            between += here.word == "BETWEEN"
        is_and = bool(here and here.word == "AND" and here.kind == "word" and here.depth == token.depth)
        if is_and and between:
            between -= 1
        elif at_end or is_and:
            if place > start:
                a, b = found[start].start, found[place - 1].end
                yield Term(token.word, " ".join(sql[a:b].split()), a, b)
            start = place + 1
        if at_end:
            return


def _ends_clause(token: Token, depth: int) -> bool:
    if token.depth > depth:
        return False
    if token.word == ")" or token.word == "END":
        return token.depth < depth
    if token.kind == "word":
        return token.word in _ENDS
    return token.word in ",;"
