"""The values that travel through the pipeline: references, problems, findings and the finished report.

Memory is integer bytes, time is seconds since the epoch (UTC), shares are 0..1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["root", "consequence", "risk", "info"]
Severity = Literal["error", "warning", "info"]
Origin = Literal["read", "computed", "estimated"]

SEVERITY_ORDER: dict[str, int] = {"error": 2, "warning": 1, "info": 0}

# A reference to a line is one integer, so that SQL can carry and aggregate it: input number and line number.
_LINE_BITS = 40
_LINE_MASK = (1 << _LINE_BITS) - 1


def make_ref(input_id: int, line: int) -> int:
    """Packs input number and 1-based line number into one integer (sorts by input, then by line)."""
    return (input_id << _LINE_BITS) | line


def split_ref(ref: int) -> tuple[int, int]:
    """The input number and the 1-based line number of a packed reference."""
    return ref >> _LINE_BITS, ref & _LINE_MASK


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be read, and where. ``line`` is 0 when the whole file is meant."""

    file: str
    line: int
    what: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One line of an input on which a finding rests. ``text`` is the cleaned line (escaped on output)."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Where:
    """The culprit, as exactly as the evidence allows; every field is a tuple of values, empty when unknown."""

    host: tuple[str, ...] = ()
    rank: tuple[int, ...] = ()
    gpu: tuple[str, ...] = ()
    bus_id: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    process: tuple[str, ...] = ()
    file: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One judged cause. ``confidence`` is 0..1; ``explains`` lists causes and symptoms it makes redundant."""

    cause: str
    rule: str
    role: Role
    severity: Severity
    confidence: float
    title: str
    message: str
    where: Where = Where()
    explains: tuple[str, ...] = ()
    evidence: tuple[EvidenceLine, ...] = ()
    advice: tuple[str, ...] = ()
    considered: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    at: float | None = None


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A rule that lacked a table: what is missing and the command that prints it."""

    rule: str
    cause: str
    missing: tuple[str, ...]
    hint: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its origin. ``error`` is the half width in the same unit; ``refs`` are evidence lines."""

    value: float
    unit: str
    origin: Origin
    error: float = 0.0
    source: str = ""
    evidence: tuple[EvidenceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One part of a card's memory, in bytes.

    ``entry`` is one of framework_allocated, framework_reserved_unallocated, comm_buffers,
    context_and_other, other_processes, free, unexplained.
    """

    entry: str
    bytes: int
    origin: Origin
    error_bytes: int
    note: str = ""
    evidence: tuple[EvidenceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class LedgerCard:
    """The memory of one GPU: ``capacity_bytes`` is what CUDA can hand out (total minus the driver's reserve).

    ``entries`` add up to the capacity within ``tolerance_bytes`` when ``balanced`` is true; otherwise
    ``note`` says what is missing. ``demand_bytes`` is what the job would have needed (None when unknown).
    """

    host: str | None
    gpu: int | None
    bus_id: str | None
    rank: int | None
    name: str | None
    total_bytes: int | None
    driver_reserved_bytes: int | None
    capacity_bytes: int
    used_bytes: int | None
    entries: tuple[LedgerEntry, ...]
    balanced: bool
    tolerance_bytes: int
    note: str = ""
    communicators: int = 0
    requested_bytes: int | None = None
    failed: bool = False
    demand_bytes: int | None = None
    demand_note: str = ""


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One pair of GPUs. Latency in microseconds (GPU side, peer access on), bandwidth in GB/s (10^9)."""

    host: str | None
    a: str
    b: str
    path: str | None
    nvlinks: int | None
    latency_us: float | None
    bandwidth_gbps: float | None
    class_latency_us: float | None
    class_bandwidth_gbps: float | None
    ratio: float | None
    in_ring: bool | None
    transport: str | None
    verdict: str
    evidence: tuple[EvidenceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One event in time. ``at`` is None when undated.

    ``clock`` is wall, boot (seconds since boot), after (the line has no time; its writer printed this one before).
    """

    at: float | None
    clock: str
    host: str | None
    rank: int | None
    kind: str
    text: str
    first: bool = False
    evidence: tuple[EvidenceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class InventoryRow:
    """One thing that the evidence names: a process, a GPU, a software version."""

    kind: str
    host: str | None
    name: str
    value: str
    evidence: tuple[EvidenceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input: formats found in it, size and how many of its lines a parser recognised."""

    file: str
    kind: str
    bytes: int
    lines: int
    recognised_lines: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first line of the report. ``cause`` is None when nothing was found or nothing is provable."""

    headline: str
    cause: str | None
    confidence: float
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the comparison of a failing run with an earlier good one (sizes in bytes)."""

    what: str
    baseline: Figure | None
    current: Figure | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report shows; the renderers know nothing else."""

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    ledger: tuple[LedgerCard, ...] = ()
    links: tuple[LinkRow, ...] = ()
    timeline: tuple[TimelineRow, ...] = ()
    inventory: tuple[InventoryRow, ...] = ()
    inputs: tuple[InputFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    baseline: tuple[Comparison, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
