"""Two runs of one host with different NCCL releases side by side: which transport and which speed each had.

A run is one input that names one release. Only ranks and hosts that both runs have are compared.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_CLASSES = (("P2P", "P2P"), ("SHM", "SHM"), ("direct shared memory", "SHM"), ("NET", "NET"))
_PXN = re.compile(r"use ring PXN 1")


@dataclass(slots=True)
class _Run:
    """One input: its release, transports of pairs of ranks, algorithm settings and the best bus bandwidth."""

    version: str
    ref: int
    hosts: set[str] = field(default_factory=set)
    via: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    nics: Counter[str] = field(default_factory=Counter)
    env: dict[str, str] = field(default_factory=dict)
    busbw: float | None = None
    busbw_ref: int | None = None
    channels: int | None = None


def derive_run_change(evidence: Evidence) -> None:
    """Fills ``run_change``."""
    runs = _runs(evidence)
    ordered = sorted(runs.values(), key=lambda run: (_number(run.version), run.ref))
    rows = []
    for place, old in enumerate(ordered):
        for new in ordered[place + 1 :]:
            if _number(old.version) < _number(new.version) and (
                not old.hosts or not new.hosts or old.hosts & new.hosts
            ):
                rows.extend(_changes(old, new))
    evidence.set("run_change", rows)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version.partition("+")[0])[:3])


def _runs(evidence: Evidence) -> dict[int, _Run]:
    inputs = {row["stream"]: row["input"] for row in evidence.rows("stream")}
    versions: dict[int, dict[str, int]] = defaultdict(dict)
    for row in evidence.rows("version"):
        if row["component"] == "NCCL" and row["value"]:
            versions[inputs.get(row["stream"], -1)].setdefault(row["value"].split()[0], row["ref"])
    runs = {one: _Run(*next(iter(found.items()))) for one, found in versions.items() if len(found) == 1}
    for row in evidence.rows("communicator"):
        if (run := runs.get(inputs.get(row["stream"], -1))) and row["host"]:
            run.hosts.add(row["host"])
    for row in evidence.rows("channel"):
        run = runs.get(inputs.get(row["stream"], -1))
        kind = next((name for part, name in _CLASSES if part in (row["transport"] or "")), None)
        if run and kind:
            run.via.setdefault((row["src"], row["dst"]), (kind, row["ref"]))
            if kind == "NET":
                run.nics["/".join(row["transport"].split("/")[:3])] += 1
    for row in evidence.rows("env_var"):
        if run := runs.get(inputs.get(row["stream"], -1)):
            run.env[row["name"]] = row["value"] or ""
    for row in evidence.rows("bench_row"):
        run = runs.get(inputs.get(row["stream"], -1))
        if run and row["busbw_gbps"] is not None and row["busbw_gbps"] > (run.busbw or 0.0):
            run.busbw, run.busbw_ref = row["busbw_gbps"], row["ref"]
    return runs


def _changes(old: _Run, new: _Run) -> list[Row]:
    """What the newer run does otherwise; without a change of path nothing, whatever the speed."""
    moved = [
        (old.via[pair], new.via[pair], pair)
        for pair in sorted(set(old.via) & set(new.via))
        if old.via[pair][0] != new.via[pair][0]
    ]
    rows = []
    if moved:
        before = Counter(a[0] for a, _, _ in moved).most_common(1)[0][0]
        after = Counter(b[0] for _, b, _ in moved).most_common(1)[0][0]
        refs = [ref for a, b, _ in moved[:8] for ref in (a[1], b[1])]
        rows.append(_row(old, new, "transport", before, after, len(moved), refs))
    elif len(old.nics) > 1 and len(new.nics) == 1:
        rows.append(_row(old, new, "network adapters", str(len(old.nics)), "1", sum(new.nics.values()), []))
    return rows


def _row(old: _Run, new: _Run, what: str, before: str, after: str, pairs: int, refs: list[int]) -> Row:
    slower = None
    if old.busbw and new.busbw:
        slower = new.busbw < 0.9 * old.busbw
    forced = {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_ALGO", "NCCL_PXN_DISABLE"} & set(new.env)
    known = [ref for ref in (old.ref, new.ref, old.busbw_ref, new.busbw_ref) if ref is not None]
    return {
        "host": ",".join(sorted(old.hosts & new.hosts)) or None,
        "what": what,
        "old_version": old.version,
        "new_version": new.version,
        "old_value": before,
        "new_value": after,
        "pairs": pairs,
        "old_busbw_gbps": old.busbw,
        "new_busbw_gbps": new.busbw,
        "slower": slower,
        "forced": ",".join(sorted(forced)) or None,
        "ref": new.ref,
        "refs": ",".join(str(ref) for ref in sorted({*known, *refs})),
    }
