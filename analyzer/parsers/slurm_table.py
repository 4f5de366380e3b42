"""``sacct`` and ``scontrol show job|node``: how jobs and steps ended, and what Slurm thinks of a node.

    JobID           JobName  AllocCPUS      State ExitCode     MaxRSS
    ------------ ---------- ---------- ---------- -------- ----------
    4711              train         64 OUT_OF_ME+    0:125
    4711.0           python          8 OUT_OF_ME+    0:125  50331648K

    JobId=4711 JobName=train
       JobState=NODE_FAIL Reason=NodeDown Dependency=(null)
       RunTime=03:10:00 TimeLimit=2-00:00:00 ... ExitCode=0:0

    NodeName=node-7 Arch=x86_64 CoresPerSocket=32
       State=IDLE+DRAIN ThreadsPerCore=2
       Reason=gres/gpu count reported lower than configured (7 < 8) [slurm@2025-05-01T03:00:00]

Seen: Slurm 17 to 25, aligned tables (cut words end with +) and ``-p`` / ``-P`` tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import integer, size
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import iso_seconds

Fields = Mapping[str, str]

_PAIR = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*(?:[:/][A-Za-z]+)*)=")
_JOB = re.compile(r"[0-9]+(?:_[0-9\[\],%-]+|\+[0-9]+)?(?:\.[\w+]+)?")
_STATE = re.compile(r"[A-Z][A-Z_]+\+?(?: by [0-9]+)?\+?")
_RUNS = re.compile(r"-+")
_KINDS = (
    ("OUT_OF_ME", "oom"),
    ("TIMEOUT", "time_limit"),
    ("DEADLINE", "time_limit"),
    ("NODE_FAIL", "node_fail"),
    ("BOOT_FAIL", "node_fail"),
    ("PREEMPTED", "preempted"),
    ("CANCELLED", "cancelled"),
    ("FAILED", "exited"),
)
_KEPT = frozenset("JobId JobState Reason ExitCode NodeList EndTime NodeName State MinMemoryNode".split())
_LAST_SIGNAL = 64


class SlurmTableSession(Session):
    """Open over one table, or over the indented lines of one record."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._columns: list[str] = []
        self._spans: list[tuple[int, int]] = []
        self._piped = False
        self._record: dict[str, str] = {}
        self._lines: tuple[Line, Line] | None = None

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        """A blank line ends a record, anything else may stand between."""
        return Verdict.ENDED if self._record and not line.text.strip() else Verdict.LEFT

    def close(self) -> None:
        """Sends the record that waits."""
        self._send_record()
        self._columns, self._spans = [], []
        super().close()

    def on_piped(self, f: Fields, line: Line) -> None:
        self.close()
        self._columns, self._piped, self.open = f["piped"].split("|"), True, True

    def on_head(self, f: Fields, line: Line) -> None:
        self.close()
        self._columns, self._piped, self.open = f["head"].split(), False, True

    def on_dashes(self, f: Fields, line: Line) -> Verdict | None:
        spans = [found.span() for found in _RUNS.finditer(line.text)]
        if not self._columns or self._piped or len(spans) != len(self._columns):
            return Verdict.ENDED if self.open else Verdict.LEFT
        self._spans = spans
        return None

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        if not self._columns or not (self._piped or self._spans):
            return Verdict.LEFT
        values = dict(zip(self._columns, self._cells(line.text), strict=False))
        job, state = values.get("JobID") or values.get("JobIDRaw") or "", values.get("State") or ""
        if not _JOB.fullmatch(job) or not _STATE.fullmatch(state):
            return Verdict.LEFT
        self._job(line, values)
        return None

    def _cells(self, text: str) -> list[str]:
        """The cells of a row; one without an empty cell is split at its blanks, for a copy may have moved them."""
        if self._piped:
            return text.strip().split("|")
        words = text.split()
        return words if len(words) == len(self._columns) else [text[a:b].strip() for a, b in self._spans]

    def _job(self, line: Line, values: Mapping[str, str]) -> None:
        job, _, step = (values.get("JobID") or values.get("JobIDRaw") or "").partition(".")
        used, limit = size(values.get("MaxRSS", "")), size(values.get("ReqMem", "").rstrip("nc"))
        self._event(
            line,
            values.get("State", ""),
            {
                "job": job,
                "step": step or None,
                "bytes": used.bytes if used else None,
                "limit_bytes": limit.bytes if limit else None,
                "reason": values.get("Reason") or None,
            }
            | _node(values.get("NodeList", ""))
            | _exit(values.get("ExitCode", ""))
            | _ended(values.get("End", "")),
        )

    def _event(self, line: Line, state: str, values: dict[str, object]) -> None:
        kind = next((kind for words, kind in _KINDS if state.startswith(words)), "state")
        common = {"system": "slurm", "kind": kind, "rank": None, "state": state or None, "text": line.text.strip()}
        self.emit("scheduler_event", line, common | values)

    def on_pairs(self, f: Fields, line: Line) -> Verdict | None:
        pairs = _pairs(f["pairs"])
        first = next(iter(pairs), "")
        if first in ("JobId", "NodeName"):
            self.close()
            self.open = True
        elif not self._record:
            return Verdict.LEFT
        self._record.update({name: value for name, value in pairs.items() if name in _KEPT and value != "(null)"})
        if self._lines is None or "JobState" in pairs or "State" in pairs:
            self._lines = (self._lines or (line, line))[0], line
        return None

    def _send_record(self) -> None:
        """A job or a node, told by its first word; one without its state was cut."""
        record, lines = self._record, self._lines
        self._record, self._lines = {}, None
        if lines is None:
            return
        if "JobState" in record and "JobId" in record:
            self._send_job(record, lines[1])
        elif "State" in record and "NodeName" in record:
            self._send_node(record, lines[1])

    def _send_job(self, record: Mapping[str, str], line: Line) -> None:
        limit = size(record.get("MinMemoryNode", ""))
        values: dict[str, object] = {"job": record["JobId"], "limit_bytes": limit.bytes if limit else None}
        values |= {"reason": record.get("Reason")} | _node(record.get("NodeList", ""))
        values |= _exit(record.get("ExitCode", "")) | _ended(record.get("EndTime", ""))
        self._event(line, record["JobState"], values)

    def _send_node(self, record: Mapping[str, str], line: Line) -> None:
        state = record["State"]
        kind = "drained" if re.search("DRAIN|FAIL|INVAL", state) else "state"
        reason, _, stamp = record.get("Reason", "").partition(" [")
        values: dict[str, object] = {
            "kind": "node_fail" if state.startswith("DOWN") else kind,
            "reason": reason or None,
        }
        self._event(line, state, values | _ended(stamp.rpartition("@")[2].rstrip("]")) | _node(record["NodeName"]))


