"""The seam between the scanner and the parsers of the formats.

A format is a ``Format``: its grammar, the literals that make the gate offer it a line, and a session class.
One session lives per format and stream (input file and launcher label). The scanner offers it lines; it takes
them, leaves them, or - after a line that starts a block - asks for all following lines until it says that the
block has ended. A session yields rows through ``emit`` and reports what it could not read as a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from analyzer.shapes import LineGrammar

Values = Mapping[str, object]


@dataclass(slots=True)
class Line:
    """One visible line: text without launcher prefixes, and what the prefixes and the file said of it.

    ``at`` is seconds since the epoch (UTC), ``boot_s`` seconds since boot; ``prefix_pid`` comes from a launcher.
    ``boots_ago`` counts the boots since a message of the kernel, where the bundle that holds it says so.
    """

    ref: int
    stream: int
    text: str
    host: str | None = None
    rank: int | None = None
    at: float | None = None
    boot_s: float | None = None
    prefix_pid: int | None = None
    boots_ago: int | None = None


class Emit(Protocol):
    """Takes one row of a table of ``analyzer.schema``; the common columns come from the line."""

    def __call__(self, table: str, line: Line, values: Values) -> None:
        """Adds the row; unnamed columns are NULL."""
        ...


class Verdict(Enum):
    """What a session says to a line."""

    TAKEN = "taken"  # recognised
    LEFT = "left"  # not mine; an open block goes on
    UNREAD = "unread"  # mine by its literal, but unreadable: becomes a problem
    ENDED = "ended"  # not mine, and the open block is over


class Session:
    """State of one format in one stream. Subclasses define ``on_<kind>(fields, line)`` methods.

    A handler returns None (taken) or a ``Verdict``. While ``open`` is true the scanner offers every line.
    """

    open: bool = False

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        self.grammar = grammar
        self.emit = emit
        self._handlers: dict[str, Callable[[Mapping[str, str], Line], Verdict | None]] = {}

    def offer(self, line: Line, called: bool) -> Verdict:
        """Judges a line. ``called`` is true when the line holds a literal of the format."""
        match = self.grammar.parse(line.text)
        if match is None:
            return self.unread(line) if called else self.foreign(line)
        handler = self._handlers.get(match.kind)
        if handler is None:
            handler = self._handlers[match.kind] = getattr(self, f"on_{match.kind}")
        return handler(match.fields, line) or Verdict.TAKEN

    def unread(self, line: Line) -> Verdict:
        """A line with a literal of the format that the grammar does not know."""
        return Verdict.UNREAD

    def foreign(self, line: Line) -> Verdict:
        """A line without literal that the grammar does not know, while a block is open."""
        return Verdict.LEFT

    def close(self) -> None:
        """The stream or the block ended: rows that waited for more lines go out now."""
        self.open = False


@dataclass(frozen=True, slots=True)
class Format:
    """One input format.

    ``literals`` are what the gate looks for (each line of the format that starts a row or a block holds one);
    ``command`` prints the format; ``versions`` says which tool versions the grammar was checked against.
    """

    name: str
    grammar: str
    literals: tuple[str, ...]
    session: type[Session]
    title: str
    command: str
    versions: str
    weak_literals: frozenset[str] = field(default_factory=frozenset)
    """Literals that also occur in lines of other origin: a line that only holds these is never a problem."""
    blocks: bool = True
    """Whether a line may need its neighbours (dumps, tables); a large file is not cut near such lines."""
    anchor: str = ""
    """Text that stands before the telling words of most lines (see ``LineGrammar``)."""


class DocumentError(Exception):
    """A document of this format that cannot be read, or must not be; the text says why."""


@dataclass(frozen=True, slots=True)
class Document:
    """A format that is one document, not lines: a JSON file, a pickle. It is read whole, up to a cap.

    ``accepts`` sees the first bytes of an input. ``read`` gets all bytes and an ``emit(table, values)``; it raises
    ``DocumentError`` for a document that is broken or refused. Rows refer to line 1 of the input.
    """

    name: str
    accepts: Callable[[bytes], bool]
    read: Callable[[bytes, Callable[[str, Values], None]], None]
    title: str
    command: str
    versions: str


class Parser:
    """A format with its grammar loaded once for all streams."""

    def __init__(self, fmt: Format, *, plans: bool = True) -> None:
        self.format = fmt
        self.grammar = LineGrammar(fmt.grammar, plans=plans, anchor=fmt.anchor)

    def session(self, emit: Emit) -> Session:
        """A fresh session for one stream."""
        return self.format.session(self.grammar, emit)
