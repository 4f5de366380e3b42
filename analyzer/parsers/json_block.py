"""A JSON document that a tool printed among other lines: collected until its braces balance, then read at once."""

from __future__ import annotations

import json
from typing import Any

from analyzer.parsers.base import Line

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
