"""The report that ``ncclras`` fetches from a running job (NCCL 2.24 to 2.30).

    #0-0 (fa93daea854b060b) MISMATCH
      Communicator ranks have different AllGather operation counts
      30 ranks have launched up to operation 640
      2 ranks have launched up to operation 639
      Rank 12 -- GPU 4 managed by process 323032 on node 10.0.0.24

Ranks are listed below the smaller of two counts; ranks that a communicator lacks, below a line that says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_COMM = re.compile(r"#[0-9]+-[0-9]+ \(([0-9a-fA-F]+)\) +([A-Z]+)")
_DIFFERENT = re.compile(r"have different (.*?) operation counts")
_LAUNCHED = re.compile(r"([0-9]+) ranks? (?:has|have) launched (?:up to )?operation ([0-9]+)")
_RANK = re.compile(
    r"Rank ([0-9]+)(?: -- GPU (\S+?)(?:,[0-9]+)?(?: \(.*?\))? managed by process ([0-9]+) on node (\S+))?(.*)"
)
_PROCESS = re.compile(r"Process ([0-9]+) on node (\S+?),?(?: managing GPUs? ([0-9]+))?(?: .*)?$")
_COUNT = re.compile(r"([0-9]+)")
_PATIENCE = 24


class RasSession(Session):
    """Reads the details of one communicator after the other."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._comm: dict[str, object] = {}
        self._what: dict[str, object] = {}
        self._counts: list[tuple[int, int]] = []
        self._waiting: list[tuple[Line, dict[str, object]]] = []
        self._foreign = 0

    def unread(self, line: Line) -> Verdict:
        """Other texts of the report."""
        return self.foreign(line) if self.open else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        """The report has free text between its parts."""
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Sends the ranks that waited for a second count."""
        self._finish()
        self._comm, self._what = {}, {}
        super().close()

    def _start(self) -> None:
        self.open, self._foreign = True, 0

    def _finish(self) -> None:
        """A group of ranks is behind where another has launched more."""
        most = max((count for _, count in self._counts), default=None)
        for line, values in self._waiting:
            own = values.get("op_count")
            if values["kind"] == "count":
                values["kind"] = "behind" if isinstance(own, int) and most is not None and own < most else "ahead"
            self.emit("ras_report", line, values)
        self._waiting, self._counts = [], []

    def on_summary(self, f: Fields, line: Line) -> None:
        self._start()

    def on_title(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_rule(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_counter(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_group(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_comm_status(self, f: Fields, line: Line) -> None:
        self._finish()
        self._start()
        found = _COMM.search(line.text)
        assert found is not None
        self._comm = {"comm_id": "0x" + found.group(1).lower(), "status": found.group(2)}
        self._what = {}
        self.emit("ras_report", line, self._comm | {"kind": "group", "text": line.text.strip()})

    def on_counts(self, f: Fields, line: Line) -> None:
        self._finish()
        self._start()
        found = _DIFFERENT.search(line.text)
        self._what = {"kind": "count", "operation": found.group(1) if found else None}

    def on_launched(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        found = _LAUNCHED.search(line.text)
        number = _COUNT.search(line.text)
        ranks, count = (
            (int(found.group(1)), int(found.group(2))) if found else (int(number.group()) if number else 0, 0)
        )
        self._counts.append((ranks, count))
        self._what = {**self._what, "kind": "count", "op_count": count, "ranks": ranks}
        self._waiting.append((line, self._comm | self._what | {"text": line.text.strip()}))
        return None

    def on_rank(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open or not self._comm:
            return Verdict.LEFT
        found = _RANK.search(line.text)
        assert found is not None
        rank, gpu, pid, node, rest = found.groups()
        values = self._comm | self._what | {"kind": self._what.get("kind", "failed"), "comm_rank": int(rank)}
        values |= {"rank": None, "text": (rest or line.text).strip()[:200], "ranks": 1}
        if gpu is not None:
            values |= {"gpu": int(gpu) if gpu.isdigit() else None, "pid": int(pid), "host": node.split(":")[0]}
        self._waiting.append((line, values))
        return None

    def on_process(self, f: Fields, line: Line) -> Verdict | None:
        found = _PROCESS.search(line.text)
        if not self.open or not self._what or found is None:
            return Verdict.LEFT
        pid, node, gpu = found.groups()
        values = self._comm | {"kind": self._what["kind"], "pid": int(pid), "host": node.split(":")[0], "ranks": 1}
        self._waiting.append((line, values | {"gpu": integer(gpu), "rank": None, "text": line.text.strip()}))
        return None

    def on_missing(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        number = _COUNT.search(line.text)
        kind = "dead" if "dead" in line.text or "unreachable" in line.text else "missing"
        self._finish()
        self._what = {"kind": kind}
        self._waiting.append(
            (
                line,
                self._comm
                | {"kind": kind, "ranks": int(number.group()) if number else None, "text": line.text.strip()},
            )
        )
        return None

    def on_dead(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._what = {"kind": "dead"}
        return None


FORMAT = Format(
    name="nccl-ras",
    grammar="nccl_ras",
    literals=(
        " compiled with CUDA ",
        "Communicator ranks have different",
        ") MISMATCH",
        ") INCOMPLETE",
        ") TIMEOUT",
        "ranks have launched up to operation",
    ),
    session=RasSession,
    title="report of ncclras",
    command="ncclras -v",
    versions="NCCL 2.24 to 2.30",
    weak_literals=frozenset({" compiled with CUDA ", ") TIMEOUT"}),
)
