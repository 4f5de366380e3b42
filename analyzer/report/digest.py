"""What all readable formats share: which finding leads, what is odd, and how things are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analyzer.model import SEVERITY_ORDER, Finding, LedgerCard, LedgerEntry, LinkRow, Report, TimelineRow, Where
from analyzer.report.units import count

ENTRY_ORDER = (
    "context_and_other",
    "framework_allocated",
    "framework_reserved_unallocated",
    "comm_buffers",
    "other_processes",
    "unexplained",
    "free",
)
ENTRY_NAMES = {
    "framework_allocated": "allocated by the framework",
    "framework_reserved_unallocated": "reserved, not allocated",
    "comm_buffers": "communication buffers",
    "context_and_other": "CUDA context and other",
    "other_processes": "other processes",
    "free": "free",
    "unexplained": "unexplained",
}
ROLE_NAMES = {
    "root": "root cause",
    "consequence": "consequence",
    "risk": "risk, not the cause",
    "info": "for information",
}
_ROLE_ORDER = {"root": 0, "risk": 1, "consequence": 2, "info": 3}
_NORMAL = ("normal", "ok")
_UNMEASURED = ("", "unmeasured", "unknown", "not measured")
_SHOWN_VALUES = 6


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Roots first, then as the engine ranked them (a stable sort: the engine's order decides all else)."""
    return sorted(findings, key=lambda finding: finding.role != "root")


def notable(report: Report) -> list[Finding]:
    """The findings at or above warning."""
    return [finding for finding in ranked(report.findings) if SEVERITY_ORDER[finding.severity] >= 1]


def leading(report: Report) -> Finding | None:
    """The finding behind the verdict: the one with its cause, else the first root at or above warning."""
    found = ranked(report.findings)
    if report.verdict.cause is not None:
        same = [finding for finding in found if finding.cause == report.verdict.cause]
        return same[0] if same else None
    return next((finding for finding in notable(report) if finding.role == "root"), None)


def part(finding: Finding, lead: Finding | None) -> str:
    """The part of a finding in the crash; a root beside the leading one is independent of it."""
    if finding.role == "root" and lead is not None and finding is not lead:
        return "independent finding"
    return ROLE_NAMES[finding.role]


def others(report: Report) -> list[Finding]:
    """All findings but the leading one: further roots, risks, consequences, information."""
    lead = leading(report)
    rest = [finding for finding in ranked(report.findings) if finding is not lead]
    return sorted(rest, key=lambda finding: _ROLE_ORDER[finding.role])


def is_odd(link: LinkRow) -> bool:
    """Whether the verdict on a pair is anything but normal or unmeasured."""
    return link.verdict.strip().lower() not in _NORMAL + _UNMEASURED


def odd_links(report: Report) -> list[LinkRow]:
    """The pairs that are not normal, the worst ratio first."""
    return sorted(filter(is_odd, report.links), key=lambda link: -(link.ratio or 0.0))


def link_tally(report: Report) -> str:
    """How many pairs are normal, and how many nobody measured: ``5 pairs normal, 1 pair not measured``."""
    verdicts = [link.verdict.strip().lower() for link in report.links]
    unmeasured = sum(verdict in _UNMEASURED for verdict in verdicts)
    normal = sum(verdict in _NORMAL for verdict in verdicts)
    said = [f"{count(normal, 'pair')} normal"] if normal or not unmeasured else []
    return ", ".join(said + ([f"{count(unmeasured, 'pair')} not measured"] if unmeasured else []))


def first_events(rows: Sequence[TimelineRow], limit: int) -> list[TimelineRow]:
    """At most ``limit`` events: those around the first failure, in the order given."""
    marked = next((i for i, row in enumerate(rows) if row.first), 0)
    start = max(0, min(marked - 1, len(rows) - limit))
    return list(rows[start : start + limit])


def is_index(value: str) -> bool:
    """Whether a name of a GPU is a plain index (a hostile log may hold a million digits)."""
    return len(value) < 10 and value.isascii() and value.isdigit()


def int_ranges(values: Iterable[int]) -> str:
    """Numbers as ranges: ``0-3, 7``."""
    ranges: list[list[int]] = []
    for value in sorted(set(values)):
        if ranges and value == ranges[-1][1] + 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    return listed([f"{a}-{b}" if b > a + 1 else f"{a}, {b}" if b > a else f"{a}" for a, b in ranges])


