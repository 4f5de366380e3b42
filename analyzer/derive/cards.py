"""All that the evidence says of the memory of one card: figures of the framework, the driver and the tools."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analyzer.evidence import Evidence

Row = dict[str, Any]

_HALF_MIB = 1 << 19


class Amount(NamedTuple):
    """A size in bytes: value, half width, origin (read, computed, estimated) and the lines it rests on."""

    value: int
    error: int
    origin: str
    refs: tuple[int, ...]


@dataclass(slots=True)
class Card:
    """The figures of one card, gathered but not yet judged."""

    host: str | None
    gpu: int | None
    bus_id: str | None = None
    name: str | None = None
    rank: int | None = None
    total_bytes: int | None = None
    reserved_bytes: int | None = None
    device_ref: int | None = None
    pids: set[int] = field(default_factory=set)
    event: Row | None = None
    memory: Row | None = None
    step: Row | None = None
    summary: dict[str, Row] = field(default_factory=dict)
    holders: list[Row] = field(default_factory=list)
    tool_processes: list[Row] = field(default_factory=list)
    comm: Amount | None = None
    communicators: int = 0

    def capacity(self) -> Amount | None:
        """What CUDA can hand out: total minus the driver's reserve, or the capacity of an error text."""
        if self.total_bytes is not None and self.reserved_bytes is not None and self.device_ref is not None:
            return Amount(self.total_bytes - self.reserved_bytes, 2 * _HALF_MIB, "computed", (self.device_ref,))
        if self.event is not None and self.event["capacity_bytes"] is not None:
            return Amount(self.event["capacity_bytes"], self.event["error_bytes"] or 0, "read", (self.event["ref"],))
        if self.memory is not None and self.memory["used_bytes"] is not None and self.memory["free_bytes"] is not None:
            return Amount(
                self.memory["used_bytes"] + self.memory["free_bytes"], 2 * _HALF_MIB, "computed", (self.memory["ref"],)
            )
        return None

    def free(self) -> Amount | None:
        """Free memory when it failed, else when the tool looked."""
        if self.event is not None and self.event["free_bytes"] is not None:
            return Amount(
                self.event["free_bytes"], _event_error(self.event, "free_bytes"), "read", (self.event["ref"],)
            )
        if self.memory is not None and self.memory["free_bytes"] is not None:
            return Amount(self.memory["free_bytes"], _HALF_MIB, "read", (self.memory["ref"],))
        return None

    def own(self) -> Amount | None:
        """Memory of the job's process, outside parts included; the finer of the two figures where they agree."""
        tool = [row for row in self.tool_processes if row["pid"] in self.pids and row["used_bytes"] is not None]
        if not tool and len(self.tool_processes) == 1 and self.tool_processes[0]["used_bytes"] is not None:
            tool = self.tool_processes if not self.pids else []
        seen = None
        if tool:
            seen = Amount(
                sum(r["used_bytes"] for r in tool), _HALF_MIB * len(tool), "read", tuple(r["ref"] for r in tool)
            )
        if self.event is None or self.event["own_bytes"] is None:
            return seen
        told = Amount(self.event["own_bytes"], _event_error(self.event, "own_bytes"), "read", (self.event["ref"],))
        if seen and abs(seen.value - told.value) <= told.error + seen.error and seen.error < told.error:
            return seen._replace(refs=(*told.refs, *seen.refs))
        return told

    def other(self, capacity: int) -> Amount | None:
        """Memory of other processes: as the error text or the tool lists them, else what is left over."""
        rows = self.foreign()
        if rows:
            return Amount(
                sum(r["used_bytes"] for r in rows),
                sum(r["error_bytes"] or 0 for r in rows),
                "read",
                tuple(r["ref"] for r in rows),
            )
        own, free = self.own(), self.free()
        if own is None or free is None:
            return None
        left = capacity - own.value - free.value
        error = max(own.error + free.error + 4 * _HALF_MIB, capacity // 1000)
        if abs(left) <= error:
            return Amount(0, error, "computed", own.refs)
        return Amount(max(left, 0), error, "computed", (*own.refs, *free.refs)) if self.event else None

    def foreign(self) -> list[Row]:
        """Processes on the card that are not the job's: those an error text names, else those a tool lists."""
        if self.holders or not self.pids:
            return self.holders
        return [r for r in self.tool_processes if r["pid"] not in self.pids and r["used_bytes"] is not None]

    def allocated(self) -> Amount | None:
        """What the framework's tensors take."""
        if self.event is not None and self.event["allocated_bytes"] is not None:
            told = Amount(
                self.event["allocated_bytes"], _event_error(self.event, "allocated_bytes"), "read", (self.event["ref"],)
            )
            if self.step is not None and self.step["allocated_bytes"] is not None:
                printed = self.step["allocated_bytes"]
                error = self.step["error_bytes"] or 0
                if error < told.error and abs(printed - told.value) <= told.error + error:
                    return Amount(printed, error, "read", (*told.refs, self.step["ref"]))
            return told
        if self.step is not None and self.step["allocated_bytes"] is not None:
            return Amount(self.step["allocated_bytes"], self.step["error_bytes"] or 0, "read", (self.step["ref"],))
        row = self.summary.get("allocated")
        return Amount(row["current"], row["error_bytes"] or 0, "read", (row["ref"],)) if row else None

    def unallocated(self) -> Amount | None:
        """What the framework's allocator keeps without a tensor in it."""
        if self.event is not None and self.event["unallocated_bytes"] is not None:
            return Amount(
                self.event["unallocated_bytes"],
                _event_error(self.event, "unallocated_bytes"),
                "read",
                (self.event["ref"],),
            )
        step = self.step
        if step is not None and step["reserved_bytes"] is not None and step["allocated_bytes"] is not None:
            return Amount(
                step["reserved_bytes"] - step["allocated_bytes"],
                2 * (step["error_bytes"] or 0),
                "computed",
                (step["ref"],),
            )
        reserved, allocated = self.summary.get("reserved"), self.summary.get("allocated")
        if reserved and allocated:
            error = (reserved["error_bytes"] or 0) + (allocated["error_bytes"] or 0)
            return Amount(reserved["current"] - allocated["current"], error, "computed", (reserved["ref"],))
        return None


def _event_error(event: Row, name: str) -> int:
    """Half of the last printed digit: the text prints two decimals of the unit that fits each figure."""
    size = event[name] or 0
    unit = 1 << 30 if size >= 1 << 30 else 1 << 20 if size >= 1 << 20 else 1 << 10
    return unit // 200


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
        self._by_stream = {p["stream"]: p for p in processes if p["stream"] is not None}
        self._by_rank: dict[int, list[Row]] = defaultdict(list)
        for process in processes:
            if process["rank"] is not None:
                self._by_rank[process["rank"]].append(process)

    def of_process(self, process: Row) -> Card:
        return self.find(process["host"], process["gpu"], process["bus_id"])

    def find(self, host: str | None, gpu: int | None, bus_id: str | None = None) -> Card:
        near = [c for c in self.cards if host is None or c.host is None or c.host == host]
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
        card.event, card.holders = row, holders[row["ref"]]
        card.rank = row["rank"] if card.rank is None else card.rank


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
