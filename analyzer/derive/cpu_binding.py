"""Processes beside the processors that are next to their GPUs: who copies over the link between sockets."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_MOST = 1 << 16


def derive_cpu_binding(evidence: Evidence) -> None:
    """Fills ``cpu_binding``: one row per process (or rank) whose GPU is known."""
    rows = _merged(evidence)
    near = _affinities(evidence)
    for row in rows:
        place = near.get((row["host"], row["gpu"])) or near.get((None, row["gpu"]))
        if place is None and row["host"] is None and len({host for host, _ in near}) == 1:
            place = near.get((next(iter(near))[0], row["gpu"]))
        if place is None:
            continue
        row["gpu_cpus"], row["numa"] = place["cpus"], place["numa"]
        row["ref_list"].add(place["ref"])
        row["apart"] = _apart(row)
    rows = [row for row in rows if row.get("apart") is not None]
    good = [row["copy_gbps"] for row in rows if not row["apart"] and row["copy_gbps"]]
    for row in rows:
        refs = sorted(row.pop("ref_list"))
        row["refs"] = ",".join(map(str, refs[:12]))
        row["others_copy_gbps"] = round(median(good), 2) if good else None
    evidence.set("cpu_binding", rows)


def _merged(evidence: Evidence) -> list[Row]:
    """What several lines say of one process, put together by rank or process id."""
    processes = {(row["host"], row["pid"]): row for row in evidence.rows("process")}
    by_pid: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("process"):
        by_pid[row["pid"]].append(row)
    found: dict[tuple[Any, ...], Row] = {}
    for row in evidence.rows("process_binding"):
        own = processes.get((row["host"], row["pid"])) or next(iter(by_pid.get(row["pid"], [])), {})
        rank = row["rank"] if row["rank"] is not None else own.get("rank")
        gpu = row["gpu"] if row["gpu"] is not None else own.get("gpu")
        if gpu is None:
            continue
        key = (row["host"], rank, gpu)
        entry = found.setdefault(
            key,
            {"host": row["host"], "rank": rank, "gpu": gpu, "ref": row["ref"], "ref_list": set(), "copy_gbps": None},
        )
        entry["ref_list"].add(row["ref"])
        for name, value in (("pid", row["pid"]), ("cpus", row["cpus"]), ("mems", row["mems"])):
            entry[name] = value if value is not None else entry.get(name)
        entry["copy_gbps"] = row["host_copy_gbps"] or entry["copy_gbps"]
    return list(found.values())


def _affinities(evidence: Evidence) -> dict[tuple[str | None, int], Row]:
    return {(row["host"], row["gpu"]): row for row in evidence.rows("affinity")}


def _apart(row: Row) -> bool | None:
    """None where one of the two lists is missing; a process that may run everywhere is not apart."""
    own, near = _numbers(row.get("cpus")), _numbers(row["gpu_cpus"])
    memory, node = _numbers(row.get("mems")), _numbers(row["numa"])
    if not own or not near:
        return bool(memory and node and not memory & node) if memory and node else None
    return not own & near


def _numbers(text: str | None) -> frozenset[int]:
    """The numbers of a list such as ``0-3,8``."""
    found: set[int] = set()
    for piece in (text or "").split(","):
        first, _, last = piece.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or int(last or first) - int(first) > _MOST:
            return frozenset()
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
