"""Runs of nccl-tests on two cards each, as people make them to find a slow pair: which run was on which pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_FAR = 1 << 30


def commands(evidence: Evidence) -> dict[int, list[tuple[int, int, Row]]]:
    """The commands of each stream with the lines that they reach to; with CUDA_VISIBLE_DEVICES where they set it."""
    found: dict[int, dict[int, Row]] = defaultdict(dict)
    for row in evidence.rows("env_var"):
        if row["source"] == "command":
            known = found[row["stream"]].get(row["ref"])
            if known is None or row["name"] == "CUDA_VISIBLE_DEVICES":
                found[row["stream"]][row["ref"]] = row
    spans: dict[int, list[tuple[int, int, Row]]] = {}
    for stream, rows in found.items():
        refs = sorted(rows)
        spans[stream] = [
            (ref, following, rows[ref]) for ref, following in zip(refs, [*refs[1:], refs[-1] + _FAR], strict=True)
        ]
    return spans


def chosen_pair(command: Row) -> tuple[int, int] | None:
    """The two cards that a command was given."""
    words = (command["value"] or "").split(",")
    if command["name"] != "CUDA_VISIBLE_DEVICES" or len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    a, b = sorted(int(word) for word in words)
    return a, b


def pair_benches(evidence: Evidence) -> Iterator[tuple[tuple[str | None, int, int], float, int]]:
    """Pair, best bus bandwidth and its line, one for each run with results."""
    results: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("bench_row"):
        if row["busbw_gbps"]:
            results[row["stream"]].append(row)
    for stream, spans in commands(evidence).items():
        for start, end, command in spans:
            pair = chosen_pair(command)
            inside = [row for row in results.get(stream, []) if start < row["ref"] < end]
            if pair is not None and inside:
                best = max(inside, key=lambda row: row["busbw_gbps"])
                yield (best["host"], *pair), best["busbw_gbps"], best["ref"]
