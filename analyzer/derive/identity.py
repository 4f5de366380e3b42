"""Who is who: one process has a rank, a GPU and often a stream of its own; one GPU has an index and a bus id.

The join runs over NCCL's init lines (host, pid, rank, nvmlDev, busId), the launcher's summaries (rank, pid) and
the cards that tools list. Where one stream holds lines of one process only, all its lines are of that process.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from analyzer.evidence import Evidence
from analyzer.schema import RAW

Row = dict[str, Any]
Key = tuple[str | None, int]


@dataclass(slots=True)
class Process:
    """What is known of one process."""

    host: str | None
    pid: int
    rank: int | None = None
    local_rank: int | None = None
    gpu: int | None = None
    bus_id: str | None = None
    nranks: int = 0
    ref: int | None = None
    streams: Counter[int] = field(default_factory=Counter)


def derive_identity(evidence: Evidence) -> None:
    """Fills host and rank of all raw tables where the join knows them, and the tables ``process`` and ``gpu``."""
    processes = _from_nccl(evidence)
    _one_host(evidence, processes)
    evidence.edited()
    owners = _stream_owners(evidence, processes)
    _from_exits(evidence, processes, owners)
    _fill(evidence, processes, owners)
    evidence.edited()
    _live_counts = _count_communicators(evidence)
    evidence.set(
        "process",
        (
            {
                "host": p.host,
                "pid": p.pid,
                "rank": p.rank,
                "local_rank": p.local_rank,
                "gpu": p.gpu,
                "bus_id": p.bus_id,
                "stream": next((s for s, owner in owners.items() if owner is p), None),
                "nranks": p.nranks or None,
                "communicators": _live_counts.get((p.host, p.pid), 0),
                "ref": p.ref,
            }
            for p in sorted(
                processes.values(), key=lambda p: (p.host or "", p.rank if p.rank is not None else -1, p.pid)
            )
        ),
    )
    evidence.set("gpu", _gpus(evidence))


def short_host(host: str | None) -> str | None:
    """A host name up to its first dot; an address stays whole."""
    if not host or host.replace(".", "").isdigit():
        return host
    return host.split(".")[0]


def _from_nccl(evidence: Evidence) -> dict[Key, Process]:
    processes: dict[Key, Process] = {}
    for row in evidence.rows("communicator"):
        key = (row["host"], row["pid"])
        process = processes.get(key)
        if process is None:
            process = processes[key] = Process(row["host"], row["pid"])
        process.streams[row["stream"]] += 1
        if row["nranks"] > process.nranks or process.ref is None:
            process.nranks, process.rank, process.ref = row["nranks"], row["comm_rank"], row["ref"]
            process.gpu = row["nvml_dev"] if row["nvml_dev"] is not None else row["cuda_dev"]
            process.bus_id = row["bus_id"]
    for table in ("comm_alloc", "env_var", "channel", "nccl_message"):
        if evidence.has(table):
            pairs = evidence[table][["host", "pid", "stream"]].drop_duplicates()
            for host, pid, stream in pairs.dropna().itertuples(index=False):
                key = (host, int(pid))
                process = processes.setdefault(key, Process(host, int(pid)))
                process.streams[int(stream)] += 1
    return processes


def _one_host(evidence: Evidence, processes: dict[Key, Process]) -> None:
    """Where the whole evidence names one host only, every line is of that host."""
    hosts: set[str] = {p.host for p in processes.values() if p.host}
    for table in RAW:
        if evidence.has(table.name):
            frame = evidence[table.name]
            short = frame["host"].dropna().map(short_host)
            frame["host"] = short.reindex(frame.index).astype(object).where(short.reindex(frame.index).notna(), None)
            hosts |= set(short)
    if len(hosts) == 1:
        host = hosts.pop()
        for table in RAW:
            if evidence.has(table.name):
                evidence[table.name]["host"] = evidence[table.name]["host"].where(
                    evidence[table.name]["host"].notna(), host
                )


def _stream_owners(evidence: Evidence, processes: dict[Key, Process]) -> dict[int, Process]:
    """Streams whose NCCL lines all come from one process.

    A file in which one process alone logged is that process's, also where other lines in it bear a label: torchrun
    marks what a rank prints itself, NCCL's lines stay bare.
    """
    writers: dict[int, list[Process]] = defaultdict(list)
    for process in processes.values():
        for stream in process.streams:
            writers[stream].append(process)
    owners = {stream: found[0] for stream, found in sorted(writers.items()) if len(found) == 1}
    files: dict[int, list[Process]] = defaultdict(list)
    rows = evidence.rows("stream")
    for row in rows:
        files[row["input"]] += [p for p in writers.get(row["stream"], []) if p not in files[row["input"]]]
    for row in rows:
        found = files[row["input"]]
        if row["stream"] not in writers and len(found) == 1 and row["label_rank"] in (None, found[0].rank):
            owners[row["stream"]] = found[0]
    return owners


def _from_exits(evidence: Evidence, processes: dict[Key, Process], owners: dict[int, Process]) -> None:
    by_pid: dict[int, list[Process]] = defaultdict(list)
    for process in processes.values():
        by_pid[process.pid].append(process)
    for row in evidence.rows("exit_status"):
        if row["pid"] is None or (row["rank"] is None and row["local_rank"] is None):
            continue
        known = [p for p in by_pid[row["pid"]] if row["host"] is None or p.host in (None, row["host"])]
        if not known:
            process = processes[(row["host"], row["pid"])] = Process(row["host"], row["pid"], ref=row["ref"])
            by_pid[row["pid"]].append(process)
            known = [process]
        for process in known[:1]:
            process.rank = row["rank"] if process.rank is None else process.rank
            process.local_rank = row["local_rank"] if process.local_rank is None else process.local_rank


def _fill(evidence: Evidence, processes: dict[Key, Process], owners: dict[int, Process]) -> None:
    ranks: dict[int, int] = {}
    hosts: dict[int, str] = {}
    for row in evidence.rows("stream"):
        owner = owners.get(row["stream"])
        for rank in (owner.rank if owner else None, row["label_rank"], row["name_rank"]):
            if rank is not None:
                ranks.setdefault(row["stream"], rank)
        if owner and owner.host:
            hosts[row["stream"]] = owner.host
    by_pid = {p.pid: p.rank for p in processes.values() if p.rank is not None}
    for table in RAW:
        if not evidence.has(table.name) or table.name == "stream":
            continue
        frame = evidence[table.name]
        if table.name not in ("xid", "kernel_event", "gpu_process", "os_process", "exit_status"):
            frame["rank"] = frame["rank"].fillna(frame["stream"].map(ranks).astype("Int64"))
        if "pid" in table.names:
            frame["rank"] = frame["rank"].fillna(frame["pid"].map(by_pid).astype("Int64"))
        frame["host"] = frame["host"].where(frame["host"].notna(), frame["stream"].map(hosts))
        frame["host"] = frame["host"].astype(object).where(frame["host"].notna(), None)


def _count_communicators(evidence: Evidence) -> dict[Key, int]:
    """Communicators that each process had at the same time, at most."""
    live: dict[Key, set[str]] = defaultdict(set)
    most: dict[Key, int] = {}
    for row in sorted(evidence.rows("communicator"), key=lambda r: r["ref"]):
        key = (row["host"], row["pid"])
        if row["state"] == "complete":
            live[key].add(row["handle"])
            most[key] = max(most.get(key, 0), len(live[key]))
        elif row["state"] in ("destroy", "abort"):
            live[key].discard(row["handle"])
    return most


def _gpus(evidence: Evidence) -> list[Row]:
    """One row per card, joined by bus id where there is one, else by index."""
    cards: dict[tuple[str | None, str], Row] = {}
    for table in ("gpu_device", "pair_device", "bench_device", "communicator"):
        for row in evidence.rows(table):
            gpu = row.get("gpu") if table != "communicator" else row["nvml_dev"]
            bus = row["bus_id"]
            if bus is None and gpu is None:
                continue
            card = cards.setdefault(
                (row["host"], bus or f"#{gpu}"), {"host": row["host"], "bus_id": bus, "ref": row["ref"]}
            )
            if table == "gpu_device" or card.get("gpu") is None:
                card["gpu"] = gpu if gpu is not None else card.get("gpu")
            for name in ("uuid", "name", "total_bytes", "reserved_bytes"):
                if card.get(name) is None and row.get(name) is not None:
                    card[name] = row[name]
                    card["ref"] = row["ref"] if table == "gpu_device" else card["ref"]
    for (host, key), card in list(cards.items()):
        if key.startswith("#") and any(
            c["host"] == host and c.get("gpu") == card.get("gpu") and c["bus_id"] for c in cards.values()
        ):
            del cards[(host, key)]
    for card in cards.values():
        total, reserved = card.get("total_bytes"), card.get("reserved_bytes")
        card["capacity_bytes"] = total - reserved if total is not None and reserved is not None else None
    return sorted(
        cards.values(),
        key=lambda c: (c["host"] or "", c["gpu"] if c.get("gpu") is not None else 999, c["bus_id"] or ""),
    )
