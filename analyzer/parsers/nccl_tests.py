"""nccl-tests (``all_reduce_perf`` and its sisters), 1.0 to 2.19: ranks and their GPUs, time and bandwidth by size.

    # nThread 1 nGpus 4 minBytes 8 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20 agg iters: 1 ...
    #  Rank  0 Group  0 Pid  12098 on     node-a device  0 [0000:1b:00] NVIDIA A100-SXM4-80GB
    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
         8388608       2097152     float     sum      -1  1326.49    6.32    9.49      0  1333.47    6.29    9.44      0
    # Out of bounds values : 0 OK
    # Avg bus bandwidth    : 4.295

NCCL's own lines stand between the rows, and inside them: the test prints a row in three steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import bus_id, integer, number
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 20_000
"""So many lines of NCCL may stand between two lines of a table."""
_GLUED = re.compile(r"(\s*(?:[0-9]+ .*?|[0-9.]+ .*?)[0-9 ])[A-Za-z][\w.-]*:[0-9]+:[0-9]+ ")
_WORD = re.compile(r"[a-z]+")
_TOOL = re.compile(r"[a-z_]+_perf(?:_mpi)?(?= +-)")
_UNIT = re.compile(r"[(:].*")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Columns of a table: those before the first time, those of one measurement, and what they mean."""

    lead: tuple[str, ...] = ("size", "count", "type", "redop", "root")
    group: tuple[str, ...] = ("time", "algbw", "busbw", "#wrong")
    groups: int = 2
    time_scale: float = 1.0


