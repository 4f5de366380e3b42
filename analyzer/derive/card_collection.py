"""Finds the cards that the evidence speaks of and gathers their figures."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from analyzer.derive.cards import Amount, Card
from analyzer.evidence import Evidence

Row = dict[str, Any]


def collect_cards(evidence: Evidence) -> list[Card]:
    """One card per GPU that a tool lists or a process of the job uses, by host and index."""
    cards = _listed_cards(evidence)
    processes = evidence.rows("process")
    finder = _Finder(cards, processes)
    for process in processes:
        if process["gpu"] is not None or process["bus_id"]:
            card = finder.of_process(process)
            card.pids.add(process["pid"])
            card.rank = process["rank"] if card.rank is None else card.rank
    _add_events(evidence, finder)
    _add_steps(evidence, finder)
    _add_pools(evidence, finder)
    _add_tools(evidence, finder)
    _add_comm(evidence, finder)
    return sorted(cards, key=lambda c: (c.host or "", c.gpu if c.gpu is not None else 999, c.bus_id or ""))


def _listed_cards(evidence: Evidence) -> list[Card]:
    cards = []
    for row in evidence.rows("gpu"):
        card = Card(row["host"], row["gpu"], row["bus_id"], row["name"])
        card.total_bytes, card.reserved_bytes, card.device_ref = row["total_bytes"], row["reserved_bytes"], row["ref"]
        cards.append(card)
    return cards


class _Finder:
    """Finds the card of a process, a stream or a device index; makes one that no tool listed."""

    def __init__(self, cards: list[Card], processes: list[Row]) -> None:
        self.cards = cards
        hosts = {row.host for row in cards if row.host} | {row["host"] for row in processes if row["host"]}
        self._one_host = len(hosts) < 2  # of several hosts a line without one could be any's
        self._by_stream = {p["stream"]: p for p in processes if p["stream"] is not None}
        self._by_rank: dict[int, list[Row]] = defaultdict(list)
        for process in processes:
            if process["rank"] is not None:
                self._by_rank[process["rank"]].append(process)

    def of_process(self, process: Row) -> Card:
        return self.find(process["host"], process["gpu"], process["bus_id"])

    def find(self, host: str | None, gpu: int | None, bus_id: str | None = None) -> Card:
        near = [c for c in self.cards if c.host == host or (self._one_host and None in (host, c.host))]
        for card in near:
            if bus_id and card.bus_id == bus_id:
                return card
        for card in near:
            if gpu is not None and card.gpu == gpu and (not bus_id or card.bus_id is None):
                card.bus_id = card.bus_id or bus_id
                return card
        made = Card(host, gpu, bus_id)
        self.cards.append(made)
        return made

    def process_of(self, row: Row) -> Row | None:
        """The process that wrote a row: by its stream, else by its rank."""
        process = self._by_stream.get(row["stream"])
        if process is None and row["rank"] is not None and len(self._by_rank[row["rank"]]) == 1:
            process = self._by_rank[row["rank"]][0]
        return process

    def of_row(self, row: Row, gpu: int | None) -> Card | None:
        """The card a row of the job speaks of; None where nothing tells."""
        process = self.process_of(row)
        if process is not None and (process["gpu"] is not None or process["bus_id"]):
            return self.of_process(process)
        if gpu is not None:
            return self.find(row["host"], gpu)
        known = [c for c in self.cards if c.total_bytes is not None]
        return known[0] if len(known) == 1 else None


def _add_events(evidence: Evidence, finder: _Finder) -> None:
    holders: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("oom_holder"):
        holders[row["event_ref"]].append(row)
    for row in sorted(evidence.rows("oom_event"), key=lambda r: (-_known(r), r["ref"])):
        card = finder.of_row(row, row["gpu"])
        if card is None or card.event is not None:
            continue
        card.event, card.holders = _own_apart(row, holders[row["ref"]])
        card.rank = row["rank"] if card.rank is None else card.rank


def _own_apart(event: Row, holders: list[Row]) -> tuple[Row, list[Row]]:
    """A container hides which listed process is the own one: it is the one that the card has no second room for."""
    reserved = event["reserved_bytes"] or event["allocated_bytes"]
    if event["own_bytes"] is not None or not holders or not reserved or event["capacity_bytes"] is None:
        return event, holders
    room = event["capacity_bytes"] - (event["free_bytes"] or 0)
    own = max(holders, key=lambda r: (r["used_bytes"] or 0, -r["pid"]))
    used = own["used_bytes"] or 0
    if used < reserved or room - used >= reserved:
        return event, holders
    return {**event, "own_bytes": used, "own_pid": own["pid"]}, [r for r in holders if r is not own]


def _known(event: Row) -> int:
    """How many of the figures that the ledger needs an error text prints: a cut text has fewer."""
    names = ("requested_bytes", "capacity_bytes", "free_bytes", "allocated_bytes", "unallocated_bytes", "own_bytes")
    return sum(event[name] is not None for name in names)


def _add_steps(evidence: Evidence, finder: _Finder) -> None:
    """The last figures that the program printed before the failure, per card."""
    with_process: set[int] = set()
    for row in sorted(evidence.rows("memory_step"), key=lambda r: r["ref"]):
        process = finder.process_of(row)
        card = finder.of_row(row, None)
        if card is None or row["allocated_bytes"] is None:
            continue
        if card.event is not None and card.event["stream"] == row["stream"] and row["ref"] > card.event["ref"]:
            continue
        if process is None and id(card) in with_process:
            continue
        if process is not None:
            with_process.add(id(card))
        card.step = row
    for row in evidence.rows("memory_summary"):
        if row["pool"] == "all":
            card = finder.of_row(row, row["gpu"])
            if card is not None:
                card.summary[row["metric"]] = row


def _add_pools(evidence: Evidence, finder: _Finder) -> None:
    """What a framework took of a card when it started."""
    for row in evidence.rows("allocator_stat"):
        if row["metric"] == "pool" and row["bytes"] is not None:
            card = finder.find(row["host"], row["gpu"], row["bus_id"])
            if card.pool is None or row["bytes"] > card.pool["bytes"]:
                card.pool = row


def _add_tools(evidence: Evidence, finder: _Finder) -> None:
    """Use and processes as the tools saw them: of several snapshots the one nearest to the failure."""
    snapshots: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("gpu_memory"):
        snapshots[id(finder.find(row["host"], row["gpu"], row["bus_id"]))].append(row)
    processes: dict[int, list[Row]] = defaultdict(list)
    for row in evidence.rows("gpu_process"):
        processes[id(finder.find(row["host"], row["gpu"], row["bus_id"]))].append(row)
    for card in finder.cards:
        rows = [r for r in snapshots[id(card)] if r["used_bytes"] is not None]
        if not rows:
            continue
        card.memory = min(rows, key=lambda r: _distance(r, card.event))
        at, tool = card.memory["at"], card.memory["tool"]
        near = [r for r in processes[id(card)] if r["at"] == at and (r["tool"] == tool or tool is None)]
        card.tool_processes = list({r["pid"]: r for r in near}.values())


def _distance(memory: Row, event: Row | None) -> tuple[float, int, int]:
    if event is not None and event["at"] is not None and memory["at"] is not None:
        return (abs(event["at"] - memory["at"]), 0, memory["ref"])
    return (0.0, -memory["used_bytes"], memory["ref"])


def _add_comm(evidence: Evidence, finder: _Finder) -> None:
    rows = {(r["host"], r["pid"]): r for r in evidence.rows("comm_memory")}
    for process in evidence.rows("process"):
        if process["gpu"] is None and not process["bus_id"]:
            continue
        card = finder.of_process(process)
        card.communicators += process["communicators"] or 0
        row = rows.get((process["host"], process["pid"]))
        if row is not None:
            refs = tuple(int(ref) for ref in row["refs"].split(",") if ref)
            before = card.comm or Amount(0, 0, row["origin"], ())
            card.comm = Amount(
                before.value + row["bytes"], before.error + row["error_bytes"], row["origin"], before.refs + refs
            )
    nccl = evidence.has("communicator") or evidence.has("nccl_net")
    for card in finder.cards:
        if card.comm is None and not nccl and (card.event is not None or card.step is not None):
            card.comm = Amount(0, 0, "computed", ())
