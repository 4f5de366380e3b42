"""``ps``: processes of a host, from any set of columns that ends with the command.

    $ ps -eo pid,ppid,stat,lstart,cmd
        PID    PPID STAT                  STARTED CMD
     318822       1 Sl   Mon Apr  7 18:02:11 2025 /opt/conda/bin/python -u train.py --local_rank 0

Seen: procps 3.2 to 4.0 (``ps aux``, ``ps -ef``, ``ps -eo ...``) and the table of ``top -b``. Where a filter took the
header away, the columns come from the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import integer, number
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 2
_AUX = "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND".split()
_AX = "PID TTY STAT TIME COMMAND".split()
_EF = "UID PID PPID C STIME TTY TIME CMD".split()
_E = "PID TTY TIME CMD".split()
_COMMANDS = frozenset({"CMD", "COMMAND", "ARGS", "COMM"})
_STATES = frozenset({"S", "STAT", "STATE"})
_STARTS = frozenset({"START", "STIME", "STARTED", "LSTART", "BSDSTART"})
_DAYS = frozenset("Mon Tue Wed Thu Fri Sat Sun".split())
_MONTHS = frozenset("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
_OUTPUT = re.compile(r"\s(?:-[A-Za-z]*|)o\s*([A-Za-z%][\w%,=]*)")
_STATE = re.compile(r"[DIRSTtWXZP][<NLsl+]*")
_WORD = re.compile(r"\S+")
_BRANCH = re.compile(r"^[\\_|` -]*(?=[^\\_|` -])")


def _is_state(text: str) -> bool:
    return _STATE.fullmatch(text) is not None


def _is_number(text: str) -> bool:
    return text == "-" or number(text) is not None


def _is_clock(text: str) -> bool:
    return ":" in text


_CHECKS: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(("PID", "PPID", "%CPU", "%MEM", "VSZ", "RSS", "C", "NLWP", "TID", "LWP"), _is_number),
    **dict.fromkeys(_STATES, _is_state),
    **dict.fromkeys(("TIME", "TIME+", "ELAPSED"), _is_clock),
}


class PsTableSession(Session):
    """Open from the command line or the header to the first lines that do not fit the columns."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._columns: Sequence[str] = ()
        self._foreign = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.UNREAD

    def foreign(self, line: Line) -> Verdict:
        self._foreign += 1
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def _begin(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._foreign = 0
        self.open = True

    def on_command(self, f: Fields, line: Line) -> None:
        self._begin(_columns_of(f["command"]))

    def on_head(self, f: Fields, line: Line) -> Verdict | None:
        columns = f["columns"].split()
        if "PID" not in columns:
            return Verdict.LEFT
        self._begin(columns)
        return None

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        cells = _cells(f["row"], self._columns) if self.open and self._columns else None
        pid = integer(cells.get("PID")) if cells else None
        if not cells or pid is None or not all(_CHECKS[n](c) for n, c in cells.items() if n in _CHECKS):
            return self.foreign(line)
        self._foreign = 0
        state = next((cells[name] for name in self._columns if name in _STATES), None)
        self.emit(
            "os_process",
            line,
            {
                "pid": pid,
                "ppid": integer(cells.get("PPID")),
                "state": state and state[0],
                "started": next((cells[name] for name in self._columns if name in _STARTS), None),
                "command": _BRANCH.sub("", cells[self._columns[-1]], count=1),
            },
        )
        return None


def _columns_of(command: str) -> Sequence[str]:
    """The columns that a command line asks for, empty where the header has to tell."""
    command = command.partition("|")[0]
    asked = [name.rstrip("=").upper() for part in _OUTPUT.findall(command) for name in part.split(",") if name]
    if asked:
        return asked if "PID" in asked and asked[-1] in _COMMANDS else ()
    options = "".join(word for word in command.split()[1:] if not word.startswith("--"))
    if "u" in options and "-" not in options:
        return _AUX
    if options.startswith("-") and "e" in options.lower():
        return _EF if "f" in options else _E
    return _AX if options.startswith("a") else ()


def _cells(row: str, columns: Sequence[str]) -> dict[str, str] | None:
    """The cells of a row by column; a start time takes one word, a month and a day, or a whole date."""
    words = [(word.group(), word.start()) for word in _WORD.finditer(row)]
    cells: dict[str, str] = {}
    at = 0
    for name in columns[:-1]:
        width = 1
        if name in _STARTS and at < len(words):
            width = 5 if words[at][0] in _DAYS else 2 if words[at][0] in _MONTHS else 1
        if at + width >= len(words):
            return None
        cells[name] = " ".join(word for word, _ in words[at : at + width])
        at += width
    if at >= len(words):
        return None
    cells[columns[-1]] = row[words[at][1] :].rstrip()
    return cells


FORMAT = Format(
    name="ps-table",
    grammar="ps_table",
    literals=("$ ps ", "# ps ", " PPID ", "PID %CPU", " PR  NI "),
    session=PsTableSession,
    title="processes of a host (ps)",
    command="ps -eo pid,ppid,stat,lstart,cmd",
    versions="procps 3.2 to 4.0",
    weak_literals=frozenset({"$ ps ", "# ps ", " PPID ", "PID %CPU", " PR  NI "}),
)
