"""Reports that name the ranks they wait for: desync reports, ncclras, monitored barriers, stall warnings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]


def joined(ranks: Iterable[int]) -> str:
    """Ranks as the column ``rank`` holds them."""
    return ",".join(str(rank) for rank in sorted(set(ranks)))


def from_reports(evidence: Evidence) -> Iterator[Row]:
    """TORCH_NCCL_DESYNC_DEBUG: the ranks of the lowest collective are the culprits."""
    rows = [row for row in evidence.rows("distributed_error") if row["kind"] == "desync" and row["peer"]]
    if not rows:
        return
    lagging = [row for row in rows if "lagging ranks" in (row["text"] or "")]
    chosen = lagging or [min(rows, key=lambda row: (row["value"] if row["value"] is not None else 1 << 62, row["ref"]))]
    detail = "never joined any collective" if lagging else "did not join the collective that the others were in"
    yield {
        "seq": chosen[0]["value"],
        "verdict": "not_called",
        "rank": joined(int(part) for row in chosen for part in re.findall(r"[0-9]+", row["peer"])),
        "source": "desync report",
        "detail": detail,
        "confidence": 0.85,
        "at": chosen[0]["at"],
        "ref": chosen[0]["ref"],
        "refs": ",".join(str(row["ref"]) for row in rows),
    }


def from_ras(evidence: Evidence) -> Iterator[Row]:
    """ncclras: of two counts the smaller group of ranks is the one that differs."""
    groups: dict[object, list[Row]] = defaultdict(list)
    for row in evidence.rows("ras_report"):
        groups[row["comm_id"]].append(row)
    for comm, rows in groups.items():
        named = [row for row in rows if row["kind"] in ("behind", "ahead") and row["comm_rank"] is not None]
        counts = [row for row in rows if row["kind"] in ("behind", "ahead") and row["comm_rank"] is None]
        if not named:
            continue
        kind = Counter(row["kind"] for row in named).most_common()[-1][0]
        chosen = [row for row in named if row["kind"] == kind]
        others = max((row["op_count"] for row in counts if row["kind"] != kind), default=None)
        word = "fewer" if kind == "behind" else "more"
        yield {
            "pg": comm,
            "seq": chosen[0]["op_count"],
            "operation": chosen[0]["operation"],
            "verdict": "not_called" if kind == "behind" else "extra_call",
            "rank": joined(row["comm_rank"] for row in chosen),
            "host": ",".join(sorted({row["host"] for row in chosen if row["host"]})) or None,
            "members": sum(row["ranks"] or 0 for row in counts) or None,
            "source": "ncclras",
            "detail": f"had launched {word} operations: {chosen[0]['op_count']} against {others}",
            "confidence": 0.85,
            "ref": chosen[0]["ref"],
            "refs": ",".join(str(row["ref"]) for row in [*counts, *chosen]),
        }


def from_names(evidence: Evidence) -> Iterator[Row]:
    """A monitored barrier or a stall warning of Horovod that names the ranks it waits for."""
    for kind, source in (("gloo_timeout", "monitored barrier"), ("stall", "stall warning")):
        rows = [
            row
            for row in evidence.rows("distributed_error")
            if row["kind"] == kind and re.fullmatch(r"[0-9, ]+", row["peer"] or "")
        ]
        if rows:
            yield {
                "verdict": "not_called",
                "rank": joined(int(part) for row in rows for part in re.findall(r"[0-9]+", row["peer"])),
                "source": source,
                "detail": "did not reach the barrier" if kind == "gloo_timeout" else "submitted no such tensor",
                "confidence": 0.7,
                "at": rows[0]["at"],
                "ref": rows[0]["ref"],
                "refs": ",".join(str(row["ref"]) for row in rows),
            }
