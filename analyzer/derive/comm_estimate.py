"""Estimate of NCCL's device memory from INFO lines, where no ALLOC lines were logged.

Per communicator: buffers of each (channel, peer, direction) of rings and trees by transport, the shared pool of
the proxy, NVLS buffers, and the granules of small allocations under cuMem. Sizes follow NCCL's sources: a P2P
link costs 2 MiB at the sender and 10 MiB at the receiver (6 and 6 with ``/read``), a GPUDirect network link 10 MiB.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]
Key = tuple[str | None, int]

MIB = 1 << 20
_GRANULE = 2 * MIB
_STRUCT = 4096
_LL = 524_288
_LL128 = 4_915_200
_SIMPLE = 4 * MIB
_SHARED_STEPS = 16
_SMALL_PER_CHANNEL = 3
_ERROR_SHARE = 0.2
_FIRST_SHARED_POOL = (2, 12)
_RUNTIME_CONNECT = (2, 22)
_CUMEM_DEFAULT = (2, 19)


@dataclass(slots=True)
class _Comm:
    """What one rank logged of one communicator."""

    handle: str
    rank: int
    nranks: int
    comm_id: str | None
    ref: int
    sends: dict[tuple[int, int], str] = field(default_factory=dict)
    trees: list[Row] = field(default_factory=list)
    layout: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Settings:
    """Version and settings that decide the sizes."""

    version: tuple[int, ...]
    cumem: bool
    runtime_connect: bool
    simple: int


def estimate(evidence: Evidence, keys: list[Key], failures: dict[Key, int]) -> dict[Key, Row]:
    """Estimated rows of ``comm_memory`` for these processes (without identity columns)."""
    if not keys:
        return {}
    comms = _communicators(evidence, failures)
    receivers: dict[tuple[str | None, int], dict[tuple[int, int], str]] = defaultdict(dict)
    for found in comms.values():
        for comm in found:
            for (channel, dst), transport in comm.sends.items():
                receivers[(comm.comm_id, dst)][(channel, comm.rank)] = transport
    result: dict[Key, Row] = {}
    for key in keys:
        settings = _settings(evidence, key)
        total = sum(_comm_bytes(comm, receivers[(comm.comm_id, comm.rank)], settings) for comm in comms.get(key, ()))
        if total:
            refs = [comm.ref for comm in comms[key]]
            result[key] = {
                "bytes": total,
                "error_bytes": round(total * _ERROR_SHARE),
                "origin": "estimated",
                "granule_bytes": _GRANULE if settings.cumem else 0,
                "ref": refs[0],
                "refs": ",".join(map(str, refs[:24])),
            }
    return result


def _communicators(evidence: Evidence, failures: dict[Key, int]) -> dict[Key, list[_Comm]]:
    """Live communicators of each process with the lines that were printed while they were made."""
    rows: dict[Key, list[tuple[int, str, Row]]] = defaultdict(list)
    for table in ("communicator", "channel", "tree_edge", "nccl_layout"):
        for row in evidence.rows(table):
            rows[(row["host"], row["pid"])].append((row["ref"], table, row))
    return {key: _replay(found, failures.get(key)) for key, found in rows.items()}


def _replay(rows: list[tuple[int, str, Row]], failure: int | None) -> list[_Comm]:
    comms: dict[str, _Comm] = {}
    current: _Comm | None = None
    waiting: list[tuple[str, Row]] = []
    for ref, table, row in sorted(rows, key=lambda item: item[0]):
        if failure is not None and ref > failure:
            break
        if table != "communicator":
            if current is not None:
                _add(current, table, row)
            else:
                waiting.append((table, row))
        elif row["state"] in ("start", "complete"):
            known = comms.get(row["handle"])
            if known is None:
                current = _Comm(row["handle"], row["comm_rank"], row["nranks"], row["comm_id"], ref)
                comms[row["handle"]] = current
                for waited in waiting if row["state"] == "complete" else ():
                    _add(current, *waited)
                waiting.clear()
                current = current if row["state"] == "start" or _prints_start(rows) else None
        elif row["state"] in ("destroy", "abort"):
            comms.pop(row["handle"], None)
    return list(comms.values())


def _prints_start(rows: list[tuple[int, str, Row]]) -> bool:
    """Whether this version prints a line when an init starts (2.18 and later)."""
    return any(table == "communicator" and row["state"] == "start" for _, table, row in rows)


def _add(comm: _Comm, table: str, row: Row) -> None:
    if table == "channel":
        if row["src"] == comm.rank and row["direction"] != "receive" and row["conn"] in (0, None):
            comm.sends[(row["channel"], row["dst"])] = row["transport"]
    elif table == "tree_edge":
        if row["me"] == comm.rank:
            comm.trees.append(row)
    elif row["value"] is not None:
        comm.layout[row["what"]] = row["value"]


def _settings(evidence: Evidence, key: Key) -> _Settings:
    env = {r["name"]: r["value"] for r in evidence.rows("env_var") if r["pid"] == key[1]}
    version = next((r["value"] for r in evidence.rows("version") if r["component"] == "NCCL"), "")
    number = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
    cumem = env.get("NCCL_CUMEM_ENABLE")
    on = cumem not in (None, "0") or (cumem is None and number >= _CUMEM_DEFAULT)
    runtime = number >= _RUNTIME_CONNECT and on and env.get("NCCL_RUNTIME_CONNECT") != "0"
    size = env.get("NCCL_BUFFSIZE", "")
    return _Settings(number, on, runtime, int(size) if size.isdigit() and 0 < int(size) < 1 << 34 else _SIMPLE)


def _round(size: int) -> int:
    return -(-size // _GRANULE) * _GRANULE


def _link_bytes(transport: str, sends: bool, simple: int) -> int:
    """Device memory at one end of one connection."""
    if transport.startswith("NET"):
        return _round((0 if sends else _LL) + _LL128 + simple) if "GDRDMA" in transport else 0
    if not transport.startswith("P2P"):
        return 0
    if transport.endswith("/read"):
        return _round(_STRUCT + simple) if sends else _round(_STRUCT + _LL + _LL128)
    return _round(_STRUCT) if sends else _round(_STRUCT + _LL + _LL128 + simple)


def _comm_bytes(comm: _Comm, received: dict[tuple[int, int], str], settings: _Settings) -> int:
    sends, receives = dict(comm.sends), dict(received)
    usual = Counter(sends.values()).most_common(1)[0][0] if sends else ""
    if not receives:
        receives = {(channel, -1): transport for (channel, _), transport in sends.items()}
    if not settings.runtime_connect:
        for row in comm.trees:
            for peer in _neighbours(row):
                sends.setdefault((row["channel"], peer), usual)
                receives.setdefault((row["channel"], peer), usual)
    total = sum(_link_bytes(t, True, settings.simple) for t in sends.values())
    total += sum(_link_bytes(t, False, settings.simple) for t in receives.values())
    total += comm.layout.get("nvls_total", 0)
    p2p = comm.layout.get("p2p_channels", 0)
    if settings.version >= _FIRST_SHARED_POOL and not settings.runtime_connect:
        total += p2p * _SHARED_STEPS * (comm.layout.get("p2p_chunksize") or 0)
    if settings.cumem:
        total += _SMALL_PER_CHANNEL * _GRANULE * max(p2p, comm.layout.get("coll_channels", 0))
    return total


def _neighbours(row: Row) -> list[int]:
    peers = [int(peer) for peer in str(row["down"] or "").split()]
    return [*peers, row["up"]] if row["up"] is not None and row["up"] >= 0 else peers
