"""Signs that direct traffic between cards goes wrong: what access control and the IOMMU do to it.

A copy between two cards should never be slower with peer access than without it, nor take a millisecond, nor change
the data, nor hang while the same program works between cards that have no direct path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from analyzer.derive.pair_bench import chosen_pair, commands
from analyzer.evidence import Evidence

Row = dict[str, Any]

_BROKEN_US = 1000.0
_SLOWER = 0.5
_RDMA_STATUS = ("error 4,", "error 12,", "error 4 ", "error 12 ", "status=4", "status=12", "status 4", "status 12")


def derive_peer_trouble(evidence: Evidence) -> None:
    """Fills ``peer_trouble``."""
    rows = [*_measured(evidence), *_wrong(evidence), *_hung_runs(evidence), *_hung_jobs(evidence), *_rdma(evidence)]
    evidence.set("peer_trouble", rows)


def _row(host: str | None, kind: str, what: str, sources: Iterable[Row], **more: object) -> Row:
    found = list(sources)
    refs = sorted({int(ref) for row in found for ref in str(row.get("refs") or row["ref"]).split(",")})
    ranks = sorted({row["rank"] for row in found if row.get("rank") is not None})
    times = [row["at"] for row in found if row.get("at") is not None]
    return {
        "host": host,
        "kind": kind,
        "what": what,
        "rank": ",".join(map(str, ranks)) or None,
        "at": min(times) if times else None,
        "ref": refs[0],
        "refs": ",".join(map(str, refs[:12])),
    } | more


def _measured(evidence: Evidence) -> Iterable[Row]:
    """Pairs over PCIe that are slow only with peer access, per host and kind."""
    found: dict[tuple[str | None, str], list[Row]] = defaultdict(list)
    for edge in evidence.rows("edge"):
        if edge["connected"] is False or edge["nvlinks"]:
            continue
        on, off = edge["bandwidth_gbps"], edge["off_bandwidth_gbps"]
        if (edge["latency_us"] or 0.0) >= _BROKEN_US:
            found[(edge["host"], "latency")].append(edge)
        elif on is not None and off is not None and on <= _SLOWER * off:
            found[(edge["host"], "slower")].append(edge)
    for (host, kind), edges in found.items():
        links = ",".join(f"GPU{edge['a']}-GPU{edge['b']}" for edge in edges)
        worst = max(edges, key=lambda e: (e["latency_us"] or 0.0, -(e["bandwidth_gbps"] or 0.0)))
        yield _row(host, kind, _figures(worst), edges, link=links)


def _figures(edge: Row) -> str:
    pair = f"GPU{edge['a']}-GPU{edge['b']} with peer access"
    parts = []
    if edge["bandwidth_gbps"] is not None:
        off = edge["off_bandwidth_gbps"]
        against = f" against {off:.2f} GB/s without it" if off is not None else ""
        parts.append(f"carries {edge['bandwidth_gbps']:.2f} GB/s{against}")
    if edge["latency_us"] is not None:
        off = edge["off_latency_us"]
        against = f" against {off:.1f}" if off is not None else ""
        parts.append(f"takes {edge['latency_us']:.1f} us{against}")
    return f"{pair} {' and '.join(parts)}"


def _wrong(evidence: Evidence) -> Iterable[Row]:
    """Wrong elements in a benchmark whose cards talk directly, and copies that a test found changed."""
    direct = {row["stream"] for row in evidence.rows("channel") if _is_p2p(row)}
    for row in evidence.rows("bench_row"):
        if row["wrong"] and row["stream"] in direct:
            yield _row(
                row["host"], "wrong", f"nccl-tests counted {row['wrong']} wrong elements over P2P channels", [row]
            )
    failed = [row for row in evidence.rows("data_check") if not row["ok"]]
    if failed:
        pairs = sorted({f"GPU{min(r['a'], r['b'])}-GPU{max(r['a'], r['b'])}" for r in failed if r["a"] is not None})
        what = f"{failed[0]['tool']} found the data changed after a direct copy"
        yield _row(failed[0]["host"], "wrong", what, failed, link=",".join(pairs) or None)


def _is_p2p(channel: Row) -> bool:
    return (channel["transport"] or "").startswith("P2P")


def _hung_runs(evidence: Evidence) -> Iterable[Row]:
    """Runs of nccl-tests over P2P channels without one row of results, in a log where another run has some."""
    done: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("bench_row"):
        done[row["stream"]].append(row)
    runs = _runs(evidence)
    for stream, spans in commands(evidence).items():
        for start, end, command in spans:
            inside = [row for row in runs.get(stream, []) if start < row["ref"] < end]
            if done.get(stream) and inside and not any(start < row["ref"] < end for row in done[stream]):
                what = "a run of nccl-tests over P2P channels set up its communicator and printed no result"
                pair = chosen_pair(command)
                link = f"GPU{pair[0]}-GPU{pair[1]}" if pair else None
                yield _row(inside[0]["host"], "hang", what, [command, inside[0]], link=link, rank=None)


def _runs(evidence: Evidence) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("channel"):
        if _is_p2p(row):
            found[row["stream"]].append(row)
    return found


def _hung_jobs(evidence: Evidence) -> Iterable[Row]:
    """Jobs whose very first collective over P2P channels never ended."""
    hosts = {row["host"] for row in evidence.rows("channel") if _is_p2p(row)}
    found: dict[str | None, list[Row]] = defaultdict(list)
    for row in evidence.rows("collective_timeout"):
        first = row["seq"] is not None and row["seq"] <= 1 and (row["last_completed"] or 0) <= 0
        if first and (row["host"] in hosts or (row["host"] is None and len(hosts) == 1)):
            found[row["host"] or next(iter(hosts))].append(row)
    for host, rows in found.items():
        yield _row(host, "hang", "the first collective over P2P channels never ended", rows)


def _rdma(evidence: Evidence) -> Iterable[Row]:
    """Completions with status 4 or 12 on hosts whose channels use GPUDirect RDMA."""
    direct = {row["host"] for row in evidence.rows("channel") if "GDRDMA" in (row["transport"] or "")}
    found: dict[str | None, list[Row]] = defaultdict(list)
    for row in evidence.rows("nccl_message"):
        if row["kind"] == "ib_completion" and row["host"] in direct and any(s in row["text"] for s in _RDMA_STATUS):
            found[row["host"]].append(row)
    for host, rows in found.items():
        yield _row(host, "rdma", f'GPUDirect RDMA transfers failed: "{rows[0]["text"][:120]}"', rows)
