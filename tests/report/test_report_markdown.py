"""The Markdown report, read back by a Markdown parser: log text makes no markup."""

from __future__ import annotations

from collections import Counter

import pytest
import report_hostile
import report_story as story
from markdown_it import MarkdownIt
from markdown_it.token import Token

from analyzer.model import Report
from analyzer.report import render_to_string

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
COUNTED = ("heading_open", "fence", "table_open", "bullet_list_open", "ordered_list_open", "list_item_open", "tr_open")


def tokens(report: Report) -> list[Token]:
    found = PARSER.parse(render_to_string(report, "markdown"))
    return found + [child for token in found for child in token.children or ()]


def shape(report: Report) -> Counter[str]:
    return Counter(token.type for token in tokens(report) if token.type in COUNTED)


@pytest.mark.parametrize("name", report_hostile.TEXTS)
def test_hostile_text_stays_text(name: str) -> None:
    found = tokens(report_hostile.hostile(report_hostile.TEXTS[name]))
    kinds = {token.type for token in found}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "s_open", "em_open", "blockquote_open", "hr"}
    assert [token.tag for token in found if token.type == "heading_open"].count("h1") == 1


@pytest.mark.parametrize("name", sorted(report_hostile.TEXTS.keys() - {"blank", "spaces"}))
def test_hostile_text_does_not_change_the_shape(name: str) -> None:
    assert shape(report_hostile.hostile(report_hostile.TEXTS[name])) == shape(report_hostile.hostile("plain "))


def test_no_bare_address_becomes_a_link_on_a_forge() -> None:
    shown = render_to_string(report_hostile.hostile("http://evil.example www.evil.example "), "markdown")
    bare = "".join(text for part in shown.split("```")[::2] for text in part.split("`")[::2])
    assert "http://" not in bare
    assert "www.evil" not in bare


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    shown = render_to_string(report_hostile.hostile("`````` "), "markdown")
    assert "\n```````text\n" in shown


def test_the_story_reads_well() -> None:
    shown = render_to_string(story.full(), "markdown")
    assert shown.startswith("# Communication buffers filled all four cards; rank 2 was the first to run out of memory\n")
    assert "- **Confidence:** high (0.95)" in shown
    assert "| **GPU 2** rank 2, node-a, 0000:0f:00.0, NVIDIA A100-SXM4-80GB | 0.47 c ± 5.1 MiB | 66.39 r ± 5.1 MiB |" in shown
    assert "| GPU0-GPU3 | node-a | PXB | 4.71 us | 2.32 us | 19.8 GB/s | yes | slow, no NVLink |" in shown
    assert "**oom** (first failure)" in shown
    assert "5 pairs normal." in shown


def test_a_large_report_fits_into_a_ticket() -> None:
    shown = render_to_string(report_hostile.large(), "markdown")
    assert len(shown) < 65_536
    assert "and 4,992 more problems" in shown
