"""Bandwidth between pairs of hosts, or of their adapters, in the tables that sites make of their tests.

# ib_write_bw node-a (rows) -> node-b (columns), Gb/s, '-' = timed out
         mlx5_0   mlx5_1
mlx5_0   371.2    -
mlx5_1   -        370.9

pair              busbw (GB/s)
node01 node02     92.4
node01 <-> node03: 47.1 GB/s
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import number
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 4
_NAME = r"[A-Za-z][\w.]*(?:-[\w.]+)*"
_NAMES = re.compile(rf"{_NAME}")
_TELLING = re.compile(r"[0-9]|-[a-zA-Z]$|^[A-Z]$")
_ADAPTER = re.compile(r"(?:mlx|ib|hfi|bnxt|rdmap|irdma|roce)\w*[0-9]\w*|NIC[0-9]+|nic[0-9]+|rail-?[0-9]+")
_FAILED = re.compile(r"(?i)-+|x|fail(?:ed)?|time-?d?-?out|err(?:or)?|inf|nan")
_SELF = re.compile(r"(?i)\.|n/a|self|\*|0(?:\.0+)?")
_UNIT = re.compile(r"(?<![A-Za-z])(G[Bb](?:it)?/s(?:ec)?|Gbps|MB/s(?:ec)?)")
_VALUE = re.compile(r"(?<![\w.:-])([0-9]+(?:\.[0-9]+)?)(?:[ \t]*(G[Bb](?:it)?/s(?:ec)?|Gbps|MB/s(?:ec)?))?(?![\w.:/])")
_PAIR = re.compile(
    rf"[#*|(\s]*(?:pair\s+)?\(?({_NAME})\s*(?:<-*>|-+>|<=+>|<|>|,|/|\||:|&|\+|\bto\b|\bvs\b|\band\b|\s-\s|\s)\s*({_NAME})\)?[\s:,|=]+(.*)"
)
_JOINED = re.compile(r"[#*|(\s]*(?:pair\s+)?([A-Za-z]{1,20}-?[0-9]{1,6})-([A-Za-z]{1,20}-?[0-9]{1,6})\)?[\s:,|=]+(.*)")
_ENDS = re.compile(rf"({_NAME})\s*(?:\(rows?\)\s*)?(?:<-*>|-+>|\bto\b|\bvs\b)\s*({_NAME})(?:\s*\(col\w*\))?")
_TOOL = re.compile(r"\b(ib_\w+_bw|osu_\w+|\w+_perf)\b")
_TITLE = re.compile(
    r"(?i)\b(?:ib_\w+_bw|osu_\w+|\w+_perf|all_?reduce|bus ?bw|bandwidth|pairs?|pairwise)\b"
    r"(?=.*(?:G[Bb](?:it)?/s|Gbps|bus ?bw|bandwidth|pair|rows|_bw))|\bpair\b"
)
_WORDY = re.compile(r"(?i)busbw|algbw|bandwidth|\bbw\b|G[Bb](?:it)?/s|Gbps|pair")


class HostPairSession(Session):
    """Open from a title on, until lines come that are neither header, row nor pair."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._reset()

    def _reset(self) -> None:
        self._columns: list[str] = []
        self._ends: tuple[str, str] | None = None
        self._tool: str | None = None
        self._unit: str | None = None
        self._foreign = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        """Lines of NCCL's own log are left to their parser."""
        if "NCCL INFO" in line.text or "NCCL WARN" in line.text:
            return Verdict.LEFT
        return super().offer(line, called)

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Forgets the table."""
        self._reset()
        super().close()

    def _title(self, text: str) -> None:
        self._reset()
        tool, unit = _TOOL.search(text), _UNIT.search(text)
        self._tool = tool.group(1) if tool else None
        self._unit = unit.group(1) if unit else None
        ends = _ENDS.search(text)
        if ends and _telling(ends.group(1)) and _telling(ends.group(2)):
            self._ends = (ends.group(1), ends.group(2))
        self.open = True

    def on_line(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open and not _WORDY.search(line.text):
            return Verdict.LEFT
        if self._row(line) or self._pair(line, line.text):
            self._foreign = 0
            return None
        if self._head(line):
            return None
        if _TITLE.search(line.text):
            self._title(line.text)
            return None
        return self.foreign(line) if self.open else Verdict.LEFT

    def _head(self, line: Line) -> bool:
        names = [word for word in re.split(r"[\s|,]+", line.text.strip(" |#\t")) if word]
        names = names[1:] if names and not _telling(names[0]) else names
        if len(names) < 2 or len(set(names)) != len(names) or not all(map(_telling, names)):
            return False
        self._columns = names
        self._foreign = 0
        return self.open

    def _row(self, line: Line) -> bool:
        cells = [word for word in re.split(r"[\s|,]+", line.text.strip(" |\t")) if word]
        if len(cells) != len(self._columns) + 1 or len(cells) < 3 or not _telling(cells[0]):
            return False
        if not all(number(cell) is not None or _FAILED.fullmatch(cell) or _SELF.fullmatch(cell) for cell in cells[1:]):
            return False
        for column, cell in zip(self._columns, cells[1:], strict=True):
            same = column == cells[0] and self._ends is None
            if not same and not _SELF.fullmatch(cell):
                self._send(line, cells[0], column, number(cell), cell, self._unit)
        return True

    def _pair(self, line: Line, text: str) -> bool:
        found = _PAIR.match(text) or _JOINED.match(text)
        if found is None or not (_telling(found.group(1)) and _telling(found.group(2))):
            return False
        rest = found.group(3)
        if not self.open and not _WORDY.search(rest):
            return False
        values = _VALUE.findall(rest)
        with_unit = [value for value in values if value[1]] or values
        if with_unit:
            self._send(
                line, found.group(1), found.group(2), float(with_unit[-1][0]), "", with_unit[-1][1] or self._unit
            )
        elif re.search(r"(?i)fail|time[d ]*-?out|error", rest):
            self._send(line, found.group(1), found.group(2), None, rest.strip(), self._unit)
        else:
            return False
        return True

    def _send(self, line: Line, a: str, b: str, value: float | None, text: str, unit: str | None) -> None:
        row: dict[str, object] = {"value": value, "unit": unit, "failed": value is None, "tool": self._tool}
        if _ADAPTER.fullmatch(a) and _ADAPTER.fullmatch(b):
            row |= {"device_a": a, "device_b": b}
            a, b = self._ends or (None, None)  # type: ignore[assignment]
        self.emit("host_pair", line, {**row, "host_a": a, "host_b": b, "text": text or None, "host": None})


def _telling(name: str) -> bool:
    """Whether a word looks like the name of a host or adapter."""
    return bool(_NAMES.fullmatch(name)) and bool(_TELLING.search(name)) and not _UNIT.search(name)


_LITERALS = (
    "ib_write_bw",
    "ib_read_bw",
    "ib_send_bw",
    "osu_",
    "busbw",
    "pairwise",
    " pair",
    "pair ",
    " <-> ",
    "Gb/s",
    "Gbps",
)
FORMAT = Format(
    name="host-pair",
    grammar="host_pair",
    literals=_LITERALS,
    session=HostPairSession,
    title="bandwidth between pairs of hosts or adapters (tables of a site)",
    command="ib_write_bw or sendrecv_perf for every pair of hosts",
    versions="any",
    weak_literals=frozenset(_LITERALS),
)
