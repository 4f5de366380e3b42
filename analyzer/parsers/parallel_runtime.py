"""MPI (Open MPI 3 to 5, MPICH, Intel MPI), Horovod, NVSHMEM, Lightning and torch.multiprocessing: who ended first.

    MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD
    mpirun noticed that process rank 1 with PID 4711 on node gpu-2 exited on signal 9 (Killed).
    =   RANK 1 PID 4711 RUNNING AT gpu-2
    Abort(1) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3
    ... W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, gathered or ...
    [rank: 1] Child process with PID 4711 terminated with code 1. Forcefully terminating all other processes ...
    torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGSEGV

Horovod lists the ranks it waits for as ``1: [allreduce.a, ...]``; the number looks like the label of a launcher, so
it is the line's rank. NVSHMEM lines name no cause by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.torch_elastic import SIGNALS
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_NUMBER = re.compile(r"-?[0-9]+")
_NOTICED = re.compile(r"process rank ([0-9]+) with PID ([0-9]+) on node (\S+) exited on signal ([0-9]+)")
_NAMED = re.compile(r"\[.*?([0-9]+)\]\s*$")
_RUNNING = re.compile(r"(?:RANK ([0-9]+) )?PID ([0-9]+) RUNNING AT ([^\s|]+)")
_SIGNAL = re.compile(r"signal:? ([0-9]+)", re.IGNORECASE)
_MPICH = re.compile(r"Abort\((-?[0-9]+)\) on node [0-9]+ \(rank ([0-9]+) in comm [0-9]+\)")
_MISSING = re.compile(r"\[missing ranks: ?([0-9, ]+)\]")
_CHILD = re.compile(r"(?:\[rank: ([0-9]+)\] )?Child process with PID ([0-9]+) terminated with code (-?[0-9]+)")
_SPAWNED = re.compile(r"[Pp]rocess ([0-9]+) terminated with (?:signal (SIG\w+)|exit code (-?[0-9]+)|the following)")
_TEXT_CAP = 400
_PATIENCE = 12


class ParallelSession(Session):
    """Single lines, and the few that follow the head of an MPI report."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._entry: tuple[Line, dict[str, object]] | None = None
        self._left = 0
        self._told: set[str] = set()

    def unread(self, line: Line) -> Verdict:
        """The literals also stand in prose."""
        return self.foreign(line) if self.open else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        """A report of MPI is over after a few lines that are not its own."""
        self._left -= bool(line.text.strip())
        if self._left < 0:
            self.close()
        return Verdict.LEFT

    def close(self) -> None:
        """Sends the report that was open."""
        if self._entry is not None:
            line, values = self._entry
            self._entry = None
            if len(values) > 2:
                self.emit("exit_status", line, {"rank": None} | values)
        super().close()

    def _begin(self, line: Line, values: dict[str, object]) -> None:
        self.close()
        self._entry, self._left, self.open = (line, {"says": "mpi", "first": True} | values), _PATIENCE, True

    def _add(self, values: Mapping[str, object]) -> Verdict | None:
        if self._entry is None:
            return Verdict.LEFT
        for name, value in values.items():
            self._entry[1].setdefault(name, value)
        return None

    def on_abort(self, f: Fields, line: Line) -> None:
        rank = line.text.partition("on rank ")[2]
        self._begin(line, {"rank": int(_first(rank))})

    def on_abort_code(self, f: Fields, line: Line) -> Verdict | None:
        return self._add({"code": int(_first(line.text))})

    def on_noticed(self, f: Fields, line: Line) -> None:
        found = _NOTICED.search(line.text)
        assert found is not None
        rank, pid, host, signal = found.groups()
        values = {"rank": int(rank), "pid": int(pid) or None, "host": host.split(".")[0], "signal": int(signal)}
        self.emit("exit_status", line, values | {"code": -int(signal), "says": "mpi", "first": True})

    def on_process_name(self, f: Fields, line: Line) -> None:
        found = _NAMED.search(line.text)
        self._begin(line, {"rank": int(found.group(1))} if found else {})

    def on_exit_code(self, f: Fields, line: Line) -> Verdict | None:
        code = int(_first(line.text.partition(":")[2]))
        signal = _SIGNAL.search(line.text)
        return self._add({"code": code} | ({"signal": int(signal.group(1))} if signal else {}))

    def on_bad(self, f: Fields, line: Line) -> None:
        self._begin(line, {})

    def on_running(self, f: Fields, line: Line) -> Verdict | None:
        found = _RUNNING.search(line.text)
        assert found is not None
        rank, pid, host = found.groups()
        values: dict[str, object] = {"pid": int(pid), "host": host.split(".")[0]}
        return self._add(values | ({"rank": int(rank)} if rank else {}))

    def on_killed_by(self, f: Fields, line: Line) -> Verdict | None:
        signal = _SIGNAL.search(line.text)
        return self._add({"signal": int(signal.group(1)), "code": -int(signal.group(1))} if signal else {})

    def on_mpich(self, f: Fields, line: Line) -> None:
        found = _MPICH.search(line.text)
        assert found is not None
        code, rank = int(found.group(1)), int(found.group(2))
        self.emit("exit_status", line, {"rank": rank, "code": code, "says": "mpi", "first": True})

    def on_stall(self, f: Fields, line: Line) -> None:
        self._error("stall", line, {})

    def on_missing_list(self, f: Fields, line: Line) -> Verdict | None:
        if line.rank is None:
            return Verdict.LEFT
        self._error("stall", line, {"rank": None, "peer": str(line.rank)})
        return None

    def on_missing_ops(self, f: Fields, line: Line) -> None:
        found = _MISSING.search(line.text)
        assert found is not None
        self._error("stall", line, {"peer": ",".join(part.strip() for part in found.group(1).split(","))})

    def on_shutdown(self, f: Fields, line: Line) -> None:
        self._error("horovod_shutdown", line, {})

    def on_differs(self, f: Fields, line: Line) -> None:
        self._error("mismatch", line, {})

    def on_nvshmem(self, f: Fields, line: Line) -> None:
        self._error("nvshmem_error", line, {})

    def on_child(self, f: Fields, line: Line) -> None:
        found = _CHILD.search(line.text)
        assert found is not None
        rank, pid, code = found.groups()
        values: dict[str, object] = {"rank": int(rank) if rank else None, "pid": int(pid), "code": int(code)}
        self._exit(line, values | {"says": "lightning", "first": True})

    def on_spawned(self, f: Fields, line: Line) -> None:
        found = _SPAWNED.search(line.text)
        assert found is not None
        number, signal, code = found.groups()
        values: dict[str, object] = {"rank": None, "local_rank": int(number), "says": "torch.multiprocessing"}
        values["code"] = -SIGNALS.get(signal, 0) or None if signal else int(code) if code else 1
        self._exit(line, values | {"first": True})

    def _exit(self, line: Line, values: dict[str, object]) -> None:
        code = values.get("code")
        signal = -code if isinstance(code, int) and code < 0 else None
        self.emit("exit_status", line, values | {"signal": signal})

    def _error(self, kind: str, line: Line, values: dict[str, object]) -> None:
        text = line.text.strip()[:_TEXT_CAP]
        key = f"{kind} {values.get('peer')} {text[-80:]}"
        if key not in self._told:
            self._told.add(key)
            self.emit("distributed_error", line, values | {"kind": kind, "text": text})


def _first(text: str) -> str:
    found = _NUMBER.search(text)
    return found.group() if found else "0"


_WEAK = (
    *("nvshmem", "NVSHMEM", "Missing ranks:", "Stalled ranks:", "Stalled ops:"),
    *("Allreduce", "[allreduce.", "[broadcast.", "[allgather.", " terminated with "),
)
FORMAT = Format(
    name="parallel-runtime",
    grammar="parallel_runtime",
    literals=(
        "MPI_ABORT was invoked on rank",
        "noticed that process rank ",
        "Process name: [",
        "BAD TERMINATION OF ONE OF YOUR",
        "in comm 0): ",
        "gathered or broadcasted by subset of ranks",
        "[missing ranks:",
        "Horovod has been shut down",
        "One rank sent ",
        "One rank did ",
        "Child process with PID ",
        *_WEAK,
    ),
    session=ParallelSession,
    title="MPI, Horovod, NVSHMEM and spawned processes",
    command="the output of the launcher (mpirun, srun, horovodrun)",
    versions="Open MPI 3 to 5, MPICH 3 and 4, Horovod 0.16 to 0.28, Lightning 1.9 to 2.5",
    weak_literals=frozenset(_WEAK),
)
