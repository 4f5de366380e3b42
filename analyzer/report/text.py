"""The report for a terminal or a pipe: verdict, what to do, evidence, then the rest. ASCII frames, no colour needed."""

from __future__ import annotations

from rich.console import Console

from analyzer.model import Finding, LinkRow, Report
from analyzer.report.digest import (
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
from analyzer.report.escape import prose, visible_report
from analyzer.report.paths import without_folder
from analyzer.report.terminal import Page
from analyzer.report.text_memory import memory
from analyzer.report.units import bandwidth, confidence, count, figure, latency, moment, size

_EVIDENCE = 12
_EVENTS = 8
_OTHERS = 12
_LINKS = 8
_GAPS = 8
_PROBLEMS = 8
_INPUTS = 12


def _verdict(page: Page, report: Report, lead: Finding | None) -> None:
    verdict = report.verdict
    page.line("VERDICT")
    page.paragraph(verdict.headline, 2, style="bold")
    rows = []
    if verdict.cause is not None:
        rows.append(("cause", verdict.cause))
    where = where_text(verdict.where) or (where_text(lead.where) if lead else "")
    if where:
        rows.append(("where", where))
    if verdict.cause is not None:
        rows.append(("confidence", confidence(verdict.confidence)))
    if rows:
        page.line()
        page.fields(rows)
    if lead is not None and lead.message:
        page.line()
        page.block(lead.message)
    if not notable(report):
        page.line()
        for sentence in silence(report):
            page.paragraph(sentence)


def _advice(page: Page, lead: Finding | None) -> None:
    if lead is None or not lead.advice:
        return
    page.heading("What to do")
    for number, step in enumerate(lead.advice, 1):
        page.item(f"{number}.", step)


def _evidence(page: Page, lead: Finding | None) -> None:
    if lead is None or not (lead.evidence or lead.considered):
        return
    page.heading("Evidence")
    for line in lead.evidence[:_EVIDENCE]:
        place = f"{line.file}:{line.line}" if line.line else line.file
        page.clipped(f"{place}  {line.text}")
    page.more(len(lead.evidence) - _EVIDENCE, "lines")
    if lead.considered:
        page.line("  Ruled out:")
        for reason in lead.considered[:_EVIDENCE]:
            page.item("-", reason, 4)


def _link(link: LinkRow) -> str:
    parts = [f"{link.a}-{link.b}"]
    if link.latency_us is not None:
        usual = f" (usual {latency(link.class_latency_us)})" if link.class_latency_us is not None else ""
        parts.append(latency(link.latency_us) + usual)
    if link.ratio is not None:
        parts.append(f"{link.ratio:.2f} times")
    if link.bandwidth_gbps is not None:
        parts.append(bandwidth(link.bandwidth_gbps))
    parts.append(f"path {link.path or 'unknown'}")
    if link.in_ring is not None:
        parts.append("in a ring" if link.in_ring else "in no ring")
    return ", ".join([*parts, *filter(None, (link.transport, link.host))]) + f": {link.verdict}"


def _links(page: Page, report: Report) -> None:
    if not report.links:
        return
    odd = odd_links(report)
    page.heading("Links")
    for link in odd[:_LINKS]:
        page.item("-", _link(link))
    page.more(len(odd) - _LINKS, "odd pairs")
    page.paragraph(link_tally(report))


def _timeline(page: Page, report: Report) -> None:
    if not report.timeline:
        return
    page.heading("First failures (> the first one)")
    shown = first_events(report.timeline, _EVENTS)
    for row in shown:
        rank = f"rank {row.rank}" if row.rank is not None else ""
        who = " ".join(part for part in (row.host, rank) if part)
        text = "  ".join(part for part in (moment(row.at, row.clock), who, f"{row.kind}: {row.text}") if part)
        page.clipped(text, 2, "bold" if row.first else "", "> " if row.first else "  ")
    page.more(len(report.timeline) - len(shown), "events")


def _others(page: Page, report: Report, lead: Finding | None) -> None:
    rest = others(report)
    if not rest:
        return
    page.heading("Other findings")
    for finding in rest[:_OTHERS]:
        sure = f"confidence {confidence(finding.confidence)}"
        page.item("-", f"{part(finding, lead)}: {prose(finding.title)}")
        page.clipped(", ".join(filter(None, (finding.cause, sure, where_text(finding.where)))), 4, "dim")
        if finding.role in ("root", "risk") and finding.advice:
            page.clipped(f"do: {prose(finding.advice[0])}", 4)
    page.more(len(rest) - _OTHERS, "findings")


def _baseline(page: Page, report: Report) -> None:
    if not report.baseline:
        return
    page.heading("Against the earlier good run")
    for row in report.baseline[:_INPUTS]:
        before = figure(row.baseline) if row.baseline else "unknown"
        after = figure(row.current) if row.current else "unknown"
        page.item("-", f"{row.what}: {before} before, {after} now" + (f"; {row.note}" if row.note else ""))
    page.more(len(report.baseline) - _INPUTS, "rows")


def _gaps(page: Page, report: Report) -> None:
    groups = gaps(report)
    if not groups:
        return
    page.heading(f"Not evaluated ({count(len(report.not_evaluated), 'rule')} without input)")
    for gap in groups[:_GAPS]:
        page.item("-", gap.hint)
        page.clipped(f"would decide: {listed(gap.causes, 3)} (needs {listed(gap.missing, 3)})", 4, "dim")
    page.more(len(groups) - _GAPS, "groups")


def _inputs(page: Page, report: Report, folder: str) -> None:
    page.heading("Inputs")
    if folder:
        page.paragraph(f"in {folder}")
    if not report.inputs:
        page.line("  none")
        return
    recognised, lines = recognised_lines(report)
    for row in report.inputs[:_INPUTS]:
        known = f"{row.recognised_lines:,} of {count(row.lines, 'line')} recognised"
        room = max(8, page.width - len(known) - 4)
        page.clipped(f"{page.clip(row.file, room)}  {known}")
        page.clipped(f"{row.kind or 'unknown format'}, {size(row.bytes)}", 4, "dim")
    page.more(len(report.inputs) - _INPUTS, "files")
    if len(report.inputs) > 1:
        page.paragraph(f"{count(len(report.inputs), 'file')}: {recognised:,} of {count(lines, 'line')} recognised")


def _problems(page: Page, report: Report) -> None:
    if not report.problems:
        return
    page.heading("Problems while reading")
    for row in report.problems[:_PROBLEMS]:
        times = f" ({row.count:,} times)" if row.count > 1 else ""
        page.clipped(f"{row.file}:{row.line}: {row.what}{times}" if row.line else f"{row.file}: {row.what}{times}")
    page.more(len(report.problems) - _PROBLEMS, "problems")


def render(report: Report, console: Console) -> None:
    """Writes the report to the console, no line wider than it."""
    report, folder = without_folder(visible_report(report))
    page, lead = Page(console), leading(report)
    _verdict(page, report, lead)
    _advice(page, lead)
    _evidence(page, lead)
    memory(page, report)
    _links(page, report)
    _timeline(page, report)
    _others(page, report, lead)
    _baseline(page, report)
    _gaps(page, report)
    _inputs(page, report, folder)
    _problems(page, report)