def listed(values: Sequence[str], limit: int = _SHOWN_VALUES) -> str:
    """``a, b, c and 4 more``."""
    text = ", ".join(values[:limit])
    return f"{text} and {len(values) - limit:,} more" if len(values) > limit else text


def _numbered(noun: str, values: Sequence[str]) -> str:
    if all(is_index(value) for value in values):
        return f"{noun}{'s' if len(values) > 1 else ''} {int_ranges(map(int, values))}"
    return listed([value if value.upper().startswith(noun.upper()) else f"{noun} {value}" for value in values])


def where_text(where: Where) -> str:
    """The culprit in one phrase: ``rank 2, GPU 2, bus 0000:0f:00.0, host node-a``; empty when nothing is known."""
    parts = []
    if where.rank:
        parts.append(_numbered("rank", [str(rank) for rank in where.rank]))
    if where.gpu:
        parts.append(_numbered("GPU", where.gpu))
    for noun, values in (
        ("bus", where.bus_id),
        ("link", where.link),
        ("process", where.process),
        ("host", where.host),
        ("file", where.file),
    ):
        if values:
            parts.append(f"{noun} {listed(values)}")
    return ", ".join(parts)


def card_name(card: LedgerCard) -> str:
    """The short name of a card: ``GPU 2``, else its bus id, else its rank."""
    if card.gpu is not None:
        return f"GPU {card.gpu}"
    if card.bus_id:
        return card.bus_id
    return f"rank {card.rank}" if card.rank is not None else "a GPU"


def card_details(card: LedgerCard) -> str:
    """What else names the card: rank, host, bus id, product."""
    rank = f"rank {card.rank}" if card.rank is not None else None
    bus_id = card.bus_id if card.gpu is not None else None
    return ", ".join(part for part in (rank, card.host, bus_id, card.name) if part)


def ordered_entries(card: LedgerCard) -> list[LedgerEntry]:
    """The entries as the bars stack them: context first, free last."""
    return sorted(card.entries, key=lambda entry: ENTRY_ORDER.index(entry.entry) if entry.entry in ENTRY_ORDER else 9)


def cards_by_interest(cards: Iterable[LedgerCard]) -> list[LedgerCard]:
    """Failed cards first, then those with the highest demand or use; ties keep their order."""
    return sorted(cards, key=lambda card: (not card.failed, -max(card.demand_bytes or 0, card.used_bytes or 0)))


def free_bytes(card: LedgerCard) -> int | None:
    """The free memory of a card, None when the ledger does not know it."""
    return next((entry.bytes for entry in card.entries if entry.entry == "free"), None)


def missing_bytes(card: LedgerCard) -> int | None:
    """By how much the failed request exceeded what was free; None when unknown or when it would have fitted."""
    free = free_bytes(card)
    if card.requested_bytes is None or free is None or card.requested_bytes <= free:
        return None
    return card.requested_bytes - free


@dataclass(frozen=True, slots=True)
class Gap:
    """Open questions that one piece of input would answer."""

    hint: str
    missing: tuple[str, ...]
    causes: tuple[str, ...]
    rules: int


def gaps(report: Report) -> list[Gap]:
    """Rules without input, grouped by what would answer them; the group that opens most rules first."""
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(report.not_evaluated):
        groups.setdefault(row.hint or ", ".join(row.missing), []).append(index)
    result = []
    for hint, indices in groups.items():
        rows = [report.not_evaluated[index] for index in indices]
        missing = tuple(dict.fromkeys(table for row in rows for table in row.missing))
        result.append(Gap(hint, missing, tuple(dict.fromkeys(row.cause for row in rows)), len(rows)))
    return sorted(result, key=lambda gap: -gap.rules)


def recognised_lines(report: Report) -> tuple[int, int]:
    """Lines that a parser recognised and lines in all."""
    return sum(row.recognised_lines for row in report.inputs), sum(row.lines for row in report.inputs)


def silence(report: Report) -> list[str]:
    """What to say when no finding is at or above warning: what that means, and what would prove more."""
    recognised, lines = recognised_lines(report)
    if not report.inputs:
        return ["There was no input to read, so nothing can be said about this job."]
    if not recognised:
        return [f"No rule could judge: none of {count(lines, 'line')} was recognised, so nothing is provable from it."]
    said = ["Nothing was found: no rule reports an error or a warning on this input."]
    if report.not_evaluated:
        open_rules = count(len(report.not_evaluated), "rule")
        said.append(f"That is no proof of health: {open_rules} had no input to judge, see below what would help.")
    return said
