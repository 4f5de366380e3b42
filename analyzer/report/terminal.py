"""A page of text on a rich console: headings, wrapped paragraphs, rows cut to the width. Never wider than it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from analyzer.report.escape import one_line, prose, shorten

_PROSE_LIMIT = 2000
_CELLS_PER_CHARACTER_LIMIT = 4  # marks of zero width must not make a row endless


class Page:
    """Writes to a console; every text that it gets is plain: markup, emoji codes and escapes mean nothing."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = max(20, console.width)
        self.ellipsis = "\u2026" if console.is_terminal and not console.options.ascii_only else "..."

    def _encodable(self, text: str) -> str:
        """The text with what the console cannot encode spelled out."""
        encoding = self.console.encoding
        return text.encode(encoding, "backslashreplace").decode(encoding)

    def line(self, text: str | Text = "") -> None:
        """One line as it is; the caller has seen to its width and encoding."""
        styled = Text(self._encodable(text)) if isinstance(text, str) else text
        self.console.print(styled, soft_wrap=True, markup=False, highlight=False, emoji=False)

    def heading(self, title: str) -> None:
        """A blank line and a heading in capitals."""
        self.line()
        self.paragraph(title.upper(), 0, style="bold")

    def paragraph(self, text: str, indent: int = 2, hang: int = 0, style: str = "", lead: str = "") -> None:
        """Prose, wrapped: ``lead`` stands before the first line, the others start ``hang`` cells further in."""
        words = self._encodable(shorten(prose(text), _PROSE_LIMIT))
        rows = Text(words, style=style).wrap(self.console, self.width - indent - hang, overflow="fold")
        for number, row in enumerate(rows):
            row.rstrip()
            start = lead.ljust(hang) if number == 0 else " " * hang
            self.line(Text(" " * indent + start) + row)

    def block(self, text: str, indent: int = 2, hang: int = 0, lead: str = "") -> None:
        """Prose of several paragraphs (advice with a command in a line of its own)."""
        parts = [part for part in text.split("\n") if part.strip()]
        for number, part in enumerate(parts):
            self.paragraph(part, indent, hang, lead=lead if number == 0 else "")

    def item(self, mark: str, text: str, indent: int = 2) -> None:
        """A list item: the mark, then wrapped text beside it."""
        self.block(text, indent, len(mark) + 1, mark)

    def fields(self, rows: Sequence[tuple[str, str]], indent: int = 2) -> None:
        """Names and wrapped values in two columns."""
        wide = max((len(name) for name, _ in rows), default=0) + 2
        for name, value in rows:
            self.paragraph(value, indent, wide, lead=name)

    def clipped(self, text: str, indent: int = 2, style: str = "", lead: str = "") -> None:
        """One row after ``lead``, cut to the width with an ellipsis."""
        start = " " * indent + lead
        self.line(Text(start + self.clip(text, self.width - len(start)), style=style))

    def clip(self, text: str, cells: int) -> str:
        """The text as one line of at most ``cells`` cells."""
        row = self._encodable(one_line(text)[: cells * _CELLS_PER_CHARACTER_LIMIT])
        if cell_len(row) <= cells:
            return row
        return set_cell_size(row, max(0, cells - len(self.ellipsis))).rstrip() + self.ellipsis

    def more(self, hidden: int, noun: str, indent: int = 2) -> None:
        """``and 12 more problems`` where something was left out."""
        if hidden > 0:
            self.paragraph(f"and {hidden:,} more {noun}", indent)
