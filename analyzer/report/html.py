"""The report as one self-contained HTML file: no script, no request, autoescape always on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace

from jinja2 import Environment, PackageLoader, StrictUndefined

from analyzer.model import Figure, Finding, Report
from analyzer.report import bars, citations, digest, html_view, pairs, units
from analyzer.report.escape import shorten, visible_report
from analyzer.report.paths import without_folder

_LIMITS = SimpleNamespace(findings=12, passages=40, rows=24, few=10, long=60, columns=6, cards=16, events=40)
_FURTHER_ADVICE = 6


def _per_cent(value: float) -> str:
    return f"{value:.3f}%"


def _pixel(value: float) -> str:
    return f"{value:.1f}"


def _figure(value: Figure) -> str:
    return units.figure(value).replace("+-", "\u00b1")


_FUNCTIONS: dict[str, Callable[..., object]] = {
    "gib": units.gib,
    "size": units.size,
    "margin": units.margin,
    "latency": pairs.latency_micro,
    "bandwidth": units.bandwidth,
    "figure": _figure,
    "moment": units.moment,
    "confidence": units.confidence,
    "confidence_word": units.confidence_word,
    "confidence_pips": units.confidence_pips,
    "count": units.count,
    "listed": digest.listed,
    "link_tally": digest.link_tally,
    "part": digest.part,
    "where_text": digest.where_text,
    "card_name": digest.card_name,
    "card_details": digest.card_details,
    "css_class": bars.css_class,
    "apart": bars.apart,
    "heat": pairs.heat,
    "place": citations.place,
    "entry_of": html_view.entry_of,
    "pc": _per_cent,
    "px": _pixel,
}


@cache
def _environment() -> Environment:
    """The templates; every expression is escaped, an unknown name is an error."""
    environment = Environment(
        loader=PackageLoader("analyzer.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_FUNCTIONS, limits=_LIMITS)
    environment.filters["short"] = shorten
    return environment


def _memory(report: Report, lead: Finding | None) -> dict[str, object]:
    """Bars, ledger and comparison."""
    cards = list(report.ledger)
    if len(cards) > _LIMITS.columns:
        cards = digest.cards_by_interest(cards)
    failed = [card for card in report.ledger if card.failed][:1]
    memory = lead is not None and lead.cause.startswith("memory")
    rows = report.baseline[: _LIMITS.rows]
    return {
        "hero": bars.chart(failed) if memory else None,
        "chart": bars.chart(report.ledger),
        "cards": cards,
        "notes": html_view.ledger_notes(cards)[: _LIMITS.few],
        "ledger_rows": html_view.ledger_rows(cards),
        "ledger_sums": html_view.ledger_sums(cards[: _LIMITS.columns]),
        "comparisons": [(row, *html_view.comparison_shares(row.baseline, row.current)) for row in rows],
    }


def _findings(report: Report, lead: Finding | None) -> dict[str, object]:
    """Findings with their evidence, numbered once over the whole report; what was ruled out; further advice."""
    every = ([lead] if lead else []) + digest.others(report)
    cites = citations.Citations()
    apart = [finding for finding in every if finding is not lead and finding.role in ("root", "risk")]
    return {
        "findings": every,
        "cites": cites,
        "passages": [(finding, cites.passage(finding.evidence)) for finding in every[: _LIMITS.passages]],
        "other_lines": cites.passage(citations.rest(report)),
        "considered": [(text, finding) for finding in every for text in finding.considered],
        "further_advice": [(finding, finding.advice[0]) for finding in apart if finding.advice][:_FURTHER_ADVICE],
    }


def _context(report: Report) -> dict[str, object]:
    """Everything that the templates name."""
    report, folder = without_folder(visible_report(report))
    lead = digest.leading(report)
    found = _findings(report, lead)
    hosts, more_hosts = pairs.by_host(report.links)
    return {
        **found,
        **_memory(report, lead),
        "report": report,
        "folder": folder,
        "lead": lead,
        "banner": html_view.banner(report),
        "made_by": html_view.made_by(report),
        "answers": html_view.answers(report, lead),
        "sections": html_view.sections(report, lead, bool(found["considered"])),
        "hosts": hosts,
        "more_hosts": more_hosts,
        "odd": digest.odd_links(report),
        "events": html_view.events(report, _LIMITS.events),
        "gaps": digest.gaps(report),
        "recognised": digest.recognised_lines(report),
        "meta": html_view.meta_rows(report, _LIMITS.rows),
    }


def render(report: Report) -> str:
    """The report as the text of one HTML file."""
    return _environment().get_template("report.html.j2").render(_context(report)).strip() + "\n"
