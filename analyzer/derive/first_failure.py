"""Who failed first over ranks and hosts, on one clock; and whom the victims point at.

The clocks of hosts are brought together by events that several hosts saw at one moment: a communicator that
completed, a collective whose wait began. Only a difference of more than two seconds is corrected, and it is shown.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_KEPT = 200
_TOLERANCE_S = 2.0
_FROM_RANK = re.compile(r"from rank ([0-9]+)|[Pp]roxy [Cc]all to rank ([0-9]+)|\brank ([0-9]+) (?:on|at|has|is)\b")
_ADDRESS = re.compile(r"([^\s<\[]+)<[0-9]+>|\[([^\]\s]+)\]:[0-9]+|\(([\w.-]+), [0-9]+\)")
_POINTING = frozenset({"remote_closed", "recv_failed", "proxy_failed", "connect_failed", "ib_completion"})


def derive_first_failure(evidence: Evidence) -> None:
    """Fills ``first_failure`` and ``suspect``; needs ``event``."""
    skews = _skews(evidence)
    rows = [row for row in evidence.rows("event") if row["clock"] in ("wall", "after") and row["at"] is not None]
    placed = sorted(rows, key=lambda row: (row["at"] - skews.get(row["host"], 0.0), -row["weight"], row["ref"]))
    evidence.set(
        "first_failure",
        (
            {
                **{name: row[name] for name in ("host", "rank", "kind", "text", "weight", "ref")},
                "place": place,
                "at": row["at"] - skews.get(row["host"], 0.0),
                "skew_s": skews.get(row["host"], 0.0),
                "skew_known": row["host"] in skews,
            }
            for place, row in enumerate(placed[:_KEPT], 1)
        ),
    )
    evidence.set("suspect", _suspects(evidence))


def _skews(evidence: Evidence) -> dict[str | None, float]:
    """Seconds by which the clock of a host is ahead of the host that shares most events."""
    moments: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
    for row in evidence.rows("communicator"):
        if row["state"] == "complete" and row["comm_id"] and row["at"] is not None and row["host"]:
            moments[("comm", row["comm_id"])].setdefault(row["host"], row["at"])
    for row in evidence.rows("collective_timeout"):
        if row["at"] is not None and row["ran_ms"] and row["host"] and row["seq"] is not None:
            moments[("wait", row["pg"], row["seq"])].setdefault(row["host"], row["at"] - row["ran_ms"] / 1000)
    shared: dict[str, int] = defaultdict(int)
    for seen in moments.values():
        for host in seen if len(seen) > 1 else ():
            shared[host] += 1
    if len(shared) < 2:
        return {}
    base = min(shared, key=lambda host: (-shared[host], host))
    skews: dict[str | None, float] = {base: 0.0}
    for host in shared:
        apart = [seen[host] - seen[base] for seen in moments.values() if host in seen and base in seen]
        if apart and host != base:
            middle = statistics.median(apart)
            skews[host] = middle if abs(middle) > _TOLERANCE_S else 0.0
    return skews


def _suspects(evidence: Evidence) -> list[Row]:
    """Ranks, hosts and addresses that the error lines of others name."""
    hosts = {row["address"]: row["host"] for row in evidence.rows("nccl_interface") if row["address"] and row["host"]}
    accused: dict[tuple[str | None, int | None, str | None], list[Row]] = defaultdict(list)
    accusers: dict[tuple[str | None, int | None, str | None], set[object]] = defaultdict(set)
    pointing: set[object] = set()
    for row in _pointing(evidence):
        rank, address = _named(row)
        if rank is None and address is None:
            continue
        host = hosts.get(address) if address else None
        key = (host, rank, None if rank is not None else address)
        accused[key].append(row)
        accusers[key].add((row["host"], row.get("pid"), row["rank"]))
        pointing |= {row["rank"], row["host"]} - {None}
    return [
        {
            "host": host,
            "rank": rank,
            "address": address,
            "accusers": len(accusers[host, rank, address]),
            "accuses_itself": bool({host, rank} & pointing),
            "why": min(rows, key=lambda row: row["ref"])["text"],
            "at": min((row["at"] for row in rows if row["at"] is not None), default=None),
            "ref": min(row["ref"] for row in rows),
            "refs": ",".join(str(ref) for ref in sorted({row["ref"] for row in rows})[:20]),
        }
        for (host, rank, address), rows in sorted(accused.items(), key=lambda item: repr(item[0]))
    ]


def _pointing(evidence: Evidence) -> list[Row]:
    rows = [row for row in evidence.rows("nccl_message") if row["kind"] in _POINTING]
    return rows + [row for row in evidence.rows("distributed_error") if row["kind"] in ("gloo_closed", "gloo_connect")]


def _named(row: Row) -> tuple[int | None, str | None]:
    """Rank and address that a line names."""
    text = row["text"] or ""
    rank = _FROM_RANK.search(text)
    place = _ADDRESS.search(row["peer"] or "") or _ADDRESS.search(text)
    number = next((part for part in rank.groups() if part), None) if rank else None
    address = next((part for part in place.groups() if part), None) if place else None
    return (int(number) if number else None), address
