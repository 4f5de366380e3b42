"""A finished report as text, JSON, Markdown or HTML. Knows the model only; rich and jinja2 are imported late."""

from __future__ import annotations

from analyzer.model import Report

FORMATS = ("text", "json", "markdown", "html")


def _text(report: Report, width: int, colour: bool) -> str:
    from io import StringIO

    from rich.console import Console

    from analyzer.report.text import render

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
    render(report, console)
    return out.getvalue()


def render_to_string(report: Report, format: str, width: int = 80, colour: bool = False) -> str:
    """The report in one of ``FORMATS``; width and colour matter to text only. ValueError for another format."""
    if format == "text":
        return _text(report, width, colour)
    if format == "json":
        from analyzer.report.json_report import render as render_json_report

        return render_json_report(report)
    if format == "markdown":
        from analyzer.report.markdown import render as render_markdown

        return render_markdown(report)
    if format == "html":
        from analyzer.report.html import render as render_html

        return render_html(report)
    raise ValueError(f"unknown report format {format!r}, known: {', '.join(FORMATS)}")
