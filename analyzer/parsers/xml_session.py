"""XML documents inside logs: they are fed to an XML parser line by line, so that a cut one yields what it had.

Only what stands between the root tags is parsed: a document type with entities in front of it is never read, and a
reference to an entity of it is an error (``defusedxml`` refuses declarations inside as well). Lines of other programs
between the lines of a document are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax import SAXException
from xml.sax.handler import ContentHandler

from defusedxml import DefusedXmlException
from defusedxml.sax import make_parser

from analyzer.parsers.base import DocumentError, Emit, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

MAX_LINES = 200_000


class XmlSession(Session):
    """Follows one document. Subclasses say by ``ROOTS`` which, and define ``begin``, ``start``, ``end``, ``finish``."""

    ROOTS: tuple[str, ...] = ()

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._parser: Any = None
        self._lines = 0
        self._unclosed = ""
        self.line = Line(0, 0, "")
        self.path: list[str] = []
        self.text: list[str] = []
        self.leaf = False

    def begin(self) -> None:
        """A document begins."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins; ``path`` ends with it."""

    def end(self, name: str, text: str | None) -> None:
        """An element ends; ``path`` ends with it, ``text`` is that of an element without children."""

    def finish(self) -> None:
        """The document ended or broke off."""

    def offer(self, line: Line, called: bool) -> Verdict:
        if self._parser is not None:
            return self._feed(line, line.text)
        return super().offer(line, called) if called else Verdict.LEFT

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def on_root(self, f: Fields, line: Line) -> Verdict | None:
        name = f["root"][1:]
        if name not in self.ROOTS:
            return Verdict.LEFT
        self._parser = make_parser()
        self._parser.setContentHandler(_Handler(self))
        self._lines = 0
        self._unclosed = ""
        self.path, self.text, self.leaf = [], [], False
        self.open = True
        self.begin()
        return self._feed(line, line.text[line.text.index(f["root"]) :])

    def _feed(self, line: Line, text: str) -> Verdict:
        bare = text.strip()
        inner = self.leaf and bare.count("<") == bare.count("</")
        if not bare or not (self._unclosed or bare.startswith("<") or inner):
            return Verdict.LEFT
        self._unclosed = self._still_open(bare)
        self.line = line
        self._lines += 1
        try:
            self._parser.feed(text + "\n")
        except (SAXException, DefusedXmlException) as error:
            told = error.getMessage() if isinstance(error, SAXException) else "declarations inside are refused"
            self.close()
            raise DocumentError(f"the document ends here: {told}") from None
        return self._give_up(Verdict.TAKEN) if self._done() or self._lines >= MAX_LINES else Verdict.TAKEN

    def _still_open(self, text: str) -> str:
        """What must come before the next line can be another program's: the end of a tag or of a comment."""
        if self._unclosed == "-->" and "-->" not in text:
            return "-->"
        if text.rfind("<!--") > text.rfind("-->"):
            return "-->"
        return ">" if text.rfind("<") > text.rfind(">") or (self._unclosed and ">" not in text) else ""

    def _done(self) -> bool:
        return not self.path and self._lines > 0

    def _give_up(self, verdict: Verdict) -> Verdict:
        self.close()
        return verdict

    def close(self) -> None:
        """Sends what the document had."""
        if self._parser is not None:
            self._parser = None
            self.finish()
        super().close()


class _Handler(ContentHandler):
    """Passes the events of the parser on."""

    def __init__(self, session: XmlSession) -> None:
        super().__init__()
        self._session = session

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: N802 - the name that xml.sax calls
        session = self._session
        session.path.append(name)
        session.text, session.leaf = [], True
        session.start(name, {key: attrs.getValue(key) for key in attrs.getNames()})

    def characters(self, content: str) -> None:
        if self._session.leaf:
            self._session.text.append(content)

    def endElement(self, name: str) -> None:  # noqa: N802
        session = self._session
        session.end(name, " ".join("".join(session.text).split()) if session.leaf else None)
        session.leaf = False
        session.path.pop()
