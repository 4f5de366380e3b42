"""``compute-sanitizer`` and ``cuda-memcheck``: which kernel touched what, and where.

    ========= Invalid __global__ write of size 4 bytes
    =========     at scatter(int *, int)+0x80 in /job/kernels.cu:27
    =========     by thread (0,0,0) in block (0,0,0)
    =========     Access to 0x82fdc0800000 is out of bounds
    =========     and is 4,397,807,435,265 bytes after the nearest allocation at 0x7efdcec00000 of size 512 bytes

A report repeats for each thread: one row for each kind, kernel and place, with its first thread. Seen: cuda-memcheck
of CUDA 8 to 11, compute-sanitizer 2020 to 2025. What the program itself says of CUDA errors is ``cuda_error``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]
Key = tuple[object, ...]

_IN_FILE = re.compile(r"(?P<kernel>.*?)(?:\+0x[0-9a-f]+)?(?: in (?P<source>\S+:[0-9]+))?(?:\)?)$")
_OLD = re.compile(r"0x[0-9a-f]+ in (?:(?P<source>\S+?:[0-9]+):)?(?P<kernel>.*)")
_RACE = re.compile(r"access(?:es)? at (?:0x[0-9a-f]+ in )?(?P<place>.+?)(?: and |\s*\[|$)")
_MOST = 1000
_MORE = frozenset("bytes after before nearest".split())


class SanitizerSession(Session):
    """Open from the first line of one error to its last; the rows go out together at the end."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._rows: dict[Key, tuple[Line, dict[str, object]]] = {}
        self._counts: dict[Key, int] = {}
        self._now: tuple[Line, dict[str, object]] | None = None
        self._tool = "memcheck"

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def close(self) -> None:
        """Sends a row for each place."""
        self._finish()
        for key, (line, values) in self._rows.items():
            self.emit("sanitizer_error", line, values | {"count": self._counts[key]})
        self._rows, self._counts = {}, {}
        super().close()

    def _begin(self, line: Line, kind: str, tool: str, **values: object) -> None:
        self._finish()
        self._now = (line, {"tool": tool, "kind": kind, "text": line.text.strip("= \t")} | values)
        self.open = True

    def _finish(self) -> None:
        now, self._now = self._now, None
        if now is None:
            return
        values = now[1]
        key = tuple(values.get(name) for name in ("kind", "space", "bytes", "kernel", "source"))
        if key in self._rows or len(self._rows) < _MOST:
            self._rows.setdefault(key, now)
            self._counts[key] = self._counts.get(key, 0) + 1

    def _add(self, values: dict[str, object]) -> Verdict | None:
        if self._now is None:
            return Verdict.LEFT
        for name, value in values.items():
            self._now[1].setdefault(name, value)
        return None

    def on_end(self, f: Fields, line: Line) -> Verdict | None:
        if self._now is None:
            return None if self.open else Verdict.LEFT
        self._finish()
        self.open = False
        return None

    def on_tool(self, f: Fields, line: Line) -> None:
        """The head of a report; which of its tools runs shows in the errors."""
        self.close()

    def on_access(self, f: Fields, line: Line) -> None:
        self._begin(line, f"invalid_{f['access']}", "memcheck", space=f["space"], bytes=int(f["bytes"]))

    def on_uninit(self, f: Fields, line: Line) -> None:
        self._begin(line, "uninitialized", "initcheck", space=f["space"], bytes=int(f["bytes"]))

    def on_barrier(self, f: Fields, line: Line) -> None:
        self._begin(line, "barrier", "synccheck")

    def on_race(self, f: Fields, line: Line) -> None:
        found = _RACE.search(f["text"])
        self._begin(line, "race", "racecheck", **(_place(found.group("place")) if found else {}))

    on_hazard = on_race

    def on_leak(self, f: Fields, line: Line) -> None:
        self._begin(line, "leak", "memcheck", bytes=int(f["bytes"]), address=f["address"])

    def on_free(self, f: Fields, line: Line) -> None:
        self._begin(line, "invalid_free", "memcheck")

    def on_at(self, f: Fields, line: Line) -> Verdict | None:
        return self._add(_place(f["place"].strip()))

    def on_thread(self, f: Fields, line: Line) -> Verdict | None:
        return self._add({"thread": f["thread"], "block": f["block"]})

    def on_address(self, f: Fields, line: Line) -> Verdict | None:
        if self._now is not None and "misaligned" in f["text"]:
            self._now[1]["kind"] = "misaligned"
        if self._now is not None and "address" not in self._now[1]:
            self._now[1]["text"] = f"{self._now[1]['text']}: {line.text.strip('= ')}"
        return self._add({"address": f["address"]})

    def on_summary(self, f: Fields, line: Line) -> None:
        self.close()

    def on_api(self, f: Fields, line: Line) -> None:
        self._finish()
        self.open = True

    def on_text(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT


def _place(text: str) -> dict[str, object]:
    """Kernel and source line of ``scatter(int *)+0x80 in /job/k.cu:27`` or ``0x00000090 in k.cu:5:scatter(int*)``."""
    found = _OLD.fullmatch(text) or _IN_FILE.fullmatch(text)
    if not found:
        return {}
    values = {"kernel": found.group("kernel").strip() or None, "source": found.group("source")}
    return {name: value for name, value in values.items() if value is not None}


FORMAT = Format(
    name="compute-sanitizer",
    grammar="sanitizer",
    literals=(
        "========= COMPUTE-SANITIZER",
        "========= CUDA-MEMCHECK",
        "========= Invalid __",
        "========= Uninitialized __",
        "========= Barrier error",
        "========= Malloc/Free error",
        "========= Leaked ",
        "========= ERROR SUMMARY",
        "Race reported between",
        " hazard detected at",
        "=========     at ",
        "=========     by thread ",
        "=========     Access",
        "=========     Address",
    ),
    session=SanitizerSession,
    title="errors found by compute-sanitizer or cuda-memcheck",
    command="compute-sanitizer --tool memcheck PROGRAM",
    versions="cuda-memcheck of CUDA 8 to 11, compute-sanitizer 2020 to 2025",
    weak_literals=frozenset({"Race reported between", " hazard detected at"}),
)
