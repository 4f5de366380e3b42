"""Device memory that NCCL holds in each process: computed from its ALLOC lines, else estimated.

With cuMem (NCCL 2.19 and later by default) every allocation fills whole granules of 2 MiB, which the pointers
show; without it the plain sizes count. A buffer that two lines describe has one pointer and is counted once.
There is no line for a free: memory of a communicator goes with its destroy or abort line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from analyzer.derive.comm_estimate import estimate
from analyzer.evidence import Evidence

Row = dict[str, Any]
Key = tuple[str | None, int]

GRANULE = 2 << 20
SMALL = GRANULE
_MOST_REFS = 24
_ALIGNED_SHARE = 0.9
_ERROR_SHARE = 0.03


def derive_comm_memory(evidence: Evidence) -> None:
    """Fills ``comm_memory``, one row per process that logged communicators."""
    allocs: dict[Key, list[Row]] = defaultdict(list)
    for row in evidence.rows("comm_alloc"):
        allocs[(row["host"], row["pid"])].append(row)
    comms: dict[Key, list[Row]] = defaultdict(list)
    for row in evidence.rows("communicator"):
        comms[(row["host"], row["pid"])].append(row)
    channels: dict[Key, list[int]] = defaultdict(list)
    for row in evidence.rows("nccl_layout"):
        if row["what"] in ("coll_channels", "p2p_channels"):
            channels[(row["host"], row["pid"])].append(row["value"])
    processes = {(p["host"], p["pid"]): p for p in evidence.rows("process")}
    failures = _first_failures(evidence)
    estimates = estimate(evidence, [key for key in comms if key not in allocs], failures)
    rows = []
    for key in sorted(set(allocs) | set(estimates), key=str):
        process = processes.get(key, {})
        row = {"host": key[0], "pid": key[1], "rank": process.get("rank"), "gpu": process.get("gpu")}
        row["communicators"] = process.get("communicators") or 0
        row["channels"] = max(channels.get(key, [0])) or None
        row |= _computed(allocs[key], comms[key], failures.get(key)) if key in allocs else estimates[key]
        rows.append(row)
    evidence.set("comm_memory", rows)


def _first_failures(evidence: Evidence) -> dict[Key, int]:
    """Per process the line of its first out-of-memory error: what is freed later was held then."""
    owner = {p["stream"]: (p["host"], p["pid"]) for p in evidence.rows("process") if p["stream"] is not None}
    found: dict[Key, int] = {}
    for row in sorted(evidence.rows("oom_event"), key=lambda r: r["ref"]):
        if row["stream"] in owner:
            found.setdefault(owner[row["stream"]], row["ref"])
    return found


def granule_of(allocs: Iterable[Row]) -> int:
    """2 MiB where the pointers of small allocations stand on granules, 0 where they are packed."""
    small = [
        int(a["pointer"], 16)
        for a in allocs
        if a["kind"] == "device" and a["bytes"] < SMALL and a["pointer"] != "(nil)"
    ]
    if not small:
        return 0
    return GRANULE if sum(p % GRANULE == 0 for p in small) >= _ALIGNED_SHARE * len(small) else 0


def _computed(allocs: list[Row], comms: list[Row], failure: int | None) -> Row:
    """Highest sum of live buffers up to the failure."""
    granule = granule_of(allocs)
    live: dict[str, tuple[int, str]] = {}
    current = ""
    total = peak = 0
    peak_refs: list[int] = []
    for row in sorted([*allocs, *comms], key=lambda r: r["ref"]):
        if failure is not None and row["ref"] > failure:
            break
        if "state" in row:
            if row["state"] == "start":
                current = row["handle"]
            elif row["state"] in ("destroy", "abort"):
                gone = [pointer for pointer, (_, handle) in live.items() if handle == row["handle"]]
                total -= sum(live.pop(pointer)[0] for pointer in gone)
            continue
        if row["kind"] == "host":
            continue
        size = -(-row["bytes"] // granule) * granule if granule else row["bytes"]
        known = live.get(row["pointer"])
        live[row["pointer"]] = (max(size, known[0]) if known else size, current)
        total += live[row["pointer"]][0] - (known[0] if known else 0)
        if total > peak:
            peak = total
            peak_refs.append(row["ref"])
    refs = _biggest(allocs, peak_refs)
    return {
        "bytes": peak,
        "error_bytes": round(peak * _ERROR_SHARE),
        "origin": "computed",
        "granule_bytes": granule,
        "ref": min(a["ref"] for a in allocs),
        "refs": ",".join(map(str, refs)),
    }


def _biggest(allocs: list[Row], counted: list[int]) -> list[int]:
    """References to the largest counted allocations, first of each size."""
    chosen: dict[int, int] = {}
    wanted = set(counted)
    for row in sorted(allocs, key=lambda r: (-r["bytes"], r["ref"])):
        if row["ref"] in wanted:
            chosen.setdefault(row["bytes"], row["ref"])
    return list(chosen.values())[:_MOST_REFS]
