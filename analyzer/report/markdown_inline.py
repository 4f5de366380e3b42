"""Pieces of Markdown (GitHub's dialect) in which text of a log can become neither markup nor link nor HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from analyzer.report.escape import one_line, prose, shorten

_PROSE_LIMIT = 2000
_LINE_LIMIT = 600

_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$!]|(?<=:)//|(?<=\bwww)\.")
_LEADING = re.compile(r"^(\d*)([-+=]|(?<=\d)[.)](?=\s|$))")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_BACKTICKS = re.compile(r"`+")


def inline(text: str, limit: int = _PROSE_LIMIT) -> str:
    """Text of a log or a rule as harmless inline Markdown on one line."""
    cut = shorten(prose(text), limit).translate(_ENTITIES)
    escaped = _SPECIAL.sub(lambda found: f"\\{found[0]}", cut)
    return _LEADING.sub(r"\1\\\2", escaped)


def fence_for(text: str, shortest: int) -> str:
    """Backticks, more of them than anywhere in the text."""
    return "`" * max([shortest, *(len(run) + 1 for run in _BACKTICKS.findall(text))])


def code(text: str, limit: int = _LINE_LIMIT) -> str:
    """A code span whose delimiter is longer than any run of backticks in it."""
    cut = shorten(one_line(text), limit)
    fence = fence_for(cut, 1)
    space = " " if cut.startswith("`") or cut.endswith("`") else ""
    return f"{fence}{space}{cut}{space}{fence}" if cut else ""


def block(lines: Iterable[str], indent: str = "") -> list[str]:
    """A fenced block whose fence is longer than any run of backticks in it."""
    rows = [shorten(one_line(line), _LINE_LIMIT) for line in lines]
    fence = fence_for("\n".join(rows), 3)
    return [indent + row for row in (f"{fence}text", *rows, fence)]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """A table of cells that are already Markdown; columns in ``right`` are aligned to the right."""
    numeric = set(right)
    rule = ["---:" if i in numeric else "---" for i in range(len(head))]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]


def more(hidden: int, noun: str) -> list[str]:
    """``and 12 more files`` after a blank line; nothing where nothing is left out."""
    return ["", f"and {hidden:,} more {noun}"] if hidden > 0 else []


def steps(texts: Iterable[str], numbered: bool = True) -> list[str]:
    """List items; further lines of a text become paragraphs of its item."""
    rows: list[str] = []
    for number, text in enumerate(texts, 1):
        mark = f"{number}." if numbered else "-"
        parts = [part for part in text.split("\n") if part.strip()] or [""]
        rows.append(f"{mark} {inline(parts[0])}")
        for part in parts[1:]:
            rows += ["", " " * (len(mark) + 1) + inline(part)]
    return rows