def _pairs(text: str) -> dict[str, str]:
    """``A=1 B=two words C=(null)`` as a mapping; a value reaches up to the next name."""
    found = list(_PAIR.finditer(text))
    ends = [after.start() for after in found[1:]] + [len(text)]
    return {m.group(1): text[m.end() : end].strip() for m, end in zip(found, ends, strict=True)}


def _node(text: str) -> dict[str, object]:
    if not text or text.startswith("None"):
        return {}
    return {"node": text} if set("[,") & set(text) else {"node": text, "host": text}


def _exit(text: str) -> dict[str, object]:
    """``0:125``: exit code and signal; numbers above 64 are Slurm's own marks."""
    code, _, signal = text.partition(":")
    number = integer(signal)
    return {"code": integer(code), "signal": number if number and number <= _LAST_SIGNAL else None}


def _ended(text: str) -> dict[str, object]:
    at = iso_seconds(text) if len(text) >= 19 else None
    return {} if at is None else {"at": at}


FORMAT = Format(
    name="slurm-table",
    grammar="slurm_table",
    literals=("JobIDRaw", "JobID|", "JobID  ", "JobState=", "JobId=", "NodeName="),
    session=SlurmTableSession,
    title="jobs and nodes as Slurm's accounting shows them",
    command="sacct -j JOB --format=JobID,State,ExitCode,MaxRSS,NodeList; scontrol show job JOB; scontrol show node N",
    versions="Slurm 17 to 25",
    weak_literals=frozenset({"JobID  ", "JobId=", "NodeName="}),
)
