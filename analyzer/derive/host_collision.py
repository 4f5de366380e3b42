"""Hosts that NCCL took for one: neighbours over P2P or shared memory whose hosts have different addresses."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]
Process = tuple[str | None, int, int]
"""Host, pid and input: two hosts of one name may even share a pid."""

_FAULTS = frozenset({"ipc_failed", "shm_failed", "duplicate_gpu", "cuda_failure"})
_LOCAL = re.compile(r"P2P/(?!MNNVL)|SHM|direct shared memory|P2P$")
_RANKS = re.compile(r"rank ([0-9]+) and rank ([0-9]+)")


def derive_host_collision(evidence: Evidence) -> None:
    """Fills ``host_collision``."""
    inputs = {row["stream"]: row["input"] for row in evidence.rows("stream")}
    addresses = _addresses(evidence, inputs)
    if len(set(addresses.values())) < 2:
        evidence.set("host_collision", ())
        return
    owners = _owners(evidence, inputs)
    faults = [row for row in evidence.rows("nccl_message") if row["kind"] in _FAULTS]
    pairs: dict[tuple[int, int], Row] = {}
    for row in [*_pairs(evidence), *_duplicates(faults)]:
        a, b = row["a"], row["b"]
        place_a, place_b = _address(owners.get(a), addresses), _address(owners.get(b), addresses)
        if (a, b) not in pairs and place_a and place_b and place_a != place_b:
            pairs[a, b] = _row(row, a, b, place_a, place_b, faults)
    evidence.set("host_collision", (pairs[key] for key in sorted(pairs)))


def _addresses(evidence: Evidence, inputs: dict[int, int]) -> dict[object, str]:
    """Address of each process; of an input whose processes name one address only, that one for all."""
    found: dict[object, str] = {}
    by_input: dict[int, set[str]] = defaultdict(set)
    for row in sorted(evidence.rows("nccl_interface"), key=lambda r: (r["what"] != "bootstrap", r["ref"])):
        number = inputs.get(row["stream"], -1)
        if row["address"] and row["pid"] is not None and not row["address"].startswith("127."):
            key = (row["host"], row["pid"], number)
            if key not in found:
                found[key] = row["address"]
                by_input[number].add(row["address"])
    for number, names in by_input.items():
        if len(names) == 1:
            found[number] = next(iter(names))
    return found


def _address(owner: Process | None, addresses: dict[object, str]) -> str | None:
    if owner is None:
        return None
    return addresses.get(owner) or addresses.get(owner[2])


def _owners(evidence: Evidence, inputs: dict[int, int]) -> dict[int, Process]:
    """The process of each rank: from its init line, else as the sender that prints a connection."""
    owners: dict[int, Process] = {}
    widest = max((row["nranks"] or 0 for row in evidence.rows("communicator")), default=0)
    for row in evidence.rows("communicator"):
        if row["nranks"] == widest:
            owners.setdefault(row["comm_rank"], (row["host"], row["pid"], inputs.get(row["stream"], -1)))
    if not owners:
        for row in evidence.rows("channel"):
            own = row["dst"] if row["direction"] == "receive" else row["src"]
            owners.setdefault(own, (row["host"], row["pid"], inputs.get(row["stream"], -1)))
    return owners


def _pairs(evidence: Evidence) -> list[Row]:
    return [
        {"a": row["src"], "b": row["dst"], "transport": row["transport"], "host": row["host"], "ref": row["ref"]}
        for row in evidence.rows("channel")
        if row["transport"] and _LOCAL.search(row["transport"])
    ]


def _duplicates(faults: list[Row]) -> list[Row]:
    found = []
    for row in faults:
        ranks = _RANKS.search(row["text"] or "") if row["kind"] == "duplicate_gpu" else None
        if ranks:
            a, b = sorted((int(ranks.group(1)), int(ranks.group(2))))
            found.append({"a": a, "b": b, "transport": "duplicate", "host": row["host"], "ref": row["ref"]})
    return found


def _row(row: Row, a: int, b: int, place_a: str, place_b: str, faults: list[Row]) -> Row:
    near = sorted(faults, key=lambda one: one["ref"])
    return {
        "host": row["host"],
        "rank": f"{min(a, b)},{max(a, b)}",
        "link": f"{a}-{b}",
        "address_a": place_a,
        "address_b": place_b,
        "transport": row["transport"],
        "fault": near[0]["text"] if near else None,
        "at": min((one["at"] for one in near if one["at"] is not None), default=None),
        "ref": row["ref"],
        "refs": ",".join(str(one["ref"]) for one in near[:20]) or None,
    }
