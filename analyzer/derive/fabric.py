"""The NVLink fabric: failures of a job that only the fabric can cause, and the state of the services behind it.

CUDA and NCCL name the fault only by an error code; which service or resource is behind it, the rules decide from the
state of the services, the fabric manager's log and the cards.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_NVLS = re.compile(r"NVLINK SHARP|NVLS|nvls|[Mm]ulticast")
_IMEX = re.compile(r"IMEX channel|MNNVL .{0,80}not working|IMEX.{0,60}(?:not|fail)|imex.{0,60}(?:not found|fail)")
_HANDLE = re.compile(r"[Ff]abric|FABRIC|cuMemCreate|cuMemExport|cuMemImport|ShareableHandle")
_NOT_PERMITTED = re.compile(r"not permitted|NOT_PERMITTED|\b800\b")
_NOT_READY = re.compile(r"system not yet initialized|SystemNotReady|SYSTEM_NOT_READY")
# The code or the words of the CUDA error inside an NVLS message.
_KINDS = (
    ("nvls_state", re.compile(r"\b401\b|present state|ILLEGAL_STATE")),
    ("nvls_memory", re.compile(r"out of memory|OUT_OF_MEMORY|(?:error|failure) 2\b")),
    ("nvls_permission", _NOT_PERMITTED),
    ("nvls_argument", re.compile(r"invalid argument|INVALID_VALUE|(?:error|failure) 1\b")),
)
_STARTS, _STOPS = frozenset({"started"}), frozenset({"stopping", "stopped", "failed"})


def derive_fabric(evidence: Evidence) -> None:
    """Fills ``fabric_failure`` and ``service``."""
    rows = sorted(_failures(evidence), key=lambda row: row["ref"])
    told = {(row["rank"], row["kind"]) for row in rows if row["source"] == "nccl"}
    evidence.set(
        "fabric_failure",
        [row for row in rows if row["source"] == "nccl" or not _repeats(row, told)],
    )
    evidence.set("service", _services(evidence))


def _repeats(row: Row, told: set[tuple[int | None, str]]) -> bool:
    """Whether a framework only repeats what NCCL said on the same rank, or on a rank that is not known."""
    return any(kind == row["kind"] and (rank is None or rank == row["rank"]) for rank, kind in told)


def _failures(evidence: Evidence) -> Iterator[Row]:
    for row in evidence.rows("nccl_message"):
        text = row["text"] or ""
        # An INFO line tells that NCCL goes on without it.
        kind = failure_kind(text, row["site"] or "") if row["level"] == "WARN" else None
        if kind:
            yield _failure(row, kind, text, "nccl", row["dev"], row["pid"])
    for row in evidence.rows("cuda_error"):
        text = f"{row['name'] or ''} {row['text'] or ''}".strip()
        if row["code"] == 802 or _NOT_READY.search(text):
            yield _failure(row, "not_initialized", text, "cuda", row["gpu"], None)
    for table, column in (("exception", "message"), ("distributed_error", "text")):
        for row in evidence.rows(table):
            kind = failure_kind(row[column] or "", "")
            if kind:
                yield _failure(row, kind, row[column], table, None, None)


def _failure(row: Row, kind: str, text: str, source: str, gpu: int | None, pid: int | None) -> Row:
    common = {name: row[name] for name in ("host", "rank", "at", "ref")}
    return common | {"kind": kind, "text": text, "source": source, "gpu": gpu, "pid": pid}


def failure_kind(text: str, site: str) -> str | None:
    """The kind of a failure by its text and the source file that NCCL names."""
    if _NOT_READY.search(text):
        return "not_initialized"
    if _IMEX.search(text):
        return "imex"
    nvls = "nvls.c" in site or bool(_NVLS.search(text))
    if not nvls:
        return "imex" if _NOT_PERMITTED.search(text) and (_HANDLE.search(text) or "mnnvl" in site) else None
    if not re.search(r"fail|error|CUDA_ERROR", text, re.IGNORECASE):
        return None
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "nvls_other")


def _services(evidence: Evidence) -> list[Row]:
    groups: dict[tuple[str | None, str], list[Row]] = defaultdict(list)
    for row in evidence.rows("service_state"):
        groups[(row["host"], row["unit"])].append(row)
    boots: dict[str | None, list[float]] = defaultdict(list)
    for row in evidence.rows("kernel_event"):
        if row["kind"] == "boot" and row["at"] is not None:
            boots[row["host"]].append(row["at"])
    return [
        _service(host, unit, groups[host, unit], boots[host])
        for host, unit in sorted(groups, key=lambda key: (key[0] or "", key[1]))
    ]


def _service(host: str | None, unit: str, rows: list[Row], boots: list[float]) -> Row:
    now = [row for row in rows if row["says"] != "journal" and row["state"]]
    past = sorted((row for row in rows if row["says"] == "journal"), key=lambda row: (row["at"] or 0.0, row["ref"]))
    last = max(now, key=lambda row: row["ref"]) if now else past[-1] if past else rows[-1]
    restarted = _restart(past, boots)
    state = {"started": "active", "stopped": "inactive"}.get(last["state"], last["state"])
    enabled = [row["enabled"] for row in rows if row["enabled"]]
    versions = [row["version"] for row in rows if row["version"]]
    return {
        "host": host,
        "unit": unit,
        "state": state or None,
        "enabled": enabled[-1] if enabled else None,
        "version": versions[-1] if versions else None,
        "since": last["since"] if last["since"] is not None else last["at"],
        "restarted_at": restarted["at"] if restarted else None,
        "restart_ref": restarted["ref"] if restarted else None,
        "ref": last["ref"],
        "refs": ",".join(str(row["ref"]) for row in rows[:12]),
    }


def _restart(past: list[Row], boots: list[float]) -> Row | None:
    """The last start after a stop in the same boot."""
    stopped: float | None = None
    found: Row | None = None
    for row in past:
        if row["state"] in _STOPS:
            stopped = row["at"] or 0.0
        elif row["state"] in _STARTS and stopped is not None:
            if not any(stopped <= boot <= (row["at"] or 0.0) for boot in boots):
                found = row
            stopped = None
    return found
