"""What a program was doing when it ran out of memory, and who it is: one row of ``memory_failure`` for each writer.

The traceback decides where it has frames that tell; else the last line by which the program or a serving engine
said what it begins, among the lines of the same input before the failure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from analyzer.evidence import Evidence
from analyzer.model import split_ref

Row = dict[str, Any]
Mark = tuple[int, str]

_CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("capture", (r"capture_(?:model|graph|one|end|begin)", "cuda_graph_runner", r"init_(?:device|cuda)_graph")),
    (
        "save",
        (
            r"_?save_(?:checkpoint|model|pretrained|state|optimizer)",
            r"_?full_(?:state_dict|optim_state)",
            "get_full_state",
        ),
    ),
    ("save", ("consolidated_16bit", r"_save_(?:optimizer|to_state_dict)", r"\.state_dict\b")),
    (
        "evaluate",
        (r"evaluation_loop|prediction_(?:loop|step)", r"\.(?:evaluate|validate|predict|do_eval|test_epoch)\b"),
    ),
    ("evaluate", (r"\.validation(?:_step)?\b", "nested_concat", r"\.eval_(?:epoch|step|model|loop)")),
    (
        "profile",
        ("profile_run", r"determine_(?:num_available_blocks|available_memory)", "profile_max_num_token", "_dummy_run"),
    ),
    ("cache", (r"(?:initialize|_allocate|init|create)_kv_cache", "init_memory_pool", "_init_cache")),
    ("resume", (r"_?load_optimizer", r"optimizer\.load_state_dict", "_load_from_checkpoint", r"\.load_checkpoint\b")),
    (
        "load",
        (r"load_model\b", "create_weights", "from_pretrained", "load_weights", "_load_pretrained", "load_sharded"),
    ),
    ("load", ("load_checkpoint_and_dispatch", "_load_state_dict_into", r"initialize_model|init_model")),
)
_COMPILED = tuple((phase, re.compile("|".join(patterns))) for phase, patterns in _CALLS)
_STAGES = {
    "load_begin": "load",
    "weights": "profile",
    "kv_cache": "cache",
    "capture_begin": "capture",
    "capture_failed": "capture",
    "graphs": "serve",
    "serving": "serve",
}
_PID = re.compile(r"pid=([0-9]+)")
_OUT = "ut of memory"
_MOST_REFS = 8


def derive_failures(evidence: Evidence) -> None:
    """Fills ``memory_failure``: the first failure of each stream, with the phase that it fell into."""
    labels = {row["stream"]: row["label"] or "" for row in evidence.rows("stream")}
    owners = {row["stream"]: row for row in evidence.rows("process") if row["stream"] is not None}
    marks = _marks(evidence)
    raised = _raised(evidence)
    told: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("oom_event"):
        told[row["stream"]].append(row)
    for row in evidence.rows("cuda_error"):
        if row["code"] == 2 and (row["name"] or "").startswith("cuda"):
            told[row["stream"]].append(row)
    rows = []
    for stream, found in sorted(told.items()):
        found.sort(key=lambda r: (r.get("requested_bytes") is None, r["ref"]))
        owner = owners.get(stream, {})
        rows.append(_failure(found, owner, labels.get(stream, ""), marks, raised[stream]))
    evidence.set("memory_failure", rows)


def _failure(found: list[Row], owner: Row, label: str, marks: dict[int, list[Mark]], raised: list[Row]) -> Row:
    main, first = found[0], min(row["ref"] for row in found)
    number, _ = split_ref(first)
    error = next((row for row in raised if row["ref"] >= first), raised[-1] if raised else None)
    phase, told_by = _phase(first, marks.get(number, []), error)
    pid = _PID.search(label)
    refs = [first, main["ref"], *([told_by] if told_by else []), *([error["ref"]] if error else [])]
    return {
        "host": main["host"],
        "rank": main["rank"],
        "gpu": owner.get("gpu") if owner.get("gpu") is not None else main["gpu"],
        "pid": owner.get("pid") or (int(pid.group(1)) if pid else None),
        "stream": main["stream"],
        "input": number,
        "framework": main.get("framework"),
        "requested_bytes": main.get("requested_bytes"),
        "phase": phase,
        "phase_ref": told_by,
        "frames": error["frames"] if error else None,
        "file": _file(error),
        "at": main["at"],
        "ref": first,
        "refs": ",".join(str(ref) for ref in list(dict.fromkeys(refs))[:_MOST_REFS]),
    }


def _raised(evidence: Evidence) -> dict[int, list[Row]]:
    """Exceptions of each stream that speak of memory, in order."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(evidence.rows("exception"), key=lambda r: r["ref"]):
        if (
            _OUT in (row["message"] or "")
            or "OutOfMemory" in row["type"]
            or "RESOURCE_EXHAUSTED" in (row["message"] or "")
        ):
            found[row["stream"]].append(row)
    return found


def _phase(ref: int, marks: list[Mark], error: Row | None) -> tuple[str | None, int | None]:
    calls = (error or {}).get("calls") or ""
    for phase, pattern in _COMPILED:
        if calls and pattern.search(calls):
            return phase, error["ref"] if error else None
    before = bisect_left(marks, (ref, ""))
    if before == 0:
        return None, None
    told_by, phase = marks[before - 1]
    return phase, told_by


def _marks(evidence: Evidence) -> dict[int, list[Mark]]:
    """Per input the lines that tell a phase, in order."""
    found: dict[int, list[Mark]] = defaultdict(list)
    for ref, phase in _told(evidence):
        found[split_ref(ref)[0]].append((ref, phase))
    return {number: sorted(entries) for number, entries in found.items()}


def _told(evidence: Evidence) -> Iterable[tuple[int, str]]:
    for row in evidence.rows("run_phase"):
        yield row["ref"], row["phase"]
    for row in evidence.rows("engine_memory"):
        if row["what"] == "load_progress":
            yield row["ref"], "load" if (row["share"] or 0) < 1 else "profile"
        elif row["what"] in _STAGES:
            yield row["ref"], _STAGES[row["what"]]
    for row in evidence.rows("memory_step"):
        if row["step"]:
            yield row["ref"], "evaluate" if is_evaluation(evidence, row["ref"]) else "train"
    for row in evidence.rows("free_memory"):
        if row["kind"] == "capture":
            yield row["ref"], "capture"


def is_evaluation(evidence: Evidence, ref: int) -> bool:
    """Whether the line calls itself one of an evaluation."""
    text = evidence.peek(ref).lower()
    return "eval" in text or "valid" in text


def _file(error: Row | None) -> str | None:
    """The program's own file of the innermost frame."""
    for frame in ((error or {}).get("frames") or "").split(" < "):
        place = frame.split(":")[0]
        if place and not place.endswith((".pyx", ".cpp")) and "torch/" not in place and "<" not in place:
            return str(place.rpartition("/")[2])
    return None
