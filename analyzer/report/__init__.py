"""A finished report as text, JSON, Markdown or HTML. Knows the model only; rich and jinja2 are imported late."""

from __future__ import annotations

from analyzer.model import Report

FORMATS = ("text", "json", "markdown", "html")


def _text(report: Report, width: int, colour: bool) -> str:
    from io import StringIO

    from rich.console import Console

    from analyzer.report import text

    out = StringIO()
    system = "standard" if colour else None
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system=system,  # type: ignore[arg-type]
        legacy_windows=False,
        _environ={},
    )
    text.render(report, console)
    return out.getvalue()


def render_to_string(report: Report, format: str, width: int = 80, colour: bool = False) -> str:
    """The report in one of ``FORMATS``; width and colour matter to text only. ValueError for another format."""
    if format == "text":
        return _text(report, width, colour)
    if format == "json":
        from analyzer.report import json_report

        return json_report.render(report)
    if format == "markdown":
        from analyzer.report import markdown

        return markdown.render(report)
    if format == "html":
        from analyzer.report import html

        return html.render(report)
    raise ValueError(f"unknown report format {format!r}, known: {', '.join(FORMATS)}")
