"""Pairs of GPUs with path and measured figures, and what the rings of NCCL run over.

A path label alone proves nothing: each pair is compared with the other measured pairs of its own path class.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

from analyzer.derive.pair_bench import pair_benches
from analyzer.derive.rings import RingEdge, ring_edges
from analyzer.evidence import Evidence

Row = dict[str, Any]
Pair = tuple[str | None, int, int]

_LATENCY = "latency_us"
_BANDWIDTH = "unidirectional_gbps"


def derive_links(evidence: Evidence) -> None:
    """Fills ``edge`` and ``ring_path``."""
    pairs = _pairs(evidence)
    edges = [edge for edge in ring_edges(evidence) if edge.src_gpu is not None and edge.dst_gpu is not None]
    _add_rings(pairs, edges)
    rows = [pairs[key] for key in sorted(pairs, key=lambda k: (k[0] or "", k[1], k[2]))]
    _add_classes(rows)
    evidence.set("edge", rows)
    evidence.set("ring_path", _ring_paths(pairs, edges))


def _pairs(evidence: Evidence) -> dict[Pair, Row]:
    pairs: dict[Pair, Row] = {}

    def pair(host: str | None, a: int, b: int) -> Row:
        key = (host, min(a, b), max(a, b))
        return pairs.setdefault(key, {"host": host, "a": key[1], "b": key[2], "ref_list": []})

    for row in evidence.rows("topo_link"):
        if row["a"].startswith("GPU") and row["b"].startswith("GPU") and row["path"] != "X":
            a, b = int(row["a"][3:]), int(row["b"][3:])
            found = pair(row["host"], a, b)
            found["path"], found["nvlinks"] = row["path"], row["nvlinks"]
            found["ref_list"].append(row["ref"])
    figures: dict[Pair, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in evidence.rows("pair_measure"):
        if row["a"] != row["b"] and row["p2p"] and row["metric"] in (_LATENCY, _BANDWIDTH) and row["value"]:
            found = pair(row["host"], row["a"], row["b"])
            found["ref_list"].append(row["ref"])
            figures[(row["host"], found["a"], found["b"])][row["metric"]].append(row["value"])
    _add_without_peer_access(evidence, pairs)
    for (host, a, b), busbw, ref in pair_benches(evidence):
        found = pair(host, a, b)
        found["bench_gbps"] = max(busbw, found.get("bench_gbps") or 0.0)
        found["ref_list"].append(ref)
    for key, found in figures.items():
        for metric, name in ((_LATENCY, "latency_us"), (_BANDWIDTH, "bandwidth_gbps")):
            if found[metric]:
                pairs[key][name] = round(sum(found[metric]) / len(found[metric]), 3)
    _add_nvlinks(evidence, pairs)
    for row in pairs.values():
        refs = sorted(set(row.pop("ref_list")))
        row["ref"] = refs[0] if refs else None
        row["refs"] = ",".join(map(str, refs[:12]))
    return pairs


def _add_without_peer_access(evidence: Evidence, pairs: dict[Pair, Row]) -> None:
    """Whether the cards of a pair reach each other directly, and its figures with peer access switched off."""
    figures: dict[tuple[Pair, str], list[float]] = defaultdict(list)
    for row in evidence.rows("pair_measure"):
        key = (row["host"], min(row["a"], row["b"]), max(row["a"], row["b"]))
        if key not in pairs:
            continue
        if row["metric"] == "connectivity":
            pairs[key]["connected"] = pairs[key].get("connected", True) and row["value"] > 0
        elif row["p2p"] is not None and not row["p2p"] and row["metric"] in (_LATENCY, _BANDWIDTH) and row["value"]:
            figures[(key, row["metric"])].append(row["value"])
    for (key, metric), values in figures.items():
        name = "off_latency_us" if metric == _LATENCY else "off_bandwidth_gbps"
        pairs[key][name] = round(sum(values) / len(values), 3)


def _add_nvlinks(evidence: Evidence, pairs: dict[Pair, Row]) -> None:
    inactive: dict[tuple[str | None, int], int] = defaultdict(int)
    listed: dict[tuple[str | None, int], list[int]] = defaultdict(list)
    for row in evidence.rows("gpu_link"):
        key = (row["host"], row["gpu"])
        inactive[key] += row["active"] is False or row["active"] == 0
        if not row["active"]:
            listed[key].append(row["ref"])
    for (host, a, b), pair in pairs.items():
        for name, gpu in (("inactive_links_a", a), ("inactive_links_b", b)):
            if (host, gpu) in inactive:
                pair[name] = inactive[(host, gpu)]
        if pair.get("inactive_links_a") and pair.get("inactive_links_b"):
            pair["ref_list"] += listed[(host, a)][:1] + listed[(host, b)][:1]


def _add_rings(pairs: dict[Pair, Row], edges: list[RingEdge]) -> None:
    used: dict[Pair, list[RingEdge]] = defaultdict(list)
    for edge in edges:
        assert edge.src_gpu is not None and edge.dst_gpu is not None
        if edge.host_a == edge.host_b:
            used[(edge.host_a, min(edge.src_gpu, edge.dst_gpu), max(edge.src_gpu, edge.dst_gpu))].append(edge)
    hosts = {key[0] for key in used}
    for key, pair in pairs.items():
        if key[0] in hosts:
            found = used.get(key, [])
            pair["ring_channels"] = sum(edge.channels for edge in found)
            pair["transport"] = max(found, key=lambda e: e.channels).transport if found else None


def _add_classes(rows: list[Row]) -> None:
    by_host: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        by_host[row["host"]].append(row)
    for found in by_host.values():
        classes: dict[object, list[Row]] = defaultdict(list)
        for row in found:
            if row.get("latency_us") is not None or row.get("bandwidth_gbps") is not None:
                classes[_class(row)].append(row)
        best = _best(classes)
        for row in found:
            same = [r for r in classes.get(_class(row), []) if r is not row]
            row["class_size"] = len(same)
            row["class_latency_us"] = _median(same, "latency_us")
            row["class_bandwidth_gbps"] = _median(same, "bandwidth_gbps")
            row["best_latency_us"], row["best_bandwidth_gbps"] = best
            row["pairs"] = len(found)
            row["nvlink_pairs"] = sum(1 for r in found if r.get("nvlinks"))


def _class(row: Row) -> object:
    """Pairs of one class should be alike: the same path, and both with or both without direct access."""
    return row.get("path"), row.get("connected") is not False


def _median(rows: list[Row], name: str) -> float | None:
    values = [row[name] for row in rows if row.get(name) is not None]
    return round(median(values), 3) if values else None


def _best(classes: dict[object, list[Row]]) -> tuple[float | None, float | None]:
    """Medians of the path class with the highest bandwidth (lowest latency where no bandwidth was measured)."""
    found = [(_median(rows, "latency_us"), _median(rows, "bandwidth_gbps")) for rows in classes.values()]
    if not found:
        return None, None
    return max(found, key=lambda figures: (figures[1] or 0.0, -(figures[0] or 0.0)))


def _ring_paths(pairs: dict[Pair, Row], edges: list[RingEdge]) -> list[Row]:
    rows: list[Row] = []
    for edge in edges:
        assert edge.src_gpu is not None and edge.dst_gpu is not None
        pair: Row = {}
        if edge.host_a == edge.host_b:
            pair = pairs.get((edge.host_a, min(edge.src_gpu, edge.dst_gpu), max(edge.src_gpu, edge.dst_gpu)), {})
        rows.append(
            {
                "host": edge.host_a,
                "comm_id": edge.comm_id,
                "a": edge.src_gpu,
                "b": edge.dst_gpu,
                "src": edge.src,
                "dst": edge.dst,
                "transport": edge.transport,
                "channels": edge.channels,
                "latency_us": pair.get("latency_us"),
                "bandwidth_gbps": pair.get("bandwidth_gbps"),
                "path": pair.get("path"),
                "ref": edge.ref,
                "refs": ",".join(r for r in (str(edge.ref), pair.get("refs", "")) if r),
            }
        )
    for row in rows:
        others = [r for r in rows if r["comm_id"] == row["comm_id"] and {r["a"], r["b"]} != {row["a"], row["b"]}]
        row["others_bandwidth_gbps"] = _median(others, "bandwidth_gbps")
        row["others_latency_us"] = _median(others, "latency_us")
        names = [r["transport"] for r in others if r["transport"]]
        row["others_transport"] = max(sorted(set(names)), key=names.count) if names else None
    return rows
