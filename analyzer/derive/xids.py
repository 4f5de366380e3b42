"""Xids of one GPU that belong together, how they stand among the others of the host, and what the numbers mean.

An episode is a run of lines with one number on one GPU without a pause of more than a minute. It is a follower where
its number only echoes others (43, 45, 154 ...) beside another event, or where a stronger event on the same host
explains it: a lost GPU explains link errors of its peers, a link that went down explains the alarms of the others.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]
Key = tuple[str | None, str | None, int, bool, int]

CATALOGUE = Path(__file__).with_name("xid_catalogue.csv")
PAUSE_S = 60.0
NEAR_S = 120.0
_MOST_REFS = 12
_ECHOES = frozenset({43, 45, 108, 137, 154})
_FABRIC_ALARMS = frozenset({144, 145, 146, 147, 148, 150})
_LINK = frozenset({74, 149})
_LOST = frozenset({79})
_MEMORY = frozenset({48, 95, 140, 171})
_STUCK = frozenset({62, 119, 120})
# What each number can be explained by, on any GPU of the host and on the same GPU.
_BY_HOST: dict[int, frozenset[int]] = {74: _LOST, **dict.fromkeys(_FABRIC_ALARMS, _LINK | _LOST), 149: _LOST}
_BY_CARD: dict[int, frozenset[int]] = {
    **dict.fromkeys((13, 31), _LOST | _MEMORY | _STUCK | frozenset({64})),
    **dict.fromkeys((32, 69, 109), _LOST | _MEMORY | _STUCK | frozenset({13, 31, 64})),
    **dict.fromkeys((61, 62, 119, 120), _LOST | _MEMORY | _STUCK | frozenset({64})),
    143: _LOST,
    63: frozenset({64}),
    94: frozenset({48, 63, 64, 171}),
}


@dataclass(slots=True)
class _Episode:
    host: str | None
    bus_id: str | None
    code: int
    t: float | None
    last_t: float | None
    rows: list[Row] = field(default_factory=list)
    leader: _Episode | None = None
    standing: str = "first"


def derive_xids(evidence: Evidence) -> None:
    """Fills ``xid_episode`` and ``xid_meaning``."""
    episodes = _episodes(evidence.rows("xid"))
    by_host: dict[str | None, list[_Episode]] = defaultdict(list)
    for episode in episodes:
        by_host[episode.host].append(episode)
    for found in by_host.values():
        for episode in found:
            _judge(episode, found)
    evidence.set("xid_episode", [_row(episode) for episode in episodes])
    evidence.set("xid_meaning", _meanings(evidence))


def _episodes(rows: list[Row]) -> list[_Episode]:
    lines: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        # Two clocks cannot be compared, nor the boot clocks of two boots.
        boot = row["boot_s"] is not None
        lines[(row["host"], row["bus_id"], row["code"], boot, row.get("boots_ago") or 0)].append(row)
    found: list[_Episode] = []
    for (host, bus_id, code, _, _), entries in lines.items():
        last: _Episode | None = None
        for row in sorted(entries, key=lambda r: (_time(r) or 0.0, r["ref"])):
            t = _time(row)
            if last is None or (t is not None and last.last_t is not None and t - last.last_t > PAUSE_S):
                last = _Episode(host, bus_id, code, t, t)
                found.append(last)
            last.rows.append(row)
            last.last_t = t
    return sorted(found, key=lambda e: (e.host or "", e.t if e.t is not None else -1.0, e.rows[0]["ref"]))


def _time(row: Row) -> float | None:
    value = row["boot_s"] if row["boot_s"] is not None else row["at"]
    return None if value is None else float(value)


def _judge(one: _Episode, others: list[_Episode]) -> None:
    near = [other for other in others if other is not one and _near(one, other)]
    strong = [other for other in near if other.code not in _ECHOES]
    by_host, by_card = _BY_HOST.get(one.code, frozenset()), _BY_CARD.get(one.code, frozenset())
    if one.code in _ECHOES:
        leaders = [e for e in strong if e.bus_id == one.bus_id] or strong
    else:
        leaders = [e for e in strong if e.code in by_host or (e.code in by_card and e.bus_id == one.bus_id)]
        leaders = [e for e in leaders if e.code != one.code and (not _mutual(one, e) or _earlier(e, one))]
    if leaders:
        one.leader = min(leaders, key=lambda e: (e.t if e.t is not None else 0.0, e.rows[0]["ref"]))
        one.standing = "follower"
    elif not near:
        one.standing = "solo"


def _mutual(one: _Episode, other: _Episode) -> bool:
    """Whether the other one could be explained by this one, too: then the earlier counts."""
    return one.code in _BY_CARD.get(other.code, frozenset())


def _earlier(one: _Episode, other: _Episode) -> bool:
    return (one.t or 0.0, one.rows[0]["ref"]) < (other.t or 0.0, other.rows[0]["ref"])


def _near(one: _Episode, other: _Episode) -> bool:
    if one.t is None or other.t is None or other.last_t is None or one.last_t is None:
        return True
    return one.t - NEAR_S <= other.last_t and other.t <= one.last_t + NEAR_S


def _row(episode: _Episode) -> Row:
    rows, leader = episode.rows, episode.leader
    wall = [row["at"] for row in rows if row["at"] is not None]
    return {
        "host": episode.host,
        "bus_id": episode.bus_id,
        "code": episode.code,
        "t": episode.t,
        "at": min(wall) if wall else None,
        "last_t": episode.last_t,
        "lines": len({row["text"] for row in rows}),
        "pids": _listed(rows, "pid"),
        "links": _listed(rows, "link"),
        "units": _listed(rows, "unit"),
        "places": _listed(rows, "place", "; "),
        "actions": _listed(rows, "action"),
        "fatal": any(row["severity"] == "Fatal" for row in rows),
        "text": rows[0]["text"],
        "standing": episode.standing,
        "leader": leader.code if leader else None,
        "leader_bus_id": leader.bus_id if leader else None,
        "ref": rows[0]["ref"],
        "refs": ",".join(str(row["ref"]) for row in rows[:_MOST_REFS]),
    }


def _listed(rows: list[Row], name: str, mark: str = ",") -> str | None:
    """The different values of a column as one text."""
    return mark.join(map(str, sorted({row[name] for row in rows if row[name] is not None}))) or None


def _meanings(evidence: Evidence) -> list[Row]:
    first: dict[tuple[str, int], int] = {}
    for table, kind in (("xid", "Xid"), ("sxid", "SXid")):
        for row in evidence.rows(table):
            key = (kind, row["code"])
            first[key] = min(row["ref"], first.get(key, row["ref"]))
    known = _catalogue() if first else {}
    return [{**known[key], "ref": ref} for key, ref in sorted(first.items()) if key in known]


@lru_cache(maxsize=1)
def _catalogue() -> dict[tuple[str, int], Row]:
    with CATALOGUE.open(encoding="utf-8", newline="") as file:
        next(file)  # the stamp
        rows = list(csv.DictReader(file))
    return {
        (row["kind"], int(row["code"])): {**row, "code": int(row["code"]), "follower": row["follower"] == "1"}
        for row in rows
    }
