"""The memory ledger in a terminal: the card that matters in figures, every card as a bar against its capacity."""

from __future__ import annotations

from analyzer.model import LedgerCard, LedgerEntry, Report
from analyzer.report.digest import (
    ENTRY_NAMES,
    ENTRY_ORDER,
    card_details,
    card_name,
    cards_by_interest,
    missing_bytes,
    ordered_entries,
)
from analyzer.report.terminal import Page
from analyzer.report.units import count, gib, gib_unit, margin

_LETTERS = {
    "context_and_other": "x",
    "framework_allocated": "A",
    "framework_reserved_unallocated": "r",
    "comm_buffers": "C",
    "other_processes": "o",
    "unexplained": "?",
    "free": ".",
}
_MARKS = {"read": "r", "computed": "c", "estimated": "e"}
_DETAILED = 2
_BARS = 16
_LABEL = 12


def _row(entry: LedgerEntry, note: str = "") -> str:
    error = f"+- {margin(entry.error_bytes)}" if margin(entry.error_bytes) else ""
    name = ENTRY_NAMES.get(entry.entry, entry.entry)
    return f"{name:<26}{gib(entry.bytes):>9} {_MARKS[entry.origin]} {error:<12} {note}"


def _summary(card: LedgerCard) -> list[str]:
    """The rows under the line: capacity, the request that failed, the demand."""
    rows = [f"{'capacity':<26}{gib(card.capacity_bytes):>9}"]
    if card.requested_bytes is not None:
        short = missing_bytes(card)
        note = f"   {gib(short)} more than was free" if short else ""
        rows.append(f"{'request that failed':<26}{gib(card.requested_bytes):>9}{note}")
    if card.demand_bytes is not None:
        over = card.demand_bytes - card.capacity_bytes
        note = f"   {gib(over)} beyond the capacity" if over > 0 else ""
        rows.append(f"{'needed in all':<26}{gib(card.demand_bytes):>9}{note}")
    return rows


def _detail(page: Page, card: LedgerCard) -> None:
    failed = " (out of memory)" if card.failed else ""
    page.clipped(f"{card_name(card)}{failed}  {card_details(card)}", 2, "bold")
    for entry in ordered_entries(card):
        comm = entry.entry == "comm_buffers" and card.communicators
        note = count(card.communicators, "communicator") if comm else entry.note
        page.clipped(_row(entry, note), 4)
    page.line("    " + "-" * 35)
    for row in _summary(card):
        page.clipped(row, 4)
    for note in (card.note, card.demand_note):
        if note:
            page.paragraph(note, 4)
    if not card.balanced:
        page.paragraph(f"The entries do not add up to the capacity within {gib_unit(card.tolerance_bytes)}.", 4)


def _widths(card: LedgerCard, cells: int) -> list[int]:
    """Cells for each entry: a part that is there gets at least one, the largest gives way."""
    ordered = ordered_entries(card)
    widths = [max(round(cells * entry.bytes / max(1, card.capacity_bytes)), int(entry.bytes > 0)) for entry in ordered]
    while widths and sum(widths) > cells and max(widths) > 1:
        widths[widths.index(max(widths))] -= min(max(widths) - 1, sum(widths) - cells)
    return widths


def beyond_bytes(card: LedgerCard) -> int:
    """What was wanted beyond the capacity: by the demand, or by the request that failed; 0 when all would fit."""
    return max(missing_bytes(card) or 0, (card.demand_bytes or 0) - card.capacity_bytes, 0)


def bar(card: LedgerCard, scale: float) -> str:
    """One letter per ``scale`` bytes, ``|`` at the capacity, ``!`` for what was wanted beyond it."""
    at = max(len(card.entries), round(card.capacity_bytes / scale))
    letters = [_LETTERS.get(entry.entry, "?") for entry in ordered_entries(card)]
    line = "".join(letter * wide for letter, wide in zip(letters, _widths(card, at), strict=True))
    beyond = beyond_bytes(card)
    return line[:at].ljust(at) + "|" + "!" * (max(1, round(beyond / scale)) if beyond else 0)


def _bars(page: Page, cards: list[LedgerCard]) -> None:
    used = {entry.entry for card in cards for entry in card.entries}
    names = [f"{_LETTERS[name]} {ENTRY_NAMES[name]}" for name in ENTRY_ORDER if name in used]
    cells = page.width - _LABEL - 6
    scale = max(1.0, max(card.capacity_bytes + beyond_bytes(card) for card in cards) / cells)
    page.line()
    for card in cards:
        page.line(f"  {page.clip(card_name(card), _LABEL - 1):<{_LABEL}}{bar(card, scale)[: cells + 3]}")
    page.paragraph(", ".join([*names, "| capacity", "! wanted beyond it"]), 2)


def memory(page: Page, report: Report) -> None:
    """The section on memory; nothing where there is no ledger."""
    if not report.ledger:
        return
    page.heading("Memory")
    page.paragraph("GiB = 1,024^3 bytes; r read from the input, c computed from it, e estimated", 2, style="dim")
    cards = cards_by_interest(report.ledger)
    failed = [card for card in cards if card.failed][:_DETAILED]
    for card in failed or cards[:1]:
        _detail(page, card)
    shown = cards[:_BARS]
    _bars(page, sorted(shown, key=report.ledger.index))
    page.more(len(cards) - len(shown), "cards")
