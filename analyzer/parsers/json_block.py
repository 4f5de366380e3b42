"""A JSON document that a tool printed among other lines: collected until its braces balance, then read at once."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from analyzer.parsers.base import Emit, Line, Session, Verdict
from analyzer.shapes import LineGrammar

_MOST_LINES = 200_000
_MOST_CHARACTERS = 64 << 20


class JsonBlock:
    """Lines of one document. ``head`` stands for an opening brace on a line that was not offered."""

    def __init__(self, line: Line, head: str = "") -> None:
        self.line = line
        self._texts: list[str] = []
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._size = 0
        if head:
            self._add(head)

    def add(self, text: str) -> bool:
        """Takes a line; True when the document is complete or has become too long."""
        self._add(text)
        return self._depth <= 0 or self._size > _MOST_CHARACTERS or len(self._texts) > _MOST_LINES

    def _add(self, text: str) -> None:
        self._size += len(text)
        for place, character in enumerate(text):
            if self._quoted:
                self._quoted = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._quoted = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    text = text[: place + 1]
                    break
        self._texts.append(text)

    def value(self) -> Any:
        """The document, None where it is broken or cut."""
        try:
            return json.loads("\n".join(self._texts))
        except (ValueError, RecursionError):
            return None


def opening(text: str, key: str) -> tuple[str, str]:
    """What to put in front of a line that holds a key of the outermost object, and where in it the document begins."""
    brace = text.find("{")
    start = text.find(f'"{key}')
    return ("", text[brace:]) if 0 <= brace < start else ("{", text[start:])


class JsonOrTableSession(Session):
    """For a tool that prints tables or one JSON document: collects the document, counts foreign lines of a table."""

    foreign_lines: ClassVar[int] = 6  # more than these end a table

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._json: JsonBlock | None = None
        self._strange = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        """A line inside the document belongs to it, whatever it says."""
        if self._json is not None:
            if self._json.add(line.text):
                self.close()
            return Verdict.TAKEN
        return super().offer(line, called)

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        if not self.open:
            return Verdict.LEFT
        self._strange += bool(line.text.strip())
        return Verdict.ENDED if self._strange > self.foreign_lines else Verdict.LEFT
