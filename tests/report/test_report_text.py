"""The terminal report: order, figures, what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_hostile
import report_story as story

from analyzer.model import InputFile, LinkRow, Report, Verdict
from analyzer.report import render_to_string


def text(report: Report, width: int = 80) -> str:
    return render_to_string(report, "text", width)


def test_sections_come_in_the_order_of_need() -> None:
    shown = text(story.full())
    heads = [line for line in shown.splitlines() if line and line == line.upper() and line[0].isalpha()]
    assert [head.split(" (")[0] for head in heads] == [
        "VERDICT",
        "WHAT TO DO",
        "EVIDENCE",
        "MEMORY",
        "LINKS",
        "FIRST FAILURES",
        "OTHER FINDINGS",
        "AGAINST THE EARLIER GOOD RUN",
        "NOT EVALUATED",
        "INPUTS",
        "PROBLEMS WHILE READING",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "  cause       memory.comm-buffers-over-capacity",
        "  where       rank 2, GPU 2, bus 0000:0f:00.0, host node-a",
        "  confidence  high (0.95)",
        "     Check: grep -c 'Destroy COMPLETE' rank0.log",
        "    allocated by the framework    66.39 r +- 5.1 MiB   out-of-memory message",
        "    communication buffers         11.33 c              22 communicators",
        "    capacity                      79.25",
        "    request that failed            2.50   2.26 more than was free",
        "    needed in all                 84.91   5.66 beyond the capacity",
        "  5 pairs normal",
        "  3 files: 6,252 of 6,280 lines recognised",
        "  rank2.log:4711: line cut in the middle (3 times)",
        "  rank9.log: cannot be read",
        "  - sudo lspci -vvv",
    ],
)
def test_a_line_of_the_story(line: str) -> None:
    assert line in text(story.full()).splitlines()


def test_evidence_is_cut_with_an_ellipsis() -> None:
    row = next(line for line in text(story.full()).splitlines() if line.startswith("  rank2.log:6187"))
    assert len(row) <= 80
    assert row.endswith("...")


def test_the_first_failure_is_marked() -> None:
    marked = [line for line in text(story.full()).splitlines() if line.startswith("  > ")]
    assert len(marked) == 1
    assert "node-a rank 2  oom: CUDA out of memory" in marked[0]


def test_bars_end_at_the_same_capacity_line() -> None:
    bars = [line for line in text(story.full()).splitlines() if line.startswith("  GPU ") and "AAA" in line]
    assert len(bars) == 4
    assert len({line.index("|") for line in bars}) == 1
    assert [("!" in line) for line in bars] == [False, False, True, False]
    assert all(letter in bars[0] for letter in "xArC.")


def test_a_healthy_run_says_that_nothing_was_found_and_what_would_help() -> None:
    shown = text(story.healthy())
    assert "Nothing was found: no rule reports an error or a warning on this input." in shown
    assert "That is no proof of health" in shown
    assert "- dmesg -T" in shown
    assert "cause  " not in shown


def test_an_empty_report_says_so() -> None:
    assert "There was no input to read" in text(story.empty())


def test_input_that_nobody_understood_proves_nothing() -> None:
    report = Report(Verdict("x", None, 0.0), inputs=(InputFile("a", "", 10, 7, 0),))
    assert "none of 7 lines was recognised" in text(report)


def test_pairs_that_nobody_measured_are_not_called_normal() -> None:
    rows = tuple(replace(story.link(0, 1), verdict=verdict) for verdict in ("normal", "unmeasured", "unmeasured"))
    assert "1 pair normal, 2 pairs not measured" in text(Report(Verdict("x", None, 0.0), links=rows))


def test_a_bare_link_is_shown_without_inventing() -> None:
    bare = LinkRow(None, "GPU0", "GPU1", None, None, None, None, None, None, None, None, None, "down")
    assert "- GPU0-GPU1, path unknown: down" in text(Report(Verdict("x", None, 0.0), links=(bare,)))


def test_long_lists_say_how_much_is_left_out() -> None:
    shown = text(report_hostile.large())
    for rest in ("and 4,992 more problems", "and 1,012 more files", "and 1,012 more lines", "and 288 more findings"):
        assert rest in shown
    assert "and 82 more groups" in shown
    assert len(shown.splitlines()) < 250


def test_the_shared_folder_is_named_once() -> None:
    inputs = tuple(InputFile(f"/data/job 7/{name}.log", "x", 1, 1, 1) for name in ("a", "b"))
    shown = text(Report(Verdict("x", None, 0.0), inputs=inputs))
    assert shown.count("/data/job 7/") == 1
    assert "\n  a.log  1 of 1 line recognised" in shown


def test_nothing_but_ascii_where_the_story_is_ascii() -> None:
    assert text(story.full()).isascii()
