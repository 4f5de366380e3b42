"""All that the evidence says of the memory of one card: figures of the framework, the driver and the tools.

``card_collection`` fills the cards; here is how their figures are weighed against each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = dict[str, Any]

HALF_MIB = 1 << 19
CONTEXT_USUAL = 640 << 20
"""A CUDA context with the modules of a framework; more than twice as much is shown as unexplained."""
USUAL_RESERVE = 700 << 20
"""What drivers keep of a card for themselves, where no tool prints it."""
_OWN_MARGIN = 3 << 30
UNNAMED_SHARE = 0.15
"""Of the capacity: memory that belongs to nobody the evidence names counts as another process's only from here on."""


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
    pool: Row | None = None
    comm: Amount | None = None
    communicators: int = 0

    def capacity(self) -> Amount | None:
        """What CUDA can hand out: total minus the driver's reserve, or the capacity of an error text."""
        if self.total_bytes is not None and self.reserved_bytes is not None and self.device_ref is not None:
            return Amount(self.total_bytes - self.reserved_bytes, 2 * HALF_MIB, "computed", (self.device_ref,))
        if self.event is not None and self.event["capacity_bytes"] is not None:
            return Amount(self.event["capacity_bytes"], self.event["error_bytes"] or 0, "read", (self.event["ref"],))
        if self.memory is not None and self.memory["used_bytes"] is not None and self.memory["free_bytes"] is not None:
            return Amount(
                self.memory["used_bytes"] + self.memory["free_bytes"], 2 * HALF_MIB, "computed", (self.memory["ref"],)
            )
        if self.total_bytes is not None and self.device_ref is not None:
            return Amount(self.total_bytes, USUAL_RESERVE, "read", (self.device_ref,))
        return None

    def free(self) -> Amount | None:
        """Free memory when it failed, else when the tool looked."""
        if self.event is not None and self.event["free_bytes"] is not None:
            return Amount(
                self.event["free_bytes"], _event_error(self.event, "free_bytes"), "read", (self.event["ref"],)
            )
        if self.memory is not None and self.memory["free_bytes"] is not None:
            return Amount(self.memory["free_bytes"], HALF_MIB, "read", (self.memory["ref"],))
        if self.memory is not None and self.memory["used_bytes"] is not None and self.total_bytes is not None:
            left = max(self.total_bytes - self.memory["used_bytes"], 0)
            return Amount(left, USUAL_RESERVE, "computed", (self.memory["ref"],))
        return None

    @property
    def own_pid(self) -> int | None:
        """The job's process on this card, where one is known."""
        if self.event is not None and self.event.get("own_pid") is not None:
            return int(self.event["own_pid"])
        rows = self.own_rows()
        known = self.pids if len(self.pids) == 1 else {row["pid"] for row in rows}
        return next(iter(known)) if len(known) == 1 else None

    def own_rows(self) -> list[Row]:
        """The listed processes that are the job's: by their pid, else by what the job says it holds."""
        sized = [row for row in self.tool_processes if row["used_bytes"] is not None]
        if self.pids:
            return [row for row in sized if row["pid"] in self.pids]
        held = self._held()
        if held is None:
            return sized if len(self.tool_processes) == 1 else []
        near = [row for row in sized if 0.9 * held <= row["used_bytes"] <= held + _OWN_MARGIN]
        if near:
            return [min(near, key=lambda r: (abs(r["used_bytes"] - held), r["pid"]))]
        single = len(sized) == 1 and sized[0]["used_bytes"] <= 2 * held + (1 << 30)
        return sized if single else []

    def _held(self) -> int | None:
        """What the job's frameworks say that they took."""
        if self.event is None or self.event["allocated_bytes"] is None:
            return None
        held = self.event["reserved_bytes"] or self.event["allocated_bytes"]
        own_pool = self.pool is not None and self.pool["stream"] == self.event["stream"]
        return int(held) + (int(self.pool["bytes"]) if own_pool and self.pool else 0)

    def own(self) -> Amount | None:
        """Memory of the job's process, outside parts included; the finer of the two figures where they agree."""
        tool = self.own_rows()
        seen = None
        if tool:
            seen = Amount(
                sum(r["used_bytes"] for r in tool), HALF_MIB * len(tool), "read", tuple(r["ref"] for r in tool)
            )
        if self.event is None or self.event["own_bytes"] is None:
            return seen
        told = Amount(self.event["own_bytes"], _event_error(self.event, "own_bytes"), "read", (self.event["ref"],))
        if seen and abs(seen.value - told.value) <= told.error + seen.error and seen.error < told.error:
            return seen._replace(refs=(*told.refs, *seen.refs))
        return told

    def memory_amount(self) -> Amount | None:
        """What the tool shows as used on the whole card."""
        if self.memory is None or self.memory["used_bytes"] is None:
            return None
        return Amount(self.memory["used_bytes"], HALF_MIB, "read", (self.memory["ref"],))

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
        if own is None:
            return self._unseen(capacity)
        if free is None:
            return None
        left = capacity - own.value - free.value
        error = max(own.error + free.error + 4 * HALF_MIB, capacity // 1000)
        if abs(left) <= error:
            return Amount(0, error, "computed", own.refs)
        return Amount(max(left, 0), error, "computed", (*own.refs, *free.refs)) if self.event else None

    def _unseen(self, capacity: int) -> Amount | None:
        """What a text without a figure of its own process leaves, once its pool and a usual context are taken off."""
        free, allocated, unallocated = self.free(), self.allocated(), self.unallocated()
        if self.event is None or self.event["free_bytes"] is None or free is None or allocated is None:
            return None
        comm = self.comm.value if self.comm is not None else 0
        held = allocated.value + (unallocated.value if unallocated else 0) + comm
        left = capacity - free.value - held - CONTEXT_USUAL
        if left < UNNAMED_SHARE * capacity:
            return None
        return Amount(left, CONTEXT_USUAL // 2 + free.error + allocated.error, "estimated", allocated.refs)

    def foreign(self) -> list[Row]:
        """Processes on the card that are not the job's: those an error text names, else those a tool lists."""
        if self.holders or not (self.pids or self.event):
            return self.holders
        own = {row["pid"] for row in self.own_rows()} | self.pids
        return [r for r in self.tool_processes if r["pid"] not in own and r["used_bytes"] is not None]

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
        if self.event is not None and self.event["allocated_bytes"] is not None:
            reserved = self.event["reserved_bytes"]
            if reserved is not None:
                left = max(reserved - self.event["allocated_bytes"], 0)
                return Amount(left, 2 * _event_error(self.event, "reserved_bytes"), "computed", (self.event["ref"],))
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
