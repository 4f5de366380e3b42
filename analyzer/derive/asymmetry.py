"""What is not the same on all hosts or ranks: versions, settings, network, links, and figures of the cards.

Settings count as ``not set`` on a process that printed other lines of NCCL at level INFO. Where all ranks of a host
agree, the host is the side that differs; else its ranks are.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from analyzer.evidence import Evidence

Row = dict[str, Any]

UNSET = "not set"
_FIGURES = {
    "temperature.gpu_current_temp": ("temperature", "GPU temperature", 15.0),
    "remapped_rows.uncorrectable_error": ("remap", "remapped rows, uncorrectable", 0.5),
    "remapped_rows.correctable_error": ("remap", "remapped rows, correctable", 3.5),
}
_OWN = frozenset(
    {"NCCL_SOCKET_IFNAME", "NCCL_DEBUG_FILE", "NCCL_HOSTID", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_TOPO_DUMP_FILE"}
    | {"NCCL_GRAPH_DUMP_FILE", "NCCL_COMM_ID", "NCCL_DEBUG_TIMESTAMP_FORMAT", "NCCL_WARN_ENABLE_DEBUG_INFO"}
)
"""Settings that may differ between hosts without harm by the difference itself."""


class Fact(NamedTuple):
    """One value as one host or rank had it."""

    host: str | None
    rank: int | None
    value: str
    ref: int | None


def derive_asymmetry(evidence: Evidence) -> None:
    """Fills ``asymmetry``."""
    hosts = _stream_hosts(evidence)
    rows = [
        *_versions(evidence, hosts),
        *_settings(evidence),
        *_networks(evidence),
        *_links(evidence),
        *_figures(evidence),
    ]
    evidence.set("asymmetry", rows)


def _stream_hosts(evidence: Evidence) -> dict[int, str]:
    """Streams whose lines all name one host."""
    found: dict[int, set[str]] = defaultdict(set)
    for table in (
        "communicator",
        "env_var",
        "channel",
        "nccl_message",
        "nccl_interface",
        "nccl_net",
        "version",
        "stream",
    ):
        if evidence.has(table):
            for host, stream in evidence[table][["host", "stream"]].drop_duplicates().dropna().itertuples(index=False):
                found[int(stream)].add(host)
    return {stream: names.pop() for stream, names in found.items() if len(names) == 1}


def _compare(what: str, kind: str, facts: list[Fact]) -> Iterator[Row]:
    """Rows of the sides that differ; the majority's side too where nobody has more than half."""
    by_host: dict[str | None, Counter[str]] = defaultdict(Counter)
    for fact in facts:
        by_host[fact.host][fact.value] += 1
    known = {host for host in by_host if host}
    sides: list[Fact]
    if len(known) > 1 and all(len(values) == 1 for host, values in by_host.items() if host):
        first: dict[str | None, Fact] = {}
        for fact in facts:
            first.setdefault(fact.host, fact)
        sides = [Fact(host, None, fact.value, fact.ref) for host, fact in first.items() if host]
    else:
        sides = list({(fact.host, fact.rank): fact for fact in facts}.values())
    counts = Counter(fact.value for fact in sides)
    if len(counts) < 2:
        return
    top = max(counts.values())
    most = min(value for value, count in counts.items() if count == top)
    clear = 2 * top > len(sides)
    for fact in sorted(sides, key=lambda one: (one.host or "", one.rank if one.rank is not None else -1)):
        if fact.value == most and clear:
            continue
        others = next((value for value, _ in counts.most_common() if value != fact.value), None)
        refs = [one.ref for one in facts if one.ref is not None and (one.host, one.value) != (fact.host, fact.value)][
            :8
        ]
        yield {
            "what": what,
            "kind": kind,
            "host": fact.host,
            "rank": fact.rank,
            "value": fact.value,
            "others": most if clear else others,
            "same": counts[fact.value],
            "total": len(sides),
            "minority": 2 * counts[fact.value] < len(sides),
            "ref": fact.ref,
            "refs": ",".join(str(ref) for ref in [*([fact.ref] if fact.ref is not None else []), *refs]) or None,
        }


def _versions(evidence: Evidence, hosts: dict[int, str]) -> Iterator[Row]:
    facts: dict[str, list[Fact]] = defaultdict(list)
    for row in evidence.rows("version"):
        host = row["host"] or hosts.get(row["stream"])
        if row["value"]:
            value = row["value"].split()[0].partition("+")[0] if row["component"] == "NCCL" else row["value"]
            facts[row["component"]].append(Fact(host, row["rank"], value, row["ref"]))
    for component, found in facts.items():
        yield from _compare(f"{component} version", "version", found)


