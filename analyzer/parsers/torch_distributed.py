"""Lines of torch.distributed when ranks lose each other, PyTorch 1.8 to 2.10: ProcessGroupNCCL, Gloo, the stores.

    [E314 03:12:11.482 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(...
    [E314 03:12:11.482 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 0] Exception (either an error ...
    torch.distributed.DistBackendError: NCCL error in: .../NCCLUtils.hpp:340, unhandled cuda error, NCCL version 2.21.5
    torch.distributed.DistStoreError: Timed out after 16 seconds waiting for clients. 1/2 clients joined.

A time-out and the status line of the same rank become one row, whichever comes first; the exception that repeats a
time-out adds none, nor do the last words of the process. ``NCCL error in:`` takes the text behind ``Last error:``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.torch_head import message, where
from analyzer.parsers.torch_watchdog import Values, Watchdogs
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_KNOWN = re.compile(
    r"Some NCCL op|To avoid|Stack trace of|First PG on|Observed flight|ProcessGroupNCCL preparing|Terminating the|"
    r"Attempting to|ProcessGroupNCCL's watchdog detected|Future for|Dumping|Finished|Could not|Failed to"
)
_BYTES = re.compile(r"\b([0-9]+) bytes|\bsize ([0-9]+)\b")
_PEER = re.compile(r"remote peer (\S+)|remote=(\[[^\]]+\]:[0-9]+)|<([0-9.:a-f]+)> failed")
_LATE = re.compile(r"Ranks? ([0-9, ]+?) failed to pass monitoredBarrier")
_OTHERS = ("Traceback", "Exception raised from", "frame #", "terminate called", "[W", "[E", "[I")
_NCCL_LINES = 8
_TEXT_CAP = 600


class DistributedSession(Session):
    """Joins the lines of each rank."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._watchdogs = Watchdogs(lambda line, values: emit("collective_timeout", line, values))
        self._told: set[tuple[object, ...]] = set()
        self._nccl: tuple[Line, Values] | None = None
        self._want_last = False
        self._waited = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        """The line behind ``Last error:`` is free text."""
        if self._nccl is None:
            return super().offer(line, called)
        text = line.text.strip()
        stamped = line.at is not None and self._nccl[0].at is None
        if not text or stamped or "NCCL INFO" in text or "NCCL WARN" in text or "%|" in text:
            return Verdict.LEFT if not called else super().offer(line, called)
        if self._want_last:
            other = text.startswith(_OTHERS)
            self._send_nccl(None if other else text)
            return super().offer(line, called) if other else Verdict.TAKEN
        self._waited += 1
        verdict = super().offer(line, called)
        if verdict is not Verdict.TAKEN and self._waited >= _NCCL_LINES:
            self._send_nccl(None)
        return verdict

    def unread(self, line: Line) -> Verdict:
        """Frames of C++ name the same files and functions."""
        return Verdict.UNREAD if "WorkNCCL(SeqNum" in line.text or "WorkNCCL(OpType" in line.text else Verdict.LEFT

    def close(self) -> None:
        """Sends what waits for its other half."""
        self._send_nccl(None)
        self._watchdogs.close()
        super().close()

    def on_timeout(self, f: Fields, line: Line) -> None:
        if _repeats(line):
            return
        values = where(f, line) | {
            "seq": integer(f.get("seq")),
            "operation": f["operation"],
            "numel_in": integer(f.get("numel_in")),
            "numel_out": integer(f.get("numel_out")),
            "timeout_ms": integer(f["timeout"]),
            "ran_ms": integer(f.get("ran")),
        }
        if "shape" in f:
            values["numel_in"] = prod(int(size) for size in f["shape"].strip("[] ").split(",") if size.strip())
        self._watchdogs.timeout(line, values)

    def on_status(self, f: Fields, line: Line) -> None:
        self._watchdogs.status(line, where(f, line) | {"seq": int(f["seq"]), **_last(f)})

    def on_dump(self, f: Fields, line: Line) -> None:
        self._watchdogs.dump(line, where(f, line) | _last(f))

    def on_watchdog_exception(self, f: Fields, line: Line) -> None:
        if _repeats(line):
            return
        values = where(f, line)
        self._watchdogs.failed(line, values)
        self._error("watchdog_exception", line, values | {"text": f["text"]})

    def on_heartbeat(self, f: Fields, line: Line) -> None:
        self._error("heartbeat", line, where(f, line) | _seconds(f))

    def on_nccl_error(self, f: Fields, line: Line) -> None:
        self._send_nccl(None)
        self._nccl, self._waited, self.open = (line, where(f, line) | {"text": f["text"]}), 0, True

    def on_code(self, f: Fields, line: Line) -> Verdict | None:
        return None if self._nccl is not None else Verdict.LEFT

    def on_last(self, f: Fields, line: Line) -> Verdict | None:
        self._want_last = self._nccl is not None
        return None if self._want_last else Verdict.LEFT

    def _send_nccl(self, last: str | None) -> None:
        if self._nccl is None:
            return
        (line, values), self._nccl, self._want_last, self.open = self._nccl, None, False, False
        if last:
            values["text"] = f"{values['text']}: {last}"
        amount = _BYTES.search(last or "")
        if amount:
            values["value"] = int(amount.group(1) or amount.group(2))
        self._error("nccl_error", line, values)

    def on_aborted(self, f: Fields, line: Line) -> None:
        self._error("nccl_error", line, where(f, line) | {"rank": int(f["rank"])})

    def on_mismatch(self, f: Fields, line: Line) -> None:
        self._error("mismatch", line, where(f, line) | {"rank": int(f["rank"])})

    def on_gloo_timeout(self, f: Fields, line: Line) -> Verdict | None:
        if "gloo" not in line.text and "onitoredBarrier" not in line.text:
            return Verdict.LEFT
        late = _LATE.search(line.text)
        peer = late.group(1).replace(" ", "").strip(",") if late else f.get("peer")
        self._error("gloo_timeout", line, where(f, line) | _seconds(f) | {"peer": peer})
        return None

    def on_gloo_closed(self, f: Fields, line: Line) -> Verdict | None:
        if "gloo" not in line.text:
            return Verdict.LEFT
        self._error("gloo_closed", line, where(f, line) | {"peer": f.get("peer")})
        return None

    def on_gloo_connect(self, f: Fields, line: Line) -> None:
        self._error("gloo_connect", line, where(f, line))

    def on_store_timeout(self, f: Fields, line: Line) -> None:
        values = where(f, line) | {"peer": f.get("peer")} | _seconds(f)
        if "joined" in f:
            values |= {"value": int(f["joined"]), "total": int(f["expected"])}
        if "rank" in f:
            values["rank"] = int(f["rank"])
        self._error("store_timeout", line, values)

    def on_store_error(self, f: Fields, line: Line) -> None:
        self._error("store_error", line, where(f, line) | {"peer": f.get("peer")})

    def on_desync(self, f: Fields, line: Line) -> None:
        text = f.get("lagging") or f.get("unfinished") or f["unjoined"]
        ranks, _, rest = text.partition("[")[2].partition("]")
        number = re.findall(r"#([0-9]+)", rest)
        self._error("desync", line, {"peer": ranks, "value": int(number[-1]) if number else None})

    def _error(self, kind: str, line: Line, values: Values) -> None:
        """Sends an error; the same words of the same rank again add nothing."""
        text = str(values.get("text") or message(line.text))[:_TEXT_CAP]
        key = (kind, values.get("rank", line.rank), text)
        if key in self._told:
            return
        self._told.add(key)
        peer = values.get("peer")
        if not peer:
            found = _PEER.search(text)
            peer = next((group for group in found.groups() if group), None) if found else None
        row = {key: value for key, value in values.items() if key != "pg"}
        self.emit("distributed_error", line, row | {"kind": kind, "text": text, "peer": peer})

    def on_log(self, f: Fields, line: Line) -> Verdict | None:
        """Other lines of these files: known, or a new message of an error."""
        error = f["glog"].startswith(("[E", "[F")) and "ProcessGroup" in f["glog"]
        return None if not error or _KNOWN.match(f["text"]) else Verdict.UNREAD


