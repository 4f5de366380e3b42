"""The HTML report, read back by a parser: closed tags, no script, no request, right figures."""

from __future__ import annotations

import re
import time
from collections import Counter
from html.parser import HTMLParser

import pytest
import report_hostile
import report_story as story

from analyzer.model import Report
from analyzer.report import render_to_string

VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}


class Page(HTMLParser):
    """Collects elements, attributes and text; remembers tags that do not match."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def page(report: Report) -> Page:
    return Page(render_to_string(report, "html"))


REPORTS = {
    "full": story.full(),
    "healthy": story.healthy(),
    "empty": story.empty(),
    "large": report_hostile.large(),
    **{name: report_hostile.hostile(text) for name, text in report_hostile.TEXTS.items()},
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_is_whole_and_inert(name: str) -> None:
    found = page(REPORTS[name])
    assert not found.open
    assert not found.wrong
    assert not found.tags.keys() & {"script", "img", "link", "iframe", "object", "embed", "form", "base"}
    assert found.tags["h1"] == found.tags["title"] == found.tags["main"] == 1
    for tag, attribute, value in found.attributes:
        assert not attribute.startswith("on"), (tag, attribute)
        assert attribute not in {"src", "action", "srcset", "xlink:href"}
        if attribute == "href":
            assert re.fullmatch(r"#[a-z]+[0-9]*", value)


@pytest.mark.parametrize("name", REPORTS)
def test_every_reference_inside_the_page_has_its_target(name: str) -> None:
    found = page(REPORTS[name])
    ids = [value for _, attribute, value in found.attributes if attribute == "id"]
    targets = {value[1:] for _, attribute, value in found.attributes if attribute == "href"}
    labels = {value for _, attribute, value in found.attributes if attribute == "aria-labelledby"}
    assert len(ids) == len(set(ids))
    assert targets | labels <= set(ids)


@pytest.mark.parametrize("name", sorted(report_hostile.TEXTS.keys() - {"blank", "spaces"}))
def test_hostile_text_does_not_change_the_elements(name: str) -> None:
    harmless = "folder/ " if "/" in report_hostile.TEXTS[name] else "plain "
    assert page(REPORTS[name]).tags == page(report_hostile.hostile(harmless)).tags


def test_the_policy_forbids_scripts_and_requests() -> None:
    shown = render_to_string(story.full(), "html")
    assert "default-src 'none'; script-src 'none'" in shown
    assert not re.search(r"url\((?!#hatch)|@import|https?:", shown)


def test_the_templates_evaluate_nothing_of_a_log() -> None:
    assert "{{ 7 * 7 }}" in page(REPORTS["template"]).text


@pytest.mark.parametrize(
    "words",
    [
        "Communication buffers filled all four cards; rank 2 was the first to run out of memory",
        "GPU 2 ran out of memory: it was asked for 2.50 GiB with 0.24 GiB free.",
        "Rank 2, GPU 2, bus 0000:0f:00.0, host node-a",
        "First failure: 2025-03-14 03:04:56.212 UTC.",
        "needs 84.91",
        "GPU 2: Peak of the one-card run (78.5 GB) and the buffers and the context.",
        "PXB 19.8",
        "2.03 times",
        "5 pairs normal.",
        "+600.2 s",
        "\u22121.5 s",
        "first failure:",
        "6,252 of 6,280 lines recognised.",
        "rank2.log:4711 line cut in the middle (3 times)",
        "Fragmentation: only 0.82 GiB is reserved",
    ],
)
def test_the_story_is_told(words: str) -> None:
    assert words in page(story.full()).text


def test_sections_keep_their_numbers_and_order() -> None:
    shown = render_to_string(story.full(), "html")
    ids = re.findall(r'<section class="sec" id="([a-z]+)"', shown)
    assert ids == ["actions", "memory", "links", "ranks", "cards", "evidence", "ruled", "missing", "inputs"]
    healthy = re.findall(r'<section class="sec" id="([a-z]+)"', render_to_string(story.healthy(), "html"))
    assert healthy == ["missing", "links", "evidence", "inputs"]


def test_origins_are_marked() -> None:
    shown = render_to_string(story.full(), "html")
    assert re.search(r'66\.39<abbr class="k" title="read: out-of-memory message">r</abbr>', shown)
    assert re.search(r'11\.33<abbr class="k" title="computed: 1,078 distinct buffers">c</abbr>', shown)


def test_odd_cells_speak_without_colour() -> None:
    cell = re.search(r'<td class="hot ring">(.*?)</td>', render_to_string(story.full(), "html"))
    assert cell
    assert cell[1] == "4.71<small>PXB 19.8</small><small>2.03 times</small>"


def test_a_large_report_is_small_and_quick() -> None:
    report = report_hostile.large()
    start = time.perf_counter()
    shown = render_to_string(report, "html")
    assert time.perf_counter() - start < 10
    assert len(shown.encode()) < 2_000_000
    for rest in ("4,976 more problems", "964 more files", "1,008 more cards", "984 more events", "289 more findings", "261 more findings"):
        assert f"and {rest}" in shown
    assert "and 125 more hosts" in shown
