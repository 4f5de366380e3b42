"""Geometry of the memory bars: every length is a share (per cent) of one common axis, so that the drawing stretches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from analyzer.model import LedgerCard
from analyzer.report.digest import ENTRY_NAMES, card_details, card_name, free_bytes, missing_bytes, ordered_entries
from analyzer.report.units import GIB, count, gib

_ROOM = 1.13  # the axis ends beyond the largest demand, so that the words there fit
_LABEL_SHARE = 4.5  # per cent: a narrower part gets no figure inside
_FAILED, _ODD, _ALONE = 4, 4, 8
_ALIKE = 0.01
_TICKS = 5
_CLASSES = {
    "context_and_other": "ctx",
    "framework_allocated": "alloc",
    "framework_reserved_unallocated": "cache",
    "comm_buffers": "comm",
    "other_processes": "other",
    "unexplained": "unex",
    "free": "free",
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A rectangle: CSS class, start and width in per cent, the figure inside (empty where it does not fit)."""

    kind: str
    x: float
    width: float
    label: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """One card or several alike; ``side`` stands right of the bar, ``said`` is the drawing in one sentence."""

    title: str
    details: str
    failed: bool
    segments: tuple[Segment, ...]
    capacity_x: float
    end_x: float
    side: str
    said: str


@dataclass(frozen=True, slots=True)
class Chart:
    """All bars on one axis; ticks are (per cent, text); ``kinds`` are the classes that the key explains."""

    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    capacity_x: float
    capacity: str
    kinds: tuple[tuple[str, str], ...]


def css_class(entry: str) -> str:
    """The colour class of a ledger entry."""
    return _CLASSES.get(entry, "unex")


def _end(card: LedgerCard) -> int:
    """The right end of a card's bar in bytes."""
    return max(card.capacity_bytes, card.demand_bytes or 0, card.capacity_bytes + (missing_bytes(card) or 0))


def _beyond(card: LedgerCard, start: int, axis: float) -> list[Segment]:
    """The request that failed (hatched) and the rest of the demand (dashed), from the end of what is used."""
    segments, at = [], start
    if card.failed and card.requested_bytes:
        segments.append(Segment("req", 100 * at / axis, 100 * card.requested_bytes / axis))
        at += card.requested_bytes
    if card.demand_bytes is not None and card.demand_bytes > max(at, card.capacity_bytes):
        segments.append(Segment("peak", 100 * at / axis, 100 * (card.demand_bytes - at) / axis))
    return segments


def _side(card: LedgerCard) -> str:
    short, free = missing_bytes(card), free_bytes(card)
    if card.demand_bytes is not None and card.demand_bytes > card.capacity_bytes:
        return f"needs {gib(card.demand_bytes)}"
    if short is not None:
        return f"short {gib(short)}"
    return f"{gib(free)} free" if free is not None else ""


def _said(card: LedgerCard, title: str) -> str:
    parts = [f"{gib(entry.bytes)} {ENTRY_NAMES.get(entry.entry, entry.entry)}" for entry in ordered_entries(card)]
    text = f"{title}: {', '.join(parts)}; capacity {gib(card.capacity_bytes)} GiB."
    if card.requested_bytes is not None:
        text += f" Request that failed: {gib(card.requested_bytes)} GiB."
    if card.demand_bytes is not None:
        text += f" Needed in all: {gib(card.demand_bytes)} GiB."
    return text


def _bar(card: LedgerCard, axis: float, title: str, details: str) -> Bar:
    segments, at = [], 0
    for entry in ordered_entries(card):
        if entry.bytes <= 0 or (entry.entry == "free" and card.failed and card.requested_bytes):
            continue
        width = 100 * entry.bytes / axis
        label = gib(entry.bytes) if width >= _LABEL_SHARE and entry.entry != "free" else ""
        segments.append(Segment(css_class(entry.entry), 100 * at / axis, width, label, entry.origin))
        at += entry.bytes
    segments += _beyond(card, at, axis)
    end = max(100 * card.capacity_bytes / axis, *(s.x + s.width for s in segments), 0.0)
    capacity_x = 100 * card.capacity_bytes / axis
    return Bar(title, details, card.failed, tuple(segments), capacity_x, end, _side(card), _said(card, title))


def apart(card: LedgerCard, cards: Sequence[LedgerCard]) -> str:
    """What tells the card from the others: all details where it is alone, else rank, bus id and a differing host."""
    if len(cards) == 1:
        return card_details(card)
    one_host = len({other.host for other in cards}) == 1
    return card_details(replace(card, name=None, host=None if one_host else card.host))


def _grouped(cards: Sequence[LedgerCard]) -> list[tuple[LedgerCard, str, str]]:
    """Cards with title and details; of many cards the failed and the odd ones, the rest as one median card."""
    named = [(card, card_name(card), apart(card, cards)) for card in cards]
    if len(cards) <= _ALONE:
        return named
    middle = median_low([card.used_bytes or 0 for card in cards])
    failed = [item for item in named if item[0].failed][:_FAILED]
    far = sorted(named, key=lambda item: -abs((item[0].used_bytes or 0) - middle))
    odd = [i for i in far if i not in failed and abs((i[0].used_bytes or 0) - middle) > _ALIKE * i[0].capacity_bytes]
    alone = failed + odd[:_ODD]
    rest = sorted((item[0] for item in named if item not in alone), key=lambda card: card.used_bytes or 0)
    if not rest:
        return alone
    low, high = gib(rest[0].used_bytes or 0), gib(rest[-1].used_bytes or 0)
    return [*alone, (rest[len(rest) // 2], count(len(rest), "further card"), f"the median card; {low} to {high} used")]


def _ticks(axis: float, capacity_x: float) -> tuple[tuple[float, str], ...]:
    """Round GiB values along the axis, none too close to the capacity."""
    whole = axis / GIB
    step = next(s * 10**p for p in range(-2, 20) for s in (1, 2, 5) if whole / (s * 10**p) <= _TICKS)
    marks = [(100 * n * step / whole, f"{n * step:g}") for n in range(int(whole / step) + 1)]
    return tuple((x, text) for x, text in marks if abs(x - capacity_x) > 6)


def chart(cards: Sequence[LedgerCard]) -> Chart | None:
    """The bars of the cards on one axis; None without cards or capacity."""
    if not cards or max(card.capacity_bytes for card in cards) <= 0:
        return None
    axis = max(map(_end, cards)) * _ROOM
    bars = tuple(_bar(card, axis, title, details) for card, title, details in _grouped(cards))
    largest = max(card.capacity_bytes for card in cards)
    used = {segment.kind for bar in bars for segment in bar.segments}
    names = [(_CLASSES[entry], name) for entry, name in ENTRY_NAMES.items()]
    names += [("req", "request that failed"), ("peak", "rest of the demand")]
    capacity_x = 100 * largest / axis
    kinds = tuple((kind, name) for kind, name in names if kind in used)
    return Chart(bars, _ticks(axis, capacity_x), capacity_x, gib(largest), kinds)
