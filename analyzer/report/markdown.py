"""The report as Markdown for a ticket: GitHub's dialect, nothing from a log can become markup, a link or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from analyzer.model import EvidenceLine, Finding, LedgerCard, LedgerEntry, LinkRow, Report
from analyzer.report.digest import (
    ENTRY_NAMES,
    ENTRY_ORDER,
    ROLE_NAMES,
    card_details,
    card_name,
    cards_by_interest,
    first_events,
    gaps,
    leading,
    listed,
    notable,
    odd_links,
    others,
    recognised_lines,
    silence,
    where_text,
)
from analyzer.report.escape import one_line, prose, shorten, visible_report
from analyzer.report.units import bandwidth, confidence, count, figure, gib, latency, moment, size

_PROSE_LIMIT = 2000
_LINE_LIMIT = 600
_CELL_LIMIT = 200
_ROWS = 16
_EVIDENCE = 20
_PROBLEMS = 8
_MARKS = {"read": "r", "computed": "c", "estimated": "e"}

_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$!]|(?<=:)//|(?<=\bwww)\.")
_LEADING = re.compile(r"^(\d*)([-+=]|(?<=\d)[.)](?=\s|$))")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_BACKTICKS = re.compile(r"`+")


def inline(text: str, limit: int = _PROSE_LIMIT) -> str:
    """Text of a log or a rule as harmless inline Markdown on one line."""
    cut = shorten(prose(text), limit).translate(_ENTITIES)
    escaped = _SPECIAL.sub(lambda found: f"\\{found[0]}", cut)
    return _LEADING.sub(r"\1\\\2", escaped)


def _fence(text: str, shortest: int) -> str:
    return "`" * max([shortest, *(len(run) + 1 for run in _BACKTICKS.findall(text))])


def code(text: str, limit: int = _LINE_LIMIT) -> str:
    """A code span whose delimiter is longer than any run of backticks in it."""
    cut = shorten(one_line(text), limit)
    fence = _fence(cut, 1)
    space = " " if cut.startswith("`") or cut.endswith("`") else ""
    return f"{fence}{space}{cut}{space}{fence}" if cut else ""


def block(lines: Iterable[str], indent: str = "") -> list[str]:
    """A fenced block whose fence is longer than any run of backticks in it."""
    rows = [shorten(one_line(line), _LINE_LIMIT) for line in lines]
    fence = _fence("\n".join(rows), 3)
    return [indent + row for row in (f"{fence}text", *rows, fence)]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """A table of cells that are already Markdown; columns in ``right`` are aligned to the right."""
    numeric = set(right)
    rule = ["---:" if i in numeric else "---" for i in range(len(head))]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]


def _more(hidden: int, noun: str) -> list[str]:
    return ["", f"and {hidden:,} more {noun}"] if hidden > 0 else []


def _cell(text: str | None) -> str:
    return inline(text or "", _CELL_LIMIT)


def _steps(texts: Iterable[str], numbered: bool = True) -> list[str]:
    """List items; further lines of a text become paragraphs of its item."""
    rows: list[str] = []
    for number, text in enumerate(texts, 1):
        mark = f"{number}." if numbered else "-"
        parts = [part for part in text.split("\n") if part.strip()] or [""]
        rows.append(f"{mark} {inline(parts[0])}")
        for part in parts[1:]:
            rows += ["", " " * (len(mark) + 1) + inline(part)]
    return rows


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
    for part in lead.message.split("\n") if lead else []:
        rows += ["", inline(part)]
    if not notable(report):
        rows += ["", *(inline(sentence) for sentence in silence(report))]
    return rows


def _advice(lead: Finding | None) -> list[str]:
    return ["## What to do", "", *_steps(lead.advice)] if lead and lead.advice else []


def _located(line: EvidenceLine) -> str:
    return f"{line.file}:{line.line}: {line.text}" if line.line else f"{line.file}: {line.text}"


def _evidence(lead: Finding | None) -> list[str]:
    if lead is None or not (lead.evidence or lead.considered):
        return []
    rows = ["## Evidence", ""]
    if lead.evidence:
        rows += block(map(_located, lead.evidence[:_EVIDENCE]))
        rows += _more(len(lead.evidence) - _EVIDENCE, "lines")
    if lead.considered:
        rows += ["", "Ruled out:", "", *_steps(lead.considered[:_EVIDENCE], numbered=False)]
    return rows


def _amount(entry: LedgerEntry | None) -> str:
    if entry is None:
        return ""
    error = f" ± {size(entry.error_bytes)}" if entry.error_bytes else ""
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
    rows += _more(len(report.ledger) - len(cards), "cards")
    notes = [f"{card_name(card)}: {note}" for card in cards for note in (card.note, card.demand_note) if note]
    return [*rows, "", *_steps(notes[:_ROWS], numbered=False)] if notes else rows


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
        rows += [*table(head, map(_link_row, odd[:_ROWS]), (3, 4, 5)), *_more(len(odd) - _ROWS, "odd pairs"), ""]
    return [*rows, f"{count(len(report.links) - len(odd), 'pair')} normal."]


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
    return ["## Time line", "", *written, *_more(len(report.timeline) - len(shown), "events")]


def _others(report: Report) -> list[str]:
    rest = others(report)
    rows = []
    for finding in rest[:_ROWS]:
        facts = ", ".join(filter(None, (f"confidence {confidence(finding.confidence)}", where_text(finding.where))))
        title = f"{ROLE_NAMES[finding.role]}: **{inline(finding.title, _CELL_LIMIT)}**"
        rows.append(f"- {title} {code(finding.cause)} ({inline(facts)})")
    return ["## Other findings", "", *rows, *_more(len(rest) - _ROWS, "findings")] if rest else []


def _baseline(report: Report) -> list[str]:
    if not report.baseline:
        return []
    rows = [
        [_cell(row.what), *(_cell(figure(value)) if value else "unknown" for value in (row.baseline, row.current)),
         _cell(row.note)]
        for row in report.baseline[:_ROWS]
    ]
    written = table(("What", "Good run", "This run", "Note"), rows, (1, 2))
    return ["## Against the earlier good run", "", *written, *_more(len(report.baseline) - _ROWS, "rows")]


def _gaps(report: Report) -> list[str]:
    groups = gaps(report)
    rows = [f"- {code(gap.hint)} would decide {inline(listed(gap.causes, 4))}" for gap in groups[:_PROBLEMS]]
    title = f"## Not evaluated ({count(len(report.not_evaluated), 'rule')} without input)"
    return [title, "", *rows, *_more(len(groups) - _PROBLEMS, "groups")] if groups else []


def _inputs(report: Report) -> list[str]:
    if not report.inputs:
        return ["## Inputs", "", "none"]
    known, lines = recognised_lines(report)
    rows = [
        [_cell(row.file), _cell(row.kind), f"{row.lines:,}", f"{row.recognised_lines:,}"]
        for row in report.inputs[:_ROWS]
    ]
    written = table(("File", "Recognised as", "Lines", "Recognised"), rows, (2, 3))
    total = f"{known:,} of {count(lines, 'line')} recognised."
    return ["## Inputs", "", *written, *_more(len(report.inputs) - _ROWS, "files"), "", total]


def _problems(report: Report) -> list[str]:
    rows = []
    for row in report.problems[:_PROBLEMS]:
        times = f" ({row.count:,} times)" if row.count > 1 else ""
        rows.append(f"{row.file}:{row.line}: {row.what}{times}" if row.line else f"{row.file}: {row.what}{times}")
    hidden = len(report.problems) - _PROBLEMS
    return ["## Problems while reading", "", *block(rows), *_more(hidden, "problems")] if rows else []


def render(report: Report) -> str:
    """The report as Markdown text with a final line feed."""
    report = visible_report(report)
    lead = leading(report)
    parts = (
        _verdict(report, lead),
        _advice(lead),
        _evidence(lead),
        _memory(report),
        _links(report),
        _timeline(report),
        _others(report),
        _baseline(report),
        _gaps(report),
        _inputs(report),
        _problems(report),
    )
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
