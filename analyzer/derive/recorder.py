"""Flight-recorder dumps of all ranks side by side: the first collective at which they part.

Per group the dumps are aligned at the latest first entry (the recorder is a ring), then walked in the order of the
sequence numbers until some ranks lack a collective, or issued another one than most.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_ROOTED = ("broadcast", "reduce", "gather", "scatter", "send", "recv", "alltoall", "all_to_all", "coalesced")
_SIZED = ("all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "barrier", "_allgather_base")


def from_recorder(evidence: Evidence) -> Iterator[Row]:
    """Rows of ``missing_rank`` from the tables ``collective`` and ``process_group``."""
    groups: dict[str, dict[int, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in evidence.rows("collective"):
        if row["rank"] is not None and row["seq"] is not None and not row["p2p"]:
            groups[row["pg"] or "0"][row["rank"]][row["seq"]] = row
    members = _members(evidence)
    dumped = {row["rank"] for table in ("collective", "process_group") for row in evidence.rows(table)} - {None}
    status: dict[tuple[object, object], Row] = {(row["pg"], row["rank"]): row for row in evidence.rows("process_group")}
    for pg in sorted(groups):
        found = _first_difference(pg, groups[pg], members.get(pg, set()), dumped, status)
        if found is not None:
            yield found


def _members(evidence: Evidence) -> dict[str, set[int]]:
    """Ranks of each group, as most dumps state them."""
    said: dict[str, Counter[str]] = defaultdict(Counter)
    for row in evidence.rows("process_group"):
        if row["ranks"]:
            said[row["pg"]][row["ranks"]] += 1
    return {pg: {int(part) for part in texts.most_common(1)[0][0].split(",")} for pg, texts in said.items()}


def _first_difference(
    pg: str,
    ranks: dict[int, dict[int, Row]],
    members: set[int],
    dumped: set[Any],
    status: dict[tuple[object, object], Row],
) -> Row | None:
    present = (members & dumped) | set(ranks)
    if len(present) < 2:
        return None
    start = max(min(entries) for entries in ranks.values())
    for seq in sorted({seq for entries in ranks.values() for seq in entries if seq >= start}):
        at_it = {rank: entries[seq] for rank, entries in ranks.items() if seq in entries}
        lacking = present - set(at_it)
        unfinished = any(row["state"] != "completed" for row in at_it.values())
        if lacking and unfinished:
            return _lacking(pg, seq, at_it, lacking, members or present, ranks, status)
        if not lacking and (parted := _parted(pg, seq, at_it, members or present)):
            return parted
    return None


def _lacking(
    pg: str,
    seq: int,
    at_it: dict[int, Row],
    lacking: set[int],
    members: set[int],
    ranks: dict[int, dict[int, Row]],
    status: dict[tuple[object, object], Row],
) -> Row:
    """Some ranks called the collective and some did not: the fewer are the culprits."""
    extra = len(at_it) < len(lacking)
    culprits = set(at_it) if extra else lacking
    last = [max(ranks[rank], default=0) for rank in lacking if rank in ranks]
    last += [n for rank in lacking if (n := (status.get((pg, rank)) or {}).get("last_enqueued")) is not None]
    row = next(iter(at_it.values()))
    place = f" at {row['frames']}" if row["frames"] else ""
    detail = (
        f"called it{place} and the others did not"
        if extra
        else f"had called nothing beyond {max(last) if last else 'the start'}; the others stood{place or ' in it'}"
    )
    refs = [entry["ref"] for entry in at_it.values()]
    refs += [max(ranks[rank].values(), key=lambda one: one["seq"])["ref"] for rank in lacking if ranks.get(rank)]
    return _result(pg, seq, at_it, "extra_call" if extra else "not_called", culprits, members, detail, refs, 0.9)


def _parted(pg: str, seq: int, at_it: dict[int, Row], members: set[int]) -> Row | None:
    forms = {rank: _form(row) for rank, row in at_it.items()}
    counts = Counter(forms.values())
    if len(counts) < 2:
        return None
    (most, number), *_ = counts.most_common()
    clear = 2 * number > len(forms)
    culprits = {rank for rank, form in forms.items() if form != most} if clear else set(forms)
    refs = [at_it[rank]["ref"] for rank in sorted(culprits)]
    other = next(form for form in sorted(counts) if form != most)
    detail = (
        f"issued {other} where the others issued {most}" if clear else f"issued {other} on some and {most} on others"
    )
    row = _result(pg, seq, at_it, "other_call", culprits, members, detail, refs, 0.9 if clear else 0.8)
    return row | {"form": most, "other_form": other}


def _form(row: Row) -> str:
    """What must be the same on all ranks: operation and, where the collective asks for it, size and type."""
    operation = row["operation"] or "?"
    sized = operation.startswith(_SIZED) or not operation.startswith(_ROOTED)
    size = f" {row['input_sizes']}" if sized and row["input_sizes"] else ""
    return f"{operation}{size} {row['dtypes'] or ''}".strip()


def _result(
    pg: str,
    seq: int,
    at_it: dict[int, Row],
    verdict: str,
    culprits: set[int],
    members: set[int],
    detail: str,
    refs: list[int],
    confidence: float,
) -> Row:
    first = min(at_it.values(), key=lambda row: row["ref"])
    return {
        "pg": pg,
        "seq": seq,
        "operation": first["operation"],
        "verdict": verdict,
        "rank": ",".join(str(rank) for rank in sorted(culprits)),
        "members": len(members),
        "waiting": len(at_it),
        "form": _form(first),
        "source": "flight recorder",
        "detail": detail,
        "confidence": confidence,
        "at": first["at"],
        "ref": first["ref"],
        "refs": ",".join(str(ref) for ref in sorted({*refs, first["ref"]})[:40]),
    }
