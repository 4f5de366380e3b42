"""Pairs of GPUs of one host that NCCL connects through host memory or the network, not directly."""

from __future__ import annotations

import re
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]
Pair = tuple[str | None, int, int]

_NO_PEERS = re.compile(r"GeForce RTX [2345]0|RTX [345]0[5-9]0(?![0-9])|TITAN RTX")
_SHARED = ("SHM", "direct shared memory")


def derive_peer_detours(evidence: Evidence) -> None:
    """Fills ``peer_detour``: one row per pair and host."""
    edges = {(row["host"], row["a"], row["b"]): row for row in evidence.rows("edge")}
    found: dict[Pair, Row] = {}
    for key, edge in edges.items():
        if (edge["transport"] or "").startswith((*_SHARED, "NET")):
            found[key] = {"transport": edge["transport"], "ref": edge["ref"]}
    numbers = _numbers(evidence)
    for row in evidence.rows("channel"):
        if not (row["transport"] or "").startswith(_SHARED):
            continue
        ends = [numbers.get((row["host"], row[name])) for name in ("src_dev", "dst_dev")]
        if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
            key = (row["host"], min(ends[0], ends[1]), max(ends[0], ends[1]))
            found.setdefault(key, {}).update(transport=row["transport"], ref=row["ref"])
    statuses = _statuses(evidence)
    names = {(row["host"], row["gpu"]): row["name"] or "" for row in evidence.rows("gpu")}
    evidence.set(
        "peer_detour", [_row(key, found[key], edges.get(key), statuses, names) for key in sorted(found, key=str)]
    )


def _numbers(evidence: Evidence) -> dict[tuple[str | None, str], int]:
    """What stands in brackets behind a rank: the index of the card, or (before NCCL 2.17) its bus id."""
    buses = {(row["host"], row["bus_id"]): row["gpu"] for row in evidence.rows("gpu") if row["bus_id"]}
    found: dict[tuple[str | None, str], int] = {}
    for row in evidence.rows("channel"):
        for text in (row["src_dev"], row["dst_dev"]):
            if not text:
                continue
            if len(text) < 4 and text.isdigit():
                found[(row["host"], text)] = int(text)
                continue
            gpu = buses.get((row["host"], _bus(text)))
            if gpu is not None:
                found[(row["host"], text)] = gpu
    return found


def _bus(text: str) -> str:
    number = int(text, 16)
    return f"{number >> 20:04x}:{(number >> 12) & 0xFF:02x}:{(number >> 4) & 0xFF:02x}.{number & 0xF}"


def _statuses(evidence: Evidence) -> dict[Pair, bool]:
    """Whether the driver offers reads and writes between two cards."""
    found: dict[Pair, bool] = {}
    for row in evidence.rows("p2p_status"):
        if row["capability"] in (None, "r", "w", "p"):
            key = (row["host"], min(row["a"], row["b"]), max(row["a"], row["b"]))
            found[key] = found.get(key, True) and row["status"] == "OK"
    return found


def _row(key: Pair, seen: Row, edge: Row | None, statuses: dict[Pair, bool], names: dict[Any, str]) -> Row:
    host, a, b = key
    possible = statuses.get(key)
    refs = [seen["ref"]]
    if edge is not None:
        refs += [int(ref) for ref in (edge["refs"] or "").split(",") if ref]
        if possible is None and edge["connected"] is not None:
            possible = bool(edge["connected"])
    return {
        "host": host,
        "a": a,
        "b": b,
        "transport": seen["transport"],
        "path": edge["path"] if edge else None,
        "nvlinks": edge["nvlinks"] if edge else None,
        "possible": possible,
        "consumer": any(_NO_PEERS.search(names.get((host, gpu), "")) for gpu in (a, b)),
        "ref": seen["ref"],
        "refs": ",".join(map(str, dict.fromkeys(refs))),
    }