class NcclTestsSession(Session):
    """Open from the parameters or the header of a table up to its average."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._tool: str | None = None
        self._told = False
        self._layout = _Layout()
        self._row: tuple[Line, int, list[str]] | None = None
        self._wrong_known = False
        self._waited = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        if self.open and not called and "NCCL" in line.text:
            return self._between(line)
        verdict = super().offer(line, called)
        if verdict is Verdict.TAKEN:
            self._waited = 0
        elif line.text.strip():
            self._send_row()  # another program took over: figures that follow are not of this row
        return verdict

    def _between(self, line: Line) -> Verdict:
        """A line of NCCL inside a table: the part of a row in front of it counts, the table stays open."""
        self._waited += 1
        if self._waited > _PATIENCE:
            return Verdict.ENDED
        glued = _GLUED.match(line.text)
        if glued and super().offer(replace(line, text=glued.group(1)), False) is Verdict.TAKEN:
            self._waited = 0
            return Verdict.TAKEN
        return Verdict.UNREAD

    def close(self) -> None:
        """Sends a row whose end is missing, as far as it goes; the next table may be of another test."""
        self._send_row()
        self._tool, self._told = None, False
        super().close()

    def _begin(self) -> None:
        self._send_row()
        self.open = True

    def on_hash(self, f: Fields, line: Line) -> None:
        """Known: an empty comment."""

    def on_note(self, f: Fields, line: Line) -> None:
        """Known: options of the run."""

    on_version = on_note
    on_over = on_note
    on_units = on_note

    def on_command(self, f: Fields, line: Line) -> None:
        named = _TOOL.search(f["command"])
        self._tool, self._told = named and named.group(), True

    def on_started(self, f: Fields, line: Line) -> None:
        self._tool, self._told = f["test"], True
        self._begin()

    def on_concluded(self, f: Fields, line: Line) -> None:
        self._tool = None
        self.close()

    def on_parameters(self, f: Fields, line: Line) -> None:
        self._begin()
        if not self._told:
            self._tool = None
        self._told = False
        self._layout = _Layout()
        self._wrong_known = False

    def on_devices(self, f: Fields, line: Line) -> None:
        self._begin()

    def on_device(self, f: Fields, line: Line) -> None:
        rank = int(f["rank"])
        self.emit(
            "bench_device",
            line,
            {
                "host": f["host"].partition(".")[0],
                "rank": rank,
                "bench_rank": rank,
                "pid": integer(f.get("pid")),
                "gpu": int(f["gpu"]),
                "bus_id": _bus(f["bus"]),
                "name": f["name"].strip(),
            },
        )

    def on_columns(self, f: Fields, line: Line) -> Verdict | None:
        words = [_UNIT.sub("", word) for word in f["columns"].split()]
        if "time" not in words or "busbw" not in words:
            return Verdict.LEFT
        self._begin()
        self._wrong_known = False
        first = words.index("time")
        groups = words.count("time")
        size = words.index("time", first + 1) - first if groups > 1 else words.index("busbw") - first + 1
        if groups == 1 and words[first + size :][:1] in (["#wrong"], ["error"], ["res"]):
            size += 1
        scale = 1000.0 if words[0] == "bytes" else 1.0
        self._layout = _Layout(tuple(words[:first]), tuple(words[first : first + size]), groups, scale)
        return None

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        tokens = f.get("figures", "").split()
        for name in self._layout.lead[3:]:
            if not tokens or bool(_WORD.fullmatch(tokens[0])) != (name in ("redop", "op")):
                return Verdict.LEFT
            tokens.pop(0)
        if not all(_is_figure(token) for token in tokens[:3]):
            return Verdict.LEFT
        self._send_row()
        self._row = (line, int(f["size"]), tokens)
        self._send_if_complete()
        return None

    def on_rest(self, f: Fields, line: Line) -> Verdict | None:
        if self._row is None:
            return Verdict.LEFT
        self._row[2].extend(f["rest"].split())
        self._send_if_complete()
        return None

    def _send_if_complete(self) -> None:
        if self._row and len(self._row[2]) >= len(self._layout.group) * self._layout.groups:
            self._send_row()

    def _send_row(self) -> None:
        if self._row is None:
            return
        line, size, tokens = self._row
        self._row = None
        names = self._layout.group
        outer = dict(zip(names, tokens, strict=False))
        inner = dict(zip(names, tokens[len(names) :], strict=False))
        if len(outer) < len(names):
            return
        wrong = [integer(part.get("#wrong")) for part in (outer, inner)]
        counted = [count for count in wrong if count is not None]
        time = number(outer["time"])
        self._wrong_known = self._wrong_known or bool(counted)
        self.emit(
            "bench_row",
            line,
            {
                "tool": self._tool,
                "size_bytes": size,
                "time_us": None if time is None else time * self._layout.time_scale,
                "algbw_gbps": number(outer.get("algbw")),
                "busbw_gbps": number(outer.get("busbw")),
                "in_place_busbw_gbps": number(inner.get("busbw")) if len(inner) == len(names) else None,
                "wrong": sum(counted) if counted else None,
            },
        )

    def on_bounds(self, f: Fields, line: Line) -> None:
        self._send_row()
        wrong = int(f["wrong"])
        if wrong and not self._wrong_known:
            self.emit("bench_row", line, {"tool": self._tool, "wrong": wrong})

    def on_average(self, f: Fields, line: Line) -> None:
        self.close()


def _bus(text: str) -> str | None:
    """``0000:1b:00``, or the bus number alone (before 2.14.1): the device is then 0, a bus of 0 says nothing."""
    if not text.startswith("0x"):
        return bus_id(text)
    return bus_id(f"{text[2:]}:00") if int(text, 16) else None


def _is_figure(token: str) -> bool:
    return number(token) is not None


FORMAT = Format(
    name="nccl-tests",
    grammar="nccl_tests",
    literals=(
        "nccl-tests version",
        "NCCL Tests compiled with",
        "Collective test starting:",
        "Collective test concluded:",
        " minBytes ",
        "Using devices",
        "out-of-place     ",
        "algbw   busbw",
        "algbw  busbw",
        "algbw(GB/s)",
        "Out of bounds values",
        "Avg bus bandwidth",
        "_perf -",
        "_perf_mpi -",
    ),
    session=NcclTestsSession,
    title="nccl-tests",
    command="all_reduce_perf -b 8 -e 1G -f 4 -g N",
    versions="nccl-tests 1.0 to 2.19",
    weak_literals=frozenset(
        {"nccl-tests version", "Using devices", "algbw(GB/s)", "Avg bus bandwidth", "_perf -", "_perf_mpi -"}
    ),
)
