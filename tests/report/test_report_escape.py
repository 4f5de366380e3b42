"""Nothing from a log may act on the reader: every format, every string field."""

from __future__ import annotations

import json

import pytest
import report_hostile
import report_story as story
from rich.cells import cell_len

from analyzer.report import FORMATS, render_to_string
from analyzer.report.escape import brief, one_line, prose, shorten, visible, visible_report

hostile = pytest.mark.parametrize("name", report_hostile.TEXTS)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b2J", "\\x9b2J"),
        ("a\x00b\x7f", "a\\x00b\\x7f"),
        ("\u202eabc", "\\u202eabc"),
        ("\u2028", "\\u2028"),
        ("\U000e0041", "\\U000e0041"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\ud800"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\\x0db"),
        ("a\u00a0b\u3000c", "a b c"),
        ("漢字 é", "漢字 é"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_unprintable_characters_are_spelled_out(raw: str, shown: str) -> None:
    assert visible(raw) == shown
    assert visible(shown) == shown


def test_a_log_line_stays_one_line() -> None:
    assert one_line("  a\nb\tc \n") == "a\\nb c"
    assert prose(" a \n\n b\tc ") == "a b c"
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 3) == "abc... (4 more characters)"


def test_a_sentence_is_cut_between_words() -> None:
    assert brief("one two three", 13) == "one two three"
    assert brief("one two three, four", 15) == "one two three ..."
    assert brief("x" * 20, 5) == "xxxxx..."


@hostile
def test_the_whole_report_becomes_visible(name: str) -> None:
    report = visible_report(report_hostile.hostile(report_hostile.TEXTS[name]))
    assert visible_report(report) == report
    assert all(char.isprintable() or char in "\n\t" for char in str(report))


@hostile
@pytest.mark.parametrize("format", FORMATS)
def test_no_format_prints_a_control_character(name: str, format: str) -> None:
    text = render_to_string(report_hostile.hostile(report_hostile.TEXTS[name]), format)
    bad = {char for char in text if not (char.isprintable() or char in "\n\t\u00a0")}
    assert not bad
    text.encode("utf-8")


@hostile
def test_decoded_json_is_harmless_too(name: str) -> None:
    text = render_to_string(report_hostile.hostile(report_hostile.TEXTS[name]), "json")
    assert text.isascii()
    assert all(char.isprintable() or char in "\n\t" for char in str(json.loads(text)))


@hostile
@pytest.mark.parametrize("width", [80, 40, 132])
def test_text_keeps_to_its_width(name: str, width: int) -> None:
    text = render_to_string(report_hostile.hostile(report_hostile.TEXTS[name]), "text", width)
    assert max(map(cell_len, text.splitlines())) <= width


@hostile
def test_colour_adds_nothing_but_colour(name: str) -> None:
    import re

    report = report_hostile.hostile(report_hostile.TEXTS[name])
    coloured = render_to_string(report, "text", colour=True)
    assert not re.sub(r"\x1b\[[0-9;]*m", "", coloured).count("\x1b")


def test_rich_markup_of_a_log_means_nothing() -> None:
    text = render_to_string(report_hostile.hostile("[bold red]x[/] :smile: "), "text")
    assert "[bold red]x[/] :smile:" in text


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_report_gives_the_same_bytes(format: str) -> None:
    assert render_to_string(story.full(), format) == render_to_string(story.full(), format)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown report format 'pdf', known: text, json, markdown, html"):
        render_to_string(story.full(), "pdf")
