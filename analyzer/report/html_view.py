"""What the HTML templates show, made ready: the four answers, sections, ledger rows, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.model import EvidenceLine, Figure, Finding, LedgerCard, LedgerEntry, Report, TimelineRow
from analyzer.report.digest import (
    ENTRY_NAMES,
    ENTRY_ORDER,
    ROLE_NAMES,
    card_name,
    first_events,
    free_bytes,
    gaps,
    listed,
    missing_bytes,
    notable,
    silence,
    where_text,
)
from analyzer.report.escape import brief
from analyzer.report.units import count, finite, gib, gib_unit, moment, size

_STEPS = 3
_BRIEF = 150
_BANNER_HOSTS = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the four answers under the verdict."""

    question: str
    texts: tuple[str, ...]
    steps: tuple[str, ...] = ()
    link: str = ""
    evidence: tuple[EvidenceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered section; the number stays the same in every report."""

    number: int
    id: str
    title: str
    template: str


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One entry of the ledger over all cards, None where a card has none."""

    name: str
    title: str
    entries: tuple[LedgerEntry | None, ...]
    note: str
    evidence: tuple[EvidenceLine, ...]


def _card_sentence(card: LedgerCard) -> str:
    free = free_bytes(card)
    text = f"{card_name(card)} ran out of memory"
    if card.requested_bytes is not None:
        text += f": it was asked for {gib_unit(card.requested_bytes)}"
        text += f" with {gib_unit(free)} free" if free is not None else ""
    return text + "."


def _what_failed(report: Report, lead: Finding) -> Answer:
    texts = [_card_sentence(card) for card in report.ledger if card.failed][:2]
    first = next((row for row in report.timeline if row.first), None)
    if first is not None and not texts:
        rank = f"Rank {first.rank}: " if first.rank is not None else ""
        texts.append(f"{rank}{first.text}")
    followers = [finding for finding in report.findings if finding.role == "consequence"]
    texts += [f"{ROLE_NAMES[finding.role].capitalize()}: {finding.title}." for finding in followers[:1]]
    return Answer("What failed", tuple(texts or [lead.title]), evidence=lead.evidence[:2])


def _where(report: Report, lead: Finding | None) -> Answer:
    where = where_text(report.verdict.where) or (where_text(lead.where) if lead else "")
    texts = [where[:1].upper() + where[1:] if where else "The input does not say."]
    at = next((row for row in report.timeline if row.first and row.at is not None), None)
    if at is not None:
        texts.append(f"First failure: {moment(at.at, at.clock)}.")
    return Answer("Where", tuple(texts), evidence=at.evidence if at else ())


def answers(report: Report, lead: Finding | None) -> list[Answer]:
    """What failed, where, why, what now; without a leading finding: what is known and what would help."""
    if lead is not None:
        steps = tuple(brief(step.split("\n")[0], _BRIEF) for step in lead.advice[:_STEPS])
        now = Answer("What to do now", () if steps else ("No step is known.",), steps, "actions" if steps else "")
        return [_what_failed(report, lead), _where(report, lead), Answer("Why", (lead.message or lead.title,)), now]
    said = silence(report) if not notable(report) else ["No rule explains it; the findings below did not cause it."]
    first = next((row for row in report.timeline if row.first), None)
    failed = first.text if first else "No failure was recognised."
    hints = tuple(gap.hint for gap in gaps(report)[:_STEPS])
    nothing = () if hints else ("Nothing is known to be missing.",)
    what = Answer("What failed", (failed,), evidence=first.evidence if first else ())
    helped = Answer("What would help", nothing, hints, "missing" if hints else "")
    return [what, _where(report, None), Answer("Why", tuple(said)), helped]


def sections(report: Report, lead: Finding | None, ruled_out: bool) -> list[Section]:
    """The sections that have data; without a notable finding the open questions come first."""
    every = (
        (bool(lead and lead.advice), Section(2, "actions", "What to do", "actions.html.j2")),
        (bool(report.ledger or report.baseline), Section(3, "memory", "Memory", "memory.html.j2")),
        (bool(report.links), Section(4, "links", "Links", "links.html.j2")),
        (bool(report.timeline), Section(5, "ranks", "Ranks in time", "ranks.html.j2")),
        (bool(report.inventory), Section(6, "cards", "Cards and versions", "cards.html.j2")),
        (bool(report.findings), Section(7, "evidence", "Evidence", "evidence.html.j2")),
        (ruled_out, Section(8, "ruled", "Ruled out", "ruled.html.j2")),
        (bool(report.not_evaluated), Section(9, "missing", "Not evaluated", "missing.html.j2")),
        (True, Section(10, "inputs", "Inputs", "inputs.html.j2")),
    )
    shown = [section for wanted, section in every if wanted]
    return shown if notable(report) else sorted(shown, key=lambda section: section.id != "missing")


def entry_of(card: LedgerCard, name: str) -> LedgerEntry | None:
    """The entry of a card by name."""
    return next((entry for entry in card.entries if entry.entry == name), None)


def ledger_rows(cards: Sequence[LedgerCard]) -> list[LedgerRow]:
    """The ledger as rows over the cards, in the order in which the bars stack; note and evidence of the first card."""
    rows = []
    for name in ENTRY_ORDER:
        found = tuple(entry_of(card, name) for card in cards)
        known = [entry for entry in found if entry is not None]
        if known:
            note = next((entry.note for entry in known if entry.note), "")
            evidence = next((entry.evidence for entry in known if entry.evidence), ())
            rows.append(LedgerRow(name, ENTRY_NAMES[name], found, note, evidence))
    return rows


def ledger_notes(cards: Sequence[LedgerCard]) -> list[tuple[str, str]]:
    """What is said about the cards: names and text, cards with the same text together."""
    said: dict[str, list[str]] = {}
    for card in cards:
        parts = [part.strip().rstrip(".") + "." for part in (card.demand_note, card.note) if part.strip()]
        if not card.balanced:
            parts.append(f"The entries do not add up to the capacity within {size(card.tolerance_bytes)}.")
        if parts:
            said.setdefault(" ".join(parts), []).append(card_name(card))
    return [(listed(names), text[:1].upper() + text[1:]) for text, names in said.items()]


def ledger_sums(cards: Sequence[LedgerCard]) -> list[tuple[str, list[str], str]]:
    """The rows under the ledger: title, a text for each card, CSS class; rows without any figure are left out."""
    over = [card.demand_bytes - card.capacity_bytes if card.demand_bytes is not None else None for card in cards]
    rows: list[tuple[str, list[int | None], str]] = [
        ("used", [card.used_bytes for card in cards], "sum"),
        ("capacity", [card.capacity_bytes for card in cards], ""),
        ("request that failed", [card.requested_bytes for card in cards], ""),
        ("short by", [missing_bytes(card) for card in cards], ""),
        ("needed in all", [card.demand_bytes for card in cards], ""),
        ("beyond the capacity", [value if value is not None and value > 0 else None for value in over], "sum"),
    ]
    shown = [(title, ["" if v is None else gib(v) for v in values], css) for title, values, css in rows if any(values)]
    communicators = [card.communicators for card in cards]
    if any(communicators):
        shown.append(("communicators", [str(number) for number in communicators], ""))
    return shown


def _after(row: TimelineRow, first: TimelineRow | None) -> str:
    if row.at is None or first is None or first.at is None or row.clock != first.clock or finite(row.at) is None:
        return ""
    seconds = row.at - first.at
    return "0" if row is first else f"{seconds:+,.1f} s".replace("-", "\u2212")


def events(report: Report, limit: int) -> list[tuple[TimelineRow, str]]:
    """The events around the first failure with the seconds after it."""
    first = next((row for row in report.timeline if row.first), None)
    return [(row, _after(row, first)) for row in first_events(report.timeline, limit)]


def comparison_shares(before: Figure | None, now: Figure | None) -> tuple[float, float]:
    """Lengths (per cent) of the two bars of a comparison, on their own scale."""
    values = [finite(value.value) or 0.0 if value else 0.0 for value in (before, now)]
    largest = max(values)
    return (100 * max(0.0, values[0]) / largest, 100 * max(0.0, values[1]) / largest) if largest > 0 else (0.0, 0.0)


def banner(report: Report) -> list[str]:
    """Job, hosts and cards, time of the first failure."""
    known = [card.host for card in report.ledger] + [row.host for row in report.timeline]
    hosts = list(dict.fromkeys(host for host in known if host))
    names = list(dict.fromkeys(card.name for card in report.ledger if card.name))
    cards = f"{count(len(report.ledger), 'card')}: {listed(names, 2)}" if names else ""
    first = next((row for row in report.timeline if row.first and row.at is not None), None)
    job = f"job {report.meta['job']}" if report.meta.get("job") else ""
    failed = f"failed {moment(first.at, first.clock)}" if first else ""
    return [text for text in (job, listed(hosts, _BANNER_HOSTS), cards, failed) if text]


def made_by(report: Report) -> str:
    """Name and version of the program, number of rules."""
    version, rules = report.meta.get("version") or report.meta.get("crashcart"), report.meta.get("rules")
    return ", ".join(filter(None, (f"crashcart {version or ''}".strip(), f"{rules} rules" if rules else "")))


def meta_rows(report: Report, limit: int) -> list[tuple[str, str]]:
    """The scalar entries of ``meta`` by name."""
    scalars = [(str(key), str(value)) for key, value in report.meta.items() if isinstance(value, (str, int, float))]
    return sorted(scalars)[:limit]
