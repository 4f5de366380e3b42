"""What Slurm prints into the output of a job and into the logs of its daemons.

    slurmstepd: error: Detected 1 oom_kill event in StepId=25428400.batch. Some of the step tasks have been OOM Killed.
    slurmstepd: error: *** STEP 364.20 ON node-3 CANCELLED AT 2025-09-30T10:11:26 DUE TO TIME LIMIT ***
    slurmstepd: error: Job 55 exceeded memory limit (4201932 > 4194304), being killed
    srun: error: node-1: tasks 1,4: Exited with exit code 134
    srun: error: node-1: task 3: Out Of Memory
    srun: error: Node failure on node-7

Slurm 17 to 25. The number of a task is the rank only where srun starts one task for each rank, so it is kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict
from analyzer.sources.stamp import iso_seconds

Fields = Mapping[str, str]

_EXIT = re.compile(r"Exited with exit code ([0-9]+)")
_MOST_TASKS = 4096
_SIGNALS = {
    "Killed": 9,
    "Out Of Memory": 9,
    "Terminated": 15,
    "Aborted": 6,
    "Segmentation fault": 11,
    "Bus error": 7,
    "Floating point exception": 8,
    "Illegal instruction": 4,
    "Interrupt": 2,
    "Hangup": 1,
    "User defined signal 1": 10,
    "User defined signal 2": 12,
    "CPU time limit exceeded": 24,
}
_SHELL = frozenset({130, 131, 132, 133, 134, 135, 136, 137, 139, 143})
_REASONS = (
    ("TIME LIMIT", "time_limit"),
    ("PREEMPT", "preempted"),
    ("NODE FAIL", "node_fail"),
    ("OUT OF MEMORY", "oom"),
    ("TASK FAILURE", "aborted"),
)


class SlurmSession(Session):
    """Each line is a statement by itself."""

    def unread(self, line: Line) -> Verdict:
        return Verdict.UNREAD if line.text.startswith("slurmstepd") else Verdict.LEFT

    def event(self, line: Line, kind: str, **values: object) -> None:
        """Sends a row of ``scheduler_event``; the line is the daemon's, so it has no rank."""
        common = {"system": "slurm", "kind": kind, "rank": None, "text": line.text}
        self.emit("scheduler_event", line, common | values)

    def on_cancelled(self, f: Fields, line: Line) -> None:
        reason = f.get("reason", "").removesuffix("***").strip()
        kind = next((kind for words, kind in _REASONS if words in reason.upper()), "cancelled")
        self.event(line, kind, reason=reason or None, **_place(f, line))

    on_stepd = on_cancelled

    def on_failed(self, f: Fields, line: Line) -> None:
        self.event(line, "aborted", reason=f.get("text", "").removesuffix("***").strip() or None, **_place(f, line))

    def on_oom(self, f: Fields, line: Line) -> None:
        self.event(line, "oom", reason="control group", **_place(f, line))

    def on_limit(self, f: Fields, line: Line) -> None:
        sizes = {"bytes": int(f["used"]) * 1024, "limit_bytes": int(f["limit"]) * 1024}
        self.event(line, "oom", reason="memory limit of the job", **sizes, **_place(f, line))

    def on_ever(self, f: Fields, line: Line) -> None:
        self.event(line, "oom", reason="memory limit of the job")

    def on_tasks(self, f: Fields, line: Line) -> None:
        node, verdict = f["task_node"], f["verdict"].strip()
        found = _EXIT.match(verdict)
        code = int(found.group(1)) if found else None
        signal = next((number for words, number in _SIGNALS.items() if verdict.startswith(words)), None)
        if code in _SHELL:
            signal = (code or 0) - 128
        kind = "oom" if verdict.startswith("Out Of Memory") else "killed" if signal == 9 else "exited"
        self.event(line, kind, host=node, node=node, task=f["tasks"], code=code, signal=signal, state=verdict)
        if code != 0 and (signal or code):
            values = {
                "host": node,
                "rank": None,
                "code": None if signal == 9 else code,
                "signal": signal,
                "says": "srun",
            }
            for task in _numbers(f["tasks"]):
                self.emit("exit_status", line, values | {"local_rank": None, "program": f"task {task}"})

    def on_node(self, f: Fields, line: Line) -> None:
        self.event(line, "node_fail", host=f["node"], node=f["node"], reason="node failure")

    def on_down(self, f: Fields, line: Line) -> None:
        one = None if set("[,") & set(f["node"]) else f["node"]
        self.event(line, "node_fail", host=one, node=f["node"], reason="not responding")

    def on_launch(self, f: Fields, line: Line) -> None:
        self.event(line, "aborted", reason=f["text"].strip(), **_place(f, line))

    def on_create(self, f: Fields, line: Line) -> None:
        self.event(line, "aborted", job=f["job"], reason=f["text"].strip())

    def on_text(self, f: Fields, line: Line) -> None:
        """Known: a word of Slurm that tells nothing of an end."""


def _place(f: Fields, line: Line) -> dict[str, object]:
    """Job, step, node and time that a line names."""
    job, _, step = re.sub(r"^(?:StepId|JobId)=", "", f["job"]).partition(".")
    node = f.get("node")
    values: dict[str, object] = {"job": job, "step": step or None, "node": node}
    if node and not set("[,") & set(node):
        values["host"] = node
    if line.at is None and (at := iso_seconds(f.get("time", ""))) is not None:
        values["at"] = at
    return values


def _numbers(text: str) -> list[int]:
    """``0-2,5`` as [0, 1, 2, 5], a few thousand at most."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.extend(range(int(first), min(int(last or first), int(first) + _MOST_TASKS) + 1))
    return found[:_MOST_TASKS]


FORMAT = Format(
    name="slurm-log",
    grammar="slurm_log",
    literals=("slurmstepd", "srun: ", "salloc: ", "error: *** ", "slurmctld: ", "slurmd: ", " setting DOWN"),
    session=SlurmSession,
    title="Slurm's words in the output of a job",
    command="the job's output file (slurm-JOB.out)",
    versions="Slurm 17 to 25",
    weak_literals=frozenset({"srun: ", "salloc: ", "error: *** ", "slurmctld: ", "slurmd: ", " setting DOWN"}),
    blocks=False,
)
