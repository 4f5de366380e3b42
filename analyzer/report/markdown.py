"""The report as Markdown for a ticket: GitHub's dialect, nothing from a log can become markup, a link or HTML."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model import EvidenceLine, Finding, LedgerCard, LedgerEntry, LinkRow, Report
from analyzer.report.digest import (
    ENTRY_NAMES,
    ENTRY_ORDER,
    card_details,
    card_name,
    cards_by_interest,
    first_events,
    gaps,
    leading,
    link_tally,
    listed,
    notable,
    odd_links,
    others,
    part,
    recognised_lines,
    silence,
    where_text,
)
from analyzer.report.escape import visible_report
from analyzer.report.markdown_inline import block, code, inline, more, steps, table
from analyzer.report.paths import without_folder
from analyzer.report.units import bandwidth, confidence, count, figure, gib, latency, margin, moment

_CELL_LIMIT = 200
_ROWS = 16
_EVIDENCE = 20
_PROBLEMS = 8
_MARKS = {"read": "r", "computed": "c", "estimated": "e"}

def _cell(text: str | None) -> str:
    return inline(text or "", _CELL_LIMIT)


def _verdict(report: Report, lead: Finding | None) -> list[str]:
    verdict = report.verdict
    rows = [f"# {inline(verdict.headline)}", ""]
    if verdict.cause is not None:
        rows.append(f"- **Cause:** {code(verdict.cause)}")
    where = where_text(verdict.where) or (where_text(lead.where) if lead else "")
    if where:
        rows.append(f"- **Where:** {inline(where)}")
    if verdict.cause is not None:
        rows.append(f"- **Confidence:** {confidence(verdict.confidence)}")
    for line in lead.message.split("\n") if lead else []:
        rows += ["", inline(line)]
    if not notable(report):
        rows += ["", *(inline(sentence) for sentence in silence(report))]
    return rows


def _advice(lead: Finding | None) -> list[str]:
    return ["## What to do", "", *steps(lead.advice)] if lead and lead.advice else []


def _located(line: EvidenceLine) -> str:
    return f"{line.file}:{line.line}: {line.text}" if line.line else f"{line.file}: {line.text}"


def _evidence(lead: Finding | None) -> list[str]:
    if lead is None or not (lead.evidence or lead.considered):
        return []
    rows = ["## Evidence", ""]
    if lead.evidence:
        rows += block(map(_located, lead.evidence[:_EVIDENCE]))
        rows += more(len(lead.evidence) - _EVIDENCE, "lines")
    if lead.considered:
        rows += ["", "Ruled out:", "", *steps(lead.considered[:_EVIDENCE], numbered=False)]
    return rows


def _amount(entry: LedgerEntry | None) -> str:
    if entry is None:
        return ""
    error = f" ± {margin(entry.error_bytes)}" if margin(entry.error_bytes) else ""
    return f"{gib(entry.bytes)} {_MARKS[entry.origin]}{error}"


def _card_row(card: LedgerCard, names: Sequence[str]) -> list[str]:
    by_name = {entry.entry: entry for entry in card.entries}
    wanted = [gib(value) if value is not None else "" for value in (card.requested_bytes, card.demand_bytes)]
    title = f"**{_cell(card_name(card))}**" if card.failed else _cell(card_name(card))
    amounts = [_amount(by_name.get(name)) for name in names]
    return [f"{title} {_cell(card_details(card))}", *amounts, gib(card.capacity_bytes), *wanted]


def _memory(report: Report) -> list[str]:
    if not report.ledger:
        return []
    cards = cards_by_interest(report.ledger)[:_ROWS]
    present = {entry.entry for card in cards for entry in card.entries}
    names = [name for name in ENTRY_ORDER if name in present]
    head = ["Card", *(ENTRY_NAMES[name] for name in names), "capacity", "request that failed", "needed in all"]
    rows = ["## Memory", "", "GiB (1,024³ bytes); r read, c computed, e estimated; bold: ran out of memory.", ""]
    rows += table(head, (_card_row(card, names) for card in cards), range(1, len(head)))
    rows += more(len(report.ledger) - len(cards), "cards")
    notes = [f"{card_name(card)}: {note}" for card in cards for note in (card.note, card.demand_note) if note]
    return [*rows, "", *steps(notes[:_ROWS], numbered=False)] if notes else rows


def _link_row(link: LinkRow) -> list[str]:
    ring = {True: "yes", False: "no", None: "unknown"}[link.in_ring]
    return [
        _cell(f"{link.a}-{link.b}"),
        _cell(link.host),
        _cell(link.path or "unknown"),
        latency(link.latency_us) if link.latency_us is not None else "",
        latency(link.class_latency_us) if link.class_latency_us is not None else "",
        bandwidth(link.bandwidth_gbps) if link.bandwidth_gbps is not None else "",
        ring,
        _cell(link.verdict),
    ]


def _links(report: Report) -> list[str]:
    if not report.links:
        return []
    odd = odd_links(report)
    head = ("Pair", "Host", "Path", "Latency", "Usual", "Bandwidth", "In a ring", "Verdict")
    rows = ["## Links", ""]
    if odd:
        rows += [*table(head, map(_link_row, odd[:_ROWS]), (3, 4, 5)), *more(len(odd) - _ROWS, "odd pairs"), ""]
    return [*rows, f"{link_tally(report)}."]


def _timeline(report: Report) -> list[str]:
    if not report.timeline:
        return []
    shown = first_events(report.timeline, _ROWS)
    rows = []
    for event in shown:
        at = moment(event.at, event.clock)
        rank = str(event.rank) if event.rank is not None else ""
        kind = f"**{_cell(event.kind)}** (first failure)" if event.first else _cell(event.kind)
        rows.append([_cell(at), _cell(event.host), rank, kind, _cell(event.text)])
    written = table(("Time", "Host", "Rank", "What", "Text"), rows, (2,))
    return ["## Time line", "", *written, *more(len(report.timeline) - len(shown), "events")]


def _others(report: Report, lead: Finding | None) -> list[str]:
    rest = others(report)
    rows = []
    for finding in rest[:_ROWS]:
        facts = ", ".join(filter(None, (f"confidence {confidence(finding.confidence)}", where_text(finding.where))))
        title = f"{part(finding, lead)}: **{inline(finding.title, _CELL_LIMIT)}**"
        rows.append(f"- {title} {code(finding.cause)} ({inline(facts)})")
    return ["## Other findings", "", *rows, *more(len(rest) - _ROWS, "findings")] if rest else []


def _baseline(report: Report) -> list[str]:
    if not report.baseline:
        return []
    rows = [
        [_cell(row.what), *(_cell(figure(value)) if value else "unknown" for value in (row.baseline, row.current)),
         _cell(row.note)]
        for row in report.baseline[:_ROWS]
    ]
    written = table(("What", "Good run", "This run", "Note"), rows, (1, 2))
    return ["## Against the earlier good run", "", *written, *more(len(report.baseline) - _ROWS, "rows")]


def _gaps(report: Report) -> list[str]:
    groups = gaps(report)
    rows = [f"- {code(gap.hint)} would decide {inline(listed(gap.causes, 4))}" for gap in groups[:_PROBLEMS]]
    title = f"## Not evaluated ({count(len(report.not_evaluated), 'rule')} without input)"
    return [title, "", *rows, *more(len(groups) - _PROBLEMS, "groups")] if groups else []


def _inputs(report: Report, folder: str) -> list[str]:
    if not report.inputs:
        return ["## Inputs", "", "none"]
    known, lines = recognised_lines(report)
    rows = [
        [_cell(row.file), _cell(row.kind), f"{row.lines:,}", f"{row.recognised_lines:,}"]
        for row in report.inputs[:_ROWS]
    ]
    written = table(("File", "Recognised as", "Lines", "Recognised"), rows, (2, 3))
    total = f"{known:,} of {count(lines, 'line')} recognised." + (f" Folder: {code(folder)}" if folder else "")
    return ["## Inputs", "", *written, *more(len(report.inputs) - _ROWS, "files"), "", total]


def _problems(report: Report) -> list[str]:
    rows = []
    for row in report.problems[:_PROBLEMS]:
        times = f" ({row.count:,} times)" if row.count > 1 else ""
        rows.append(f"{row.file}:{row.line}: {row.what}{times}" if row.line else f"{row.file}: {row.what}{times}")
    hidden = len(report.problems) - _PROBLEMS
    return ["## Problems while reading", "", *block(rows), *more(hidden, "problems")] if rows else []


def render(report: Report) -> str:
    """The report as Markdown text with a final line feed."""
    report, folder = without_folder(visible_report(report))
    lead = leading(report)
    parts = (
        _verdict(report, lead),
        _advice(lead),
        _evidence(lead),
        _memory(report),
        _links(report),
        _timeline(report),
        _others(report, lead),
        _baseline(report),
        _gaps(report),
        _inputs(report, folder),
        _problems(report),
    )
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
