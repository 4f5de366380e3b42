"""One row per rank: did it wait until the time-out, did it die, was it done, or was it at work when the others waited?

Ranks are known by their labels, file names, exits, processes and time-outs; where the highest of them leaves gaps
and most others gave up waiting, the gaps are ranks too (rank 0 always exists).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_DONE = re.compile(
    r"\b(?:finished|done|complete[d]?|success\w*|exiting|exited|bye|end of (?:training|run|epoch|evaluation))\b|"
    r"max_epochs=|max_steps=|training (?:is )?over|100%\|",
    re.IGNORECASE,
)
_WORKING = re.compile(
    r"\b(?:sav|writ|upload|download|fetch|pull|tokeniz|tokenis|preprocess|pre-process|process|pack|compil|build|load|"
    r"index|shuffl|evaluat|validat|generat|map|filter|group|cach|convert|extract|unzip|decod|resiz|read|comput|prepar|"
    r"start|creat|export|merg|shard|copy|scan|count|sort|warm|tun|autotun|quantiz)\w*(?:ing|e|s)?\b|%\||[0-9]+(?:\.[0-9]+)?%|"
    r"[0-9]+/[0-9]+",
    re.IGNORECASE,
)
_STEPS = re.compile(r"\b([0-9]{1,9})/([0-9]{1,9})\b")
_MOST = 100_000


@dataclass(slots=True)
class State:
    """What the evidence says of one rank."""

    rank: int
    host: str | None = None
    evident: bool = False  # it has a log, an exit or a process in the input
    waits: list[Row] = field(default_factory=list)
    exits: list[Row] = field(default_factory=list)
    raised: bool = False
    lines: list[Row] = field(default_factory=list)

    @property
    def last(self) -> Row | None:
        """Its last plain line."""
        return self.lines[-1] if self.lines else None

    @property
    def died(self) -> bool:
        """It ended by itself and badly: by a signal other than SIGTERM, or with a code of its own."""
        return self.raised or any(
            (row["signal"] or 0) not in (0, 15) or (row["code"] or 0) not in (0, -15, 143) for row in self.exits
        )

    @property
    def text(self) -> str:
        """Its last plain line."""
        return str(self.last["text"] or "") if self.last else ""

    @property
    def finished(self) -> bool:
        """It ended well, or said that it was done, and is not at work again."""
        if any(row["code"] == 0 for row in self.exits):
            return True
        return bool(_DONE.search(self.text)) and not re.search(r"\b(?:sav|writ|upload|evaluat)ing\b", self.text, re.I)

    @property
    def working(self) -> bool:
        """Its last line tells of work that takes time."""
        return not self.finished and bool(_WORKING.search(self.text))


def rank_states(evidence: Evidence) -> dict[int, State]:
    """All ranks that the evidence knows of."""
    states: dict[int, State] = {}

    def state(rank: object, host: str | None = None) -> State | None:
        if not isinstance(rank, int) or not 0 <= rank < _MOST:
            return None
        found = states.setdefault(rank, State(rank))
        found.host = found.host or host
        return found

    for row in evidence.rows("collective_timeout"):
        if (known := state(row["rank"], row["host"])) and row["timeout_ms"] is not None:
            known.waits.append(row)
    for row in evidence.rows("distributed_error"):
        if (known := state(row["rank"], row["host"])) and row["kind"] == "gloo_timeout":
            known.waits.append(row)
    for table in ("process", "stream"):
        for row in evidence.rows(table):
            ranks = [row["rank"]] if table == "process" else [row["name_rank"], row["label_rank"]]
            for rank in ranks:
                if known := state(rank, row["host"]):
                    known.evident = True
    _endings(evidence, state)
    return states


def _endings(evidence: Evidence, state: Any) -> None:
    """Exits, exceptions and last lines."""
    for row in evidence.rows("exit_status"):
        if known := state(row["rank"], row["host"]):
            known.evident = True
            known.exits.append(row)
    waits = {(row["rank"], row["ref"]) for row in evidence.rows("collective_timeout")}
    for row in evidence.rows("exception"):
        distributed = "Dist" in (row["type"] or "") or re.search(
            r"imed out|collective operation|Watchdog|NCCL|onnection|gloo|TCPStore|c10d", row["message"] or ""
        )
        if (known := state(row["rank"], row["host"])) and not distributed and (row["rank"], row["ref"]) not in waits:
            known.raised = True
    for row in sorted(evidence.rows("last_line"), key=lambda r: r["ref"]):
        if known := state(row["rank"], row["host"]):
            known.evident = True
            known.lines.append(row)


def world_of(evidence: Evidence, states: dict[int, State]) -> int | None:
    """Number of ranks of the job: from the largest communicator, a rendezvous or the highest rank known."""
    stated = [row["nranks"] for row in evidence.rows("communicator") if row["nranks"]]
    stated += [
        row["total"] for row in evidence.rows("distributed_error") if row["kind"] == "store_timeout" and row["total"]
    ]
    for row in evidence.rows("process_group"):
        stated.append(len((row["ranks"] or "").split(",")))
    highest = max(states, default=-1) + 1
    world = max([*stated, highest], default=0)
    return world if 0 < world < _MOST else None


def derive_rank_state(evidence: Evidence) -> None:
    """Fills ``rank_state``."""
    states = rank_states(evidence)
    world = world_of(evidence, states)
    lines = _unlabelled(evidence)
    waiting = [one for one in states.values() if one.waits]
    if waiting and 2 * len(waiting) > max(states) + 1:
        for rank in range(max(states)):
            states.setdefault(rank, State(rank))
    quiet = [one for one in states.values() if not one.waits and one.last is None]
    if len(quiet) == 1 and lines:
        quiet[0].lines = lines
    evidence.set("rank_state", (_row(states[rank], world) for rank in sorted(states)))


def _unlabelled(evidence: Evidence) -> list[Row]:
    """Last lines that no rank is known of, of streams in which ranks gave up waiting."""
    streams = defaultdict(set)
    for row in evidence.rows("stream"):
        streams[row["stream"]].add(row["input"])
    inputs = {one for row in evidence.rows("collective_timeout") for one in streams[row["stream"]]}
    inputs |= {one for row in evidence.rows("distributed_error") for one in streams[row["stream"]]}
    return sorted(
        (row for row in evidence.rows("last_line") if row["rank"] is None and streams[row["stream"]] & inputs),
        key=lambda row: row["ref"],
    )


def _row(one: State, world: int | None) -> Row:
    wait = min(one.waits, key=lambda row: (row.get("seq") is None, row.get("seq") or 0, row["ref"]), default=None)
    ended = one.exits[0] if one.exits else None
    main = wait or ended or one.last
    began = wait["at"] - wait["ran_ms"] / 1000 if wait and wait.get("ran_ms") and wait["at"] is not None else None
    steps = next((found for row in reversed(one.lines) if (found := _STEPS.search(row["text"] or ""))), None)
    refs = [row["ref"] for row in [*one.waits, *one.exits, *([one.last] if one.last else [])]]
    return {
        "host": one.host,
        "rank": one.rank,
        "world": world,
        "timed_out": bool(one.waits),
        "pg": wait.get("pg") if wait else None,
        "seq": wait.get("seq") if wait else None,
        "operation": wait.get("operation") if wait else None,
        "last_enqueued": wait.get("last_enqueued") if wait else None,
        "wait_from": began,
        "exit_code": ended["code"] if ended else None,
        "died": one.died,
        "finished": not one.waits and one.finished,
        "working": not one.waits and one.working,
        "last_text": one.text or None,
        "step": int(steps.group(1)) if steps else None,
        "steps": int(steps.group(2)) if steps else None,
        "at": main["at"] if main else None,
        "ref": main["ref"] if main else None,
        "refs": ",".join(str(ref) for ref in sorted(set(refs))) or None,
    }
