"""Which ranks are not where the others are: by majority over ranks, never by one rank as the reference.

Sources, the strongest first: flight-recorder dumps, desync reports and ncclras, monitored barriers and stall
warnings that name ranks, the state that watchdogs print, and at last the silence of a rank.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from analyzer.derive.named_ranks import from_names, from_ras, from_reports, joined
from analyzer.derive.recorder import from_recorder
from analyzer.derive.stacks import from_stacks
from analyzer.evidence import Evidence

Row = dict[str, Any]

_SMALL = 64
_FIRST = 3
"""Sequence numbers up to this one belong to the start of a job, where ranks prepare their data."""


def derive_missing_rank(evidence: Evidence) -> None:
    """Fills ``missing_rank``; needs ``rank_state``."""
    states = evidence.rows("rank_state")
    rows = [
        *_not_started(evidence, states),
        *from_recorder(evidence),
        *from_stacks(evidence),
        *from_reports(evidence),
        *from_ras(evidence),
        *from_names(evidence),
        *_watchdogs(evidence, states),
    ]
    hosts = {row["rank"]: row["host"] for row in states if row["host"]}
    died = {row["rank"] for row in states if row["died"] and not row["timed_out"]}
    for row in rows:
        found = sorted({hosts[rank] for rank in _numbers(row["rank"]) if rank in hosts})
        row.setdefault("host", ",".join(found) or None)
        row["ranks"] = len(_numbers(row["rank"])) or row.get("ranks")
        if row["verdict"] == "not_called" and died & set(_numbers(row["rank"])):
            row["verdict"] = "died"
    evidence.set("missing_rank", rows)


def _numbers(text: str | None) -> list[int]:
    return [int(part) for part in (text or "").split(",") if part]


def _not_started(evidence: Evidence, states: list[Row]) -> Iterator[Row]:
    """Ranks that a rendezvous waited for, where the logs of all others are there."""
    rows = [
        row
        for row in evidence.rows("distributed_error")
        if row["kind"] == "store_timeout" and row["total"] and row["value"] is not None and row["value"] < row["total"]
    ]
    if not rows:
        return
    total = max(row["total"] for row in rows)
    absent = total - min(row["value"] for row in rows if row["total"] == total)
    seen = {row["rank"] for row in states if row["ref"] is not None} | {
        row["rank"] for row in rows if row["rank"] is not None
    }
    missing = set(range(min(total, 4096))) - seen
    if len(missing) == absent:
        yield {
            "verdict": "not_started",
            "rank": joined(missing),
            "members": total,
            "waiting": total - absent,
            "source": "store",
            "detail": "has no line in the input",
            "confidence": 0.85,
            "at": rows[0]["at"],
            "ref": rows[0]["ref"],
            "refs": ",".join(str(row["ref"]) for row in rows),
        }


def _group_name(pg: str | None) -> str:
    """The name of a group whatever version printed it: ``0`` for the default group."""
    if not pg or "default_pg" in pg:
        return "0"
    found = re.search(r"PG (?:ID |GUID )?([0-9]+)", pg) or re.match(r"([0-9]+)", pg)
    return found.group(1) if found else pg


def _watchdogs(evidence: Evidence, states: list[Row]) -> Iterator[Row]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in evidence.rows("collective_timeout"):
        if row["rank"] is not None:
            groups[_group_name(row["pg"])].append(row)
    if not groups and any(row["timed_out"] for row in states):
        groups["0"] = []
    for pg, rows in groups.items():
        waits = [row for row in rows if row["timeout_ms"] is not None]
        behind = _behind(pg, rows, waits)
        if behind:
            yield behind
        elif pg == "0":
            yield from _silent(pg, waits, states)


def _behind(pg: str, rows: list[Row], waits: list[Row]) -> Row | None:
    """Ranks that had enqueued less than the collective that most others wait in."""
    if not waits:
        return None
    seq = Counter(row["seq"] for row in waits if row["seq"] is not None).most_common(1)
    last = {row["rank"]: row["last_enqueued"] for row in rows if row["last_enqueued"] is not None}
    if not seq:
        return None
    number = seq[0][0]
    at_it = {row["rank"] for row in waits if row["seq"] == number}
    behind = {rank for rank, enqueued in last.items() if enqueued < number and rank not in at_it}
    if not behind or len(behind) > len(at_it):
        return None
    some = [row for row in rows if row["rank"] in behind]
    return _verdict(
        pg,
        [row for row in waits if row["rank"] in at_it],
        "not_called",
        behind,
        0.85,
        f"had enqueued nothing beyond {max(last[rank] for rank in behind)}",
        [row["ref"] for row in some],
    )


def _silent(pg: str, waits: list[Row], states: list[Row]) -> Iterator[Row]:
    waiting = [row for row in states if row["timed_out"]]
    silent = [row for row in states if not row["timed_out"]]
    if not waiting or not silent or any(row["died"] for row in silent):
        return
    world = max(row["world"] or 0 for row in states)
    if world > len(waiting) + len(silent):
        return
    numel = max((row["numel_in"] or 0 for row in waits), default=0)
    seq = min((row["seq"] for row in waits if row["seq"] is not None), default=None)
    known = [row for row in silent if row["ref"] is not None or row["exit_code"] is not None]
    refs = [ref for row in silent for ref in _numbers(row["refs"])]
    done = [row for row in silent if row["finished"]]
    if len(waiting) < len(silent) or (len(waiting) == len(silent) and len(done) == len(silent)):
        if len(known) == len(silent) or len(done) == len(silent):
            detail = "waited and " + ("the others were done" if done else "the others did not call it")
            ranks = [row["rank"] for row in waiting]
            yield _verdict(pg, waits, "extra_call", ranks, 0.8 if done else 0.62, detail, refs)
        elif known or all(row["ref"] is None for row in silent):
            detail = "waited and the others printed no time-out"
            yield _verdict(pg, waits, "extra_call", [row["rank"] for row in waiting], 0.62, detail, refs)
        return
    ranks = [row["rank"] for row in silent]
    if len(done) == len(silent):
        yield _verdict(pg, waits, "not_called", ranks, 0.75, "were done and did not call it", refs)
    elif any(row["working"] for row in silent):
        said = next(row["last_text"] for row in silent if row["working"])
        late = [row for row in silent if _goes_on(row, waiting)]
        detail = f'printed "{said[:100]}" at the end'
        yield _verdict(pg, waits, "working", ranks, 0.75 if late else 0.7, detail, refs)
    elif seq is not None and seq > _FIRST and 0 < numel <= _SMALL:
        yield _verdict(pg, waits, "not_called", ranks, 0.55, "printed no time-out and no error", refs)
    else:
        stopped = any(row["exit_code"] in (-15, 143) for row in silent)
        yield _verdict(pg, waits, "silent", ranks, 0.62 if stopped else 0.55, "printed no time-out and no error", refs)


def _goes_on(row: Row, waiting: list[Row]) -> bool:
    """Whether a rank printed its last line after the wait of the others had begun."""
    began = min((one["wait_from"] for one in waiting if one["wait_from"] is not None), default=None)
    return began is not None and row["at"] is not None and row["at"] > began


def _verdict(
    pg: str, waits: list[Row], verdict: str, ranks: Iterable[int], confidence: float, detail: str, refs: list[int]
) -> Row:
    forms = Counter(
        f"{row['operation']} of {row['numel_in'] if row['numel_in'] is not None else '?'} elements" for row in waits
    )
    main = min(waits, key=lambda row: row["ref"], default=None)
    return {
        "pg": pg,
        "seq": main["seq"] if main else None,
        "operation": main["operation"] if main else None,
        "verdict": verdict,
        "rank": joined(ranks),
        "waiting": len({row["rank"] for row in waits}) or None,
        "form": forms.most_common(1)[0][0] if forms else None,
        "source": "watchdog",
        "detail": detail,
        "confidence": confidence,
        "at": min((row["at"] for row in waits if row["at"] is not None), default=None),
        "ref": main["ref"] if main else (refs[0] if refs else None),
        "refs": ",".join(str(ref) for ref in sorted({*refs, *(row["ref"] for row in waits)})) or None,
    }
