"""The scanner: drives one input through gate, prefixes and sessions, and collects rows, problems and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from analyzer.gate import Scanner, make_scanner
from analyzer.model import InputFile, Problem, make_ref, split_ref
from analyzer.parsers.base import Document, DocumentError, Format, Line, Parser, Session, Values, Verdict
from analyzer.schema import COMMON, TABLES
from analyzer.sources import Block, BugReport, Member, about_dump, blocks, clean, name_host, name_rank, split_prefix
from analyzer.tail import last_lines, shortened, sure_rank

FOREIGN_LIMIT = 64
"""So many foreign lines in a row end an open block: it was cut, or another program took over the stream."""
DOCUMENT_CAP = 256 << 20
TEXT_CAP = 600
TEXTS_PER_TABLE = 4000
ROWS_PER_TABLE = 500_000
"""Rows that one table keeps: a log that floods one message must not fill the memory."""
_COMMON = len(COMMON)
_NOBODY: frozenset[int] = frozenset()


@dataclass(slots=True)
class Scan:
    """What one scan yields: rows per table (in schema order), cited texts, problems, one entry per input."""

    rows: dict[str, list[tuple[object, ...]]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    inputs: list[InputFile] = field(default_factory=list)
    recognised: dict[str, list[int]] = field(default_factory=dict)
    """Per format: lines recognised, lines of its own that it could not read."""


class Collector:
    """Receives rows from the sessions of one scan."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._names = {name: table.names[_COMMON:] for name, table in TABLES.items() if not table.derived}
        self._kept: dict[str, int] = {}
        self.dropped: dict[str, int] = {}

    def emit(self, table: str, line: Line, values: Values) -> None:
        """Adds one row; a value that the table has no column for is an error of the parser."""
        names = self._names[table]
        if line.boots_ago is not None and "boots_ago" in names:
            values = {"boots_ago": line.boots_ago, **values}
        get = values.get
        rows = self._scan.rows.setdefault(table, [])
        if len(rows) >= ROWS_PER_TABLE:
            self.dropped[table] = self.dropped.get(table, 0) + 1
            return
        row = (line.ref, line.stream, get("host", line.host), get("rank", line.rank), get("at", line.at))
        rows.append(row + tuple([get(name) for name in names]))
        kept = self._kept.get(table, 0)
        if table != "stream" and kept < TEXTS_PER_TABLE and line.ref not in self._scan.texts:
            self._kept[table] = kept + 1
            self._scan.texts[line.ref] = line.text[:TEXT_CAP]


class ScanDriver:
    """Scans inputs one after another; grammars, gate and shape plans stay warm between them."""

    def __init__(self, formats: Sequence[Format], documents: Sequence[Document] = (), *, plans: bool = True) -> None:
        self._documents = tuple(documents)
        self._parsers = tuple(Parser(fmt, plans=plans) for fmt in formats)
        literals: dict[bytes, list[int]] = {}
        weak: set[tuple[bytes, int]] = set()
        for number, parser in enumerate(self._parsers):
            for text in parser.format.literals:
                literals.setdefault(text.encode(), []).append(number)
                if text in parser.format.weak_literals:
                    weak.add((text.encode(), number))
        self.literals = tuple(literals)
        self._callers = tuple(frozenset(literals[text]) for text in self.literals)
        self._sure = tuple(frozenset(n for n in literals[text] if (text, n) not in weak) for text in self.literals)
        self._gate: Scanner = make_scanner(self.literals)
        self.start_over()

    def start_over(self) -> None:
        """Forgets what was scanned; grammars, gate and shape plans stay."""
        self.scan = Scan()
        self._collector = Collector(self.scan)
        self._streams = 0

    def member(self, member: Member, input_id: int, problem: Callable[[Problem], None]) -> None:
        """Scans one readable stream as input number ``input_id``."""
        head = member.peek()
        for document in self._documents:
            if document.accepts(head) and self._document(document, member, input_id, problem):
                return
        run = _MemberScan(self, member.name, input_id)
        for block in blocks(member, problem):
            run.block(block)
        run.close()
        kinds = ", ".join(sorted(run.kinds, key=lambda kind: (-run.kinds[kind], kind))) or "unknown"
        self.scan.inputs.append(
            InputFile(member.name, kinds, member.total_bytes, member.total_lines, run.recognised_lines)
        )
        self.scan.problems.extend(run.problem_list())
        for table, count in self._collector.dropped.items():
            what = f"{table}: more than {ROWS_PER_TABLE:,} rows, the rest was not kept"
            self.scan.problems.append(Problem(member.name, 0, what, count))
        self._collector.dropped.clear()

    def _document(self, document: Document, member: Member, input_id: int, problem: Callable[[Problem], None]) -> bool:
        """Reads a whole document; False when it is no document of this format and is to be read line by line."""
        data = member.peek(DOCUMENT_CAP + 1)
        line = Line(make_ref(input_id, 1), self._streams, "", name_host(member.name), name_rank(member.name))
        recognised = self.scan.recognised.setdefault(document.name, [0, 0])
        try:
            if len(data) > DOCUMENT_CAP:
                raise DocumentError(f"larger than {DOCUMENT_CAP >> 20} MiB, not read")
            rows: list[tuple[str, Values]] = []
            document.read(data, lambda table, values: rows.append((table, values)))
        except DocumentError as error:
            recognised[1] += 1
            return self._refused(document, member, line, str(error), len(data), problem)
        except Exception as error:  # noqa: BLE001 - one document that breaks its reader must not lose the report
            what = f"parser failed: {type(error).__name__}: {error}"
            return self._refused(document, member, line, what, len(data), problem)
        run = _MemberScan(self, member.name, input_id)
        for table, values in rows:
            self._collector.emit(table, line, values)
        run.close()
        recognised[0] += 1
        lines = data.count(b"\n") + 1
        self.scan.inputs.append(InputFile(member.name, document.name, len(data), lines, lines))
        return True

    def _refused(
        self, document: Document, member: Member, line: Line, what: str, size: int, problem: Callable[[Problem], None]
    ) -> bool:
        """A document that was not read: a problem, and for a binary file a row, so that a rule can tell of it."""
        problem(Problem(member.name, 0, f"{document.name}: {what}"))
        kind = member.binary_kind()
        if kind is None:
            return False
        run = _MemberScan(self, member.name, split_ref(line.ref)[0])
        self._collector.emit("input_refused", line, {"format": document.name, "reason": what})
        run.close()
        self.scan.inputs.append(InputFile(member.name, kind, size, 0, 0))
        return True