def _settings(evidence: Evidence) -> Iterator[Row]:
    """Only processes whose own log shows that it was at level INFO can lack a setting."""
    processes: dict[tuple[str | None, int], int | None] = {}
    for table in ("communicator", "env_var", "nccl_interface", "nccl_net"):
        for row in evidence.rows(table):
            if row["pid"] is not None:
                processes.setdefault((row["host"], row["pid"]), row["rank"])
                if processes[(row["host"], row["pid"])] is None:
                    processes[(row["host"], row["pid"])] = row["rank"]
    values: dict[str, dict[tuple[str | None, int], Row]] = defaultdict(dict)
    for row in evidence.rows("env_var"):
        if row["pid"] is not None and row["name"] and row["name"] not in _OWN:
            values[row["name"]][(row["host"], row["pid"])] = row
    for name, found in sorted(values.items()):
        told = _first_of_host(found, processes)
        facts = [
            Fact(host, rank, str(own["value"]) if own else UNSET, own["ref"] if own else None)
            for (host, pid), rank in processes.items()
            if (own := found.get((host, pid)) or told.get(host)) is not None or host not in told
        ]
        yield from _compare(f"env {name}", "env", facts)


def _first_of_host(
    found: dict[tuple[str | None, int], Row], processes: dict[tuple[str | None, int], int | None]
) -> dict[str | None, Row]:
    """Where one process of a host alone prints its settings (the others are at a lower level), it speaks for all."""
    hosts: dict[str | None, list[Row]] = defaultdict(list)
    for (host, _), row in found.items():
        hosts[host].append(row)
    return {host: rows[0] for host, rows in hosts.items() if len({row["value"] for row in rows}) == 1 and host}


def _networks(evidence: Evidence) -> Iterator[Row]:
    nets = [
        Fact(row["host"], row["rank"], row["network"], row["ref"])
        for row in evidence.rows("nccl_net")
        if row["network"]
    ]
    yield from _compare("network", "network", nets)
    channels: dict[str, list[Fact]] = defaultdict(list)
    for row in evidence.rows("nccl_layout"):
        if row["what"] in ("coll_channels", "nvls_channels") and row["value"] is not None:
            channels[row["what"]].append(Fact(row["host"], row["rank"], str(row["value"]), row["ref"]))
    for what, facts in channels.items():
        yield from _compare(f"NCCL {what.replace('_', ' ')}", "channels", facts)
    gdr = [Fact(row["host"], row["rank"], str(row["enabled"]), row["ref"]) for row in _gdr(evidence)]
    yield from _compare("GPUDirect RDMA", "gdr", gdr)


def _gdr(evidence: Evidence) -> Iterator[Row]:
    for row in evidence.rows("nccl_gdr"):
        if row.get("enabled") is not None:
            yield row


def _links(evidence: Evidence) -> Iterator[Row]:
    """Active NVLinks per card."""
    counts: dict[tuple[str | None, int], list[Row]] = defaultdict(list)
    for row in evidence.rows("gpu_link"):
        if row["gpu"] is not None and row["active"]:
            counts[(row["host"], row["gpu"])].append(row)
    usual = Counter(len(rows) for rows in counts.values()).most_common(1)
    for (host, gpu), rows in sorted(counts.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        if usual and len(rows) != usual[0][0]:
            yield _figure(
                "active NVLinks of GPU " + str(gpu),
                "links",
                host,
                str(len(rows)),
                str(usual[0][0]),
                rows[0]["ref"],
                len(counts),
            )


def _figures(evidence: Evidence) -> Iterator[Row]:
    """Cards whose figure lies far above the median of all cards."""
    for field, (kind, what, margin) in _FIGURES.items():
        rows = [row for row in evidence.rows("gpu_health") if row["field"] == field and row["value"] is not None]
        if len(rows) < 3:
            continue
        middle = statistics.median(row["value"] for row in rows)
        for row in rows:
            if row["value"] > middle + margin:
                name = row["bus_id"] or f"GPU {row['gpu']}"
                yield _figure(
                    f"{what} of {name}", kind, row["host"], f"{row['value']:g}", f"{middle:g}", row["ref"], len(rows)
                )


def _figure(what: str, kind: str, host: str | None, value: str, others: str, ref: int, total: int) -> Row:
    return {
        "what": what,
        "kind": kind,
        "host": host,
        "value": value,
        "others": others,
        "same": 1,
        "total": total,
        "minority": True,
        "ref": ref,
        "refs": str(ref),
    }