def _repeats(line: Line) -> bool:
    """Whether a line is the last word of a C++ program, which the log of the watchdog has said before."""
    return line.text.lstrip().startswith("what():")


def _last(f: Fields) -> Values:
    return {"last_enqueued": int(f["enqueued"]), "last_completed": int(f["completed"])}


def _seconds(f: Fields) -> Values:
    if "seconds" in f:
        return {"value": int(f["seconds"])}
    return {"value": int(f["millis"]) // 1000} if "millis" in f else {}


_WEAK = (
    *("ProcessGroupNCCL.cpp:", "Timed out waiting ", "Connection closed by peer", "Connection reset by peer"),
    *("Read timeout", "Socket Timeout", "The connection to the C10d store", "RendezvousConnectionError"),
    *("RendezvousTimeoutError", "RendezvousClosedError"),
)
FORMAT = Format(
    name="torch-distributed",
    grammar="torch_distributed",
    literals=(
        " collective operation timeout: WorkNCCL",
        "timed out in blocking wait",
        "Timeout at NCCL work: ",
        " detected by watchdog at work",
        "watchdog thread terminated with exception",
        "Received a dump signal due to",
        "Heartbeat monitor timed out",
        "NCCL monitor thread timeout",
        "thread detects no heartbeat",
        "watchdog got stuck for ",
        "Could not acquire GIL within",
        "NCCL error in:",
        "NCCL communicator was aborted on rank",
        "Detected mismatch between collectives",
        "monitoredBarrier",
        "Gloo connectFullMesh failed",
        "seconds waiting for clients.",
        "Timed out initializing process group in store",
        "wait timeout after ",
        "The client socket has ",
        "The server socket has failed",
        "recvValue failed on",
        "sendBytes failed on",
        "flag on TCPStore",
        "is setting up NCCL communicator",
        " are the lagging ranks",
        " joined but didn't finish collective",
        "but didn't join collective",
        *_WEAK,
    ),
    session=DistributedSession,
    title="torch.distributed errors",
    command="the output of the training program",
    versions="PyTorch 1.8 to 2.10",
    weak_literals=frozenset(_WEAK),
)