@dataclass(slots=True)
class _Stream:
    number: int
    host: str | None
    rank: int | None
    sessions: dict[int, Session] = field(default_factory=dict)
    foreign: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Unread:
    """Lines of one shape that a format could not read: the first of them, and how many."""

    ref: int
    text: str
    count: int = 0


class _MemberScan:
    """The state of scanning one input."""

    def __init__(self, driver: ScanDriver, name: str, input_id: int) -> None:
        self._d = driver
        self._name = name
        self._input = input_id
        self._streams: dict[str, _Stream] = {}
        self._name_rank = name_rank(name)
        self._name_host = name_host(name)
        self._open = 0
        self.kinds: dict[str, int] = {}
        self.recognised_lines = 0
        self._problems: dict[tuple[str, str], _Unread] = {}
        self._last: Block | None = None
        self._bundle: BugReport | None = None
        self._boots_ago: int | None = None
        self._new_stream("", None, 1)  # a file without a known line is a writer too: its silence may matter

    def block(self, block: Block) -> None:
        """Scans one block; that of a bug report section by section."""
        self._last = block
        if block.first_line == 1 and BugReport.accepts(block.data):
            self._bundle = BugReport(block.data)
            self._is_of(self._bundle.host)
        if self._bundle is None:
            self._scan(block)
            return
        for section in self._bundle.sections(block):
            if section.starts:
                self._end_blocks()
            self._boots_ago = section.boots_ago
            if not section.dump:
                self._scan(section.block)
            elif section.starts:
                what = about_dump(section.title)
                self._d.scan.problems.append(Problem(self._name, section.block.first_line, what))

    def _is_of(self, host: str | None) -> None:
        """All lines of the input are of this host, unless a line says otherwise."""
        self._name_host = host or self._name_host
        for stream in self._streams.values():
            stream.host = stream.host or host

    def _end_blocks(self) -> None:
        """Ends every open block: another section begins."""
        for stream in self._streams.values():
            for session in stream.sessions.values():
                if session.open:
                    session.close()
        self._open = 0

    def _scan(self, block: Block) -> None:
        """Jumps from hit to hit, and walks line by line while a block format is open."""
        data = block.data
        hits = self._d._gate.scan(data)
        hits.append((len(data), -1))
        at, number, index = 0, block.first_line, 0
        size = len(data)
        callers, sure = self._d._callers, self._d._sure
        while at < size:
            if not self._open:
                target = hits[index][0]
                if target >= size:
                    return
                start = data.rfind(b"\n", at, target) + 1 or at
                number += data.count(b"\n", at, start)
                at = start
            end = data.find(b"\n", at)
            called, strong = _NOBODY, _NOBODY
            last = -1
            while hits[index][0] < end:
                literal = hits[index][1]
                if literal != last:
                    last = literal
                    called = called | callers[literal] if called else callers[literal]
                    strong = strong | sure[literal] if strong else sure[literal]
                index += 1
            self._line(data[at:end], number, called, strong)
            at, number = end + 1, number + 1

    def close(self) -> None:
        """Ends every session."""
        for stream in self._streams.values():
            for session in stream.sessions.values():
                session.close()
        if self._bundle is not None and not self._bundle.complete:
            self._d.scan.problems.append(Problem(self._name, 0, "bug report that ends early: its last line is missing"))
        if self._last is not None:
            self._tail(self._last)

    def _tail(self, block: Block) -> None:
        """Keeps the last plain lines; those of a label that no format met belong to the bare file."""
        for number, prefixed in last_lines(block):
            stream = self._streams.get(prefixed.label)
            known = stream or self._streams[""]
            rank = sure_rank(prefixed) if stream is None else known.rank
            line = Line(make_ref(self._input, number), known.number, prefixed.text, prefixed.host, rank, prefixed.at)
            self._d._collector.emit("last_line", line, {"text": shortened(prefixed.text)})

    def _line(self, raw: bytes, number: int, called: frozenset[int], strong: frozenset[int]) -> None:
        taken = False
        segments = clean(raw)
        for text in segments:
            callers = called
            if len(segments) > 1 and called:
                callers = frozenset(n for n in called if any(w in text for w in self._d._parsers[n].format.literals))
            taken = self._segment(text, number, callers, strong) or taken
        self.recognised_lines += taken

    def _segment(self, text: str, number: int, called: frozenset[int], strong: frozenset[int]) -> bool:
        prefixed = split_prefix(text)
        stream = self._streams.get(prefixed.label)
        if stream is None:
            stream = self._new_stream(prefixed.label, prefixed.rank, number)
        line = Line(
            make_ref(self._input, number),
            stream.number,
            prefixed.text,
            prefixed.host or stream.host,
            prefixed.rank if prefixed.rank is not None else stream.rank,
            prefixed.at,
            prefixed.boot_s,
            prefixed.pid,
            self._boots_ago,
        )
        taken = False
        if self._open:
            for which, session in list(stream.sessions.items()):
                if session.open:
                    taken = self._offer(stream, which, session, line, which in called, which in strong) or taken
                    called = called - {which}
        for which in called if len(called) < 2 else sorted(called):
            session_ = stream.sessions.get(which)
            if session_ is None:
                session_ = stream.sessions[which] = self._d._parsers[which].session(self._d._collector.emit)
            taken = self._offer(stream, which, session_, line, True, which in strong) or taken
        return taken

    def _offer(self, stream: _Stream, which: int, session: Session, line: Line, called: bool, strong: bool) -> bool:
        was_open = session.open
        name = self._d._parsers[which].format.name
        try:
            verdict = session.offer(line, called)
        except DocumentError as error:
            verdict, strong = Verdict.UNREAD, False
            self._d.scan.recognised.setdefault(name, [0, 0])[1] += 1
            self._d.scan.problems.append(Problem(self._name, split_ref(line.ref)[1], f"{name}: {error}"))
        except Exception as error:  # noqa: BLE001 - one line that breaks one parser must not lose the report
            verdict = Verdict.UNREAD
            strong = True
            self._broken(name, line, error)
        if verdict is Verdict.ENDED:
            if session.open:
                session.close()
            self._open -= was_open
            return self._offer(stream, which, session, line, True, strong) if called else False
        if verdict is Verdict.TAKEN:
            stream.foreign[which] = 0
            self.kinds[name] = self.kinds.get(name, 0) + 1
            self._d.scan.recognised.setdefault(name, [0, 0])[0] += 1
        elif verdict is Verdict.UNREAD:
            if strong:
                self._unread(name, line)
        elif was_open:
            stream.foreign[which] = stream.foreign.get(which, 0) + 1
            if stream.foreign[which] >= FOREIGN_LIMIT:
                stream.foreign[which] = 0
                session.close()
        self._open += session.open - was_open
        return verdict is Verdict.TAKEN

    def _broken(self, name: str, line: Line, error: Exception) -> None:
        """A parser failed on a line: a fault of crashcart, told as a problem with the place in the code."""
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        where = f" at {frame.tb_frame.f_code.co_name}:{frame.tb_lineno}" if frame else ""
        self._d.scan.problems.append(
            Problem(self._name, line.ref & 0xFFFFFFFFFF, f"{name}: parser failed: {type(error).__name__}{where}")
        )

    def _unread(self, name: str, line: Line) -> None:
        from analyzer.shapes import shape_of

        self._d.scan.recognised.setdefault(name, [0, 0])[1] += 1
        key = (name, shape_of(line.text)[:120])
        known = self._problems.get(key)
        if known is None:
            known = self._problems[key] = _Unread(line.ref, line.text[:120])
        known.count += 1

    def problem_list(self) -> Iterator[Problem]:
        """One problem for each shape of line that a format could not read."""
        for (name, _), found in self._problems.items():
            what = f"{name}: line of unknown form: {found.text}"
            yield Problem(self._name, split_ref(found.ref)[1], what, found.count)

    def _new_stream(self, label: str, rank: int | None, number: int) -> _Stream:
        stream = _Stream(self._d._streams, self._name_host, rank)
        self._d._streams += 1
        self._streams[label] = stream
        line = Line(make_ref(self._input, number), stream.number, label, self._name_host, rank)
        values = {"input": self._input, "label": label, "label_rank": rank, "name_rank": self._name_rank}
        self._d._collector.emit("stream", line, values)
        return stream
