"""Where the threads of a process stand: faulthandler, ``py-spy dump``, ``pystack``, gdb (``thread apply all bt``).

    Process 4711: python train.py
    Python v3.10.12 (/usr/bin/python3.10)
    Thread 4711 (active+gil): "MainThread"
        barrier (torch/distributed/distributed_c10d.py:3685)
        main (train.py:61)

    Current thread 0x00007f8a9c0c5740 (most recent call first):
      File "/job/train.py", line 61 in main

    Thread 1 (Thread 0x7f8a9c0c5740 (LWP 4711) "python"):
    #0  0x00007f8a9b in sched_yield () from /lib/x86_64-linux-gnu/libc.so.6

One row per thread; ``place`` is its innermost frame outside the libraries, where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PID = re.compile(r"[0-9]+")
_LWP = re.compile(r"LWP ([0-9]+)")
_SPY = re.compile(r"Thread (\S+) \((\w+)[^)]*\)(?:: \"(.*)\")?")
_PY = re.compile(r"(Current thread|Thread) (0x[0-9a-fA-F]+)(?: \[([^\]]*)\])?")
_PY_FRAME = re.compile(r'File "(.*)", line ([0-9?]+),? in (.*)')
_SPY_FRAME = re.compile(r"\s+(\S.*) \(([^()]*)\)\s*$")
_GDB_FRAME = re.compile(r"#[0-9]+ +(?:0x[0-9a-fA-F]+ in )?([^\s(]+)[^()]*\(.*?\)?(?: (?:from|at) (\S+))?\s*$")
_LIBRARY = re.compile(
    r"site-packages|dist-packages|lib/python3|/torch/|^torch/|threading\.py|^lib|/lib|queue\.py|selectors\.py|"
    r"multiprocessing|concurrent/futures|runpy\.py|socket\.py|subprocess\.py"
)
_FRAMES = 6
_MOST_THREADS = 4000
_PATIENCE = 3
"""Lines of other programs in a row, after which a dump is over."""


class StackSession(Session):
    """Threads follow each other; a line that is no frame ends the dump."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._pid: int | None = None
        self._thread: tuple[Line, dict[str, object]] | None = None
        self._frames: list[tuple[str, bool]] = []
        self._oldest_first = False
        self._foreign = 0
        self._named = False  # the line before named the process
        self._sent = 0

    def unread(self, line: Line) -> Verdict:
        """The words of the literals in another sentence."""
        return self.foreign(line) if self.open else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        """Source lines and local variables are passed over; a few lines of other programs may come between."""
        if not line.text.strip() or line.text.startswith(("    ", "\t")):
            return Verdict.LEFT
        self._foreign += 1
        return Verdict.LEFT if self._foreign <= _PATIENCE else Verdict.ENDED

    def close(self) -> None:
        """Sends the last thread."""
        self._send()
        super().close()

    def on_process(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open and "Process " not in line.text:
            return Verdict.LEFT
        self._send()
        found = _PID.search(line.text.partition("rocess")[2] or line.text)
        self._pid, self._named, self.open = int(found.group()) if found else None, True, True
        return None

    def on_version(self, f: Fields, line: Line) -> None:
        self._send()
        if not self._named:
            self._pid = None
        self._named, self.open = False, True

    def on_timeout(self, f: Fields, line: Line) -> None:
        self.open = True

    def on_py_thread(self, f: Fields, line: Line) -> None:
        found = _PY.search(line.text)
        assert found is not None
        current, self._pid = found.group(1).startswith("Current"), None
        self._begin(line, found.group(3) or found.group(2), current, "faulthandler")

    def on_spy_thread(self, f: Fields, line: Line) -> None:
        found = _SPY.search(line.text)
        assert found is not None
        number, state, name = found.groups()
        if name == "MainThread" and self._pid is None and number.isdigit():
            self._pid = int(number)
        self._begin(line, name or number, name == "MainThread" or state == "active", "py-spy")

    def on_pystack_thread(self, f: Fields, line: Line) -> None:
        found = _PID.search(line.text)
        self._begin(line, found.group() if found else "?", "Has the GIL" in line.text, "pystack")
        self._oldest_first = True

    def on_gdb_thread(self, f: Fields, line: Line) -> None:
        found = _LWP.search(line.text)
        number = line.text.split()[1]
        self._begin(line, number, number == "1", "gdb")
        if found and number == "1":
            self._pid = int(found.group(1))

    def _begin(self, line: Line, thread: str, active: bool, tool: str) -> None:
        self._send()
        self.open = True
        self._oldest_first, self._foreign = False, 0
        self._thread = (line, {"thread": thread, "active": active, "tool": tool})

    def on_py_frame(self, f: Fields, line: Line) -> Verdict | None:
        found = _PY_FRAME.search(line.text)
        if self._thread is None or found is None:
            return Verdict.LEFT
        path, number, function = found.groups()
        self._frame(path, f"{_short(path)}:{number} {function.strip()}")
        return None

    def on_spy_frame(self, f: Fields, line: Line) -> Verdict | None:
        found = _SPY_FRAME.match(line.text)
        if self._thread is None or found is None:
            return Verdict.LEFT
        function, place = found.groups()
        self._frame(place, f"{_short(place)} {function}")
        return None

    def on_gdb_frame(self, f: Fields, line: Line) -> Verdict | None:
        found = _GDB_FRAME.search(line.text)
        if self._thread is None or found is None:
            return Verdict.LEFT
        function, place = found.groups()
        self._frame(place or "lib", f"{_short(place)} {function}" if place else function)
        return None

    def _frame(self, path: str, text: str) -> None:
        self._foreign = 0
        if len(self._frames) < 200:
            self._frames.append((text[:160], bool(_LIBRARY.search(path))))

    def _send(self) -> None:
        if self._thread is None:
            return
        line, values = self._thread
        frames = self._frames[::-1] if self._oldest_first else self._frames
        self._thread, self._frames = None, []
        if not frames or self._sent >= _MOST_THREADS:
            return
        self._sent += 1
        own = next((text for text, library in frames if not library), None)
        shown = " < ".join(text for text, _ in frames[:_FRAMES])
        pid = self._pid if self._pid is not None else line.prefix_pid
        self.emit("stack", line, values | {"pid": pid, "place": own, "frames": shown})


def _short(path: str) -> str:
    return "/".join(path.replace("\\", "/").rsplit("/", 2)[-2:])


_WEAK = ("Thread 0x", "Current thread 0x", "(idle", "(active")
FORMAT = Format(
    name="stack-dump",
    grammar="stack_dump",
    literals=("(most recent call first):", "Python v3.", "Traceback for thread ", "Timeout (0:", *_WEAK),
    session=StackSession,
    title="stacks of threads",
    command="py-spy dump --pid PID",
    versions="Python 3.8 to 3.14, py-spy 0.3 and 0.4, pystack 1, gdb 9 to 15",
    weak_literals=frozenset(_WEAK),
)
