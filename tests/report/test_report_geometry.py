"""The drawings: lengths of the memory bars, places of the GPUs in the polygon, grouping of many cards."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_hostile
import report_story as story

from analyzer.report import bars, pairs, units
from analyzer.report.citations import Citations, rest
from analyzer.report.digest import first_events, gaps, int_ranges, leading, listed, part
from analyzer.report.text_memory import bar


def story_chart() -> bars.Chart:
    chart = bars.chart(story.full().ledger)
    assert chart is not None
    return chart


def test_a_full_card_ends_at_the_capacity_line() -> None:
    first = story_chart().bars[0]
    assert first.segments[-1].kind == "free"
    assert first.segments[-1].x + first.segments[-1].width == pytest.approx(first.capacity_x)
    assert [segment.kind for segment in first.segments] == ["ctx", "alloc", "cache", "comm", "free"]


def test_the_failed_request_starts_at_what_is_used_and_the_demand_ends_the_bar() -> None:
    failed = story_chart().bars[2]
    request, peak = failed.segments[-2:]
    assert (request.kind, peak.kind) == ("req", "peak")
    comm = failed.segments[-3]
    assert request.x == pytest.approx(comm.x + comm.width)
    assert request.x < failed.capacity_x < request.x + request.width
    axis = 91_173_933_312 * 1.13
    assert peak.x + peak.width == pytest.approx(100 * 91_173_933_312 / axis) == pytest.approx(failed.end_x)


def test_segments_touch_and_stay_on_the_axis() -> None:
    for drawn in story_chart().bars:
        for left, right in zip(drawn.segments, drawn.segments[1:], strict=False):
            assert right.x == pytest.approx(left.x + left.width)
        assert 0 < drawn.capacity_x <= drawn.end_x < 100


def test_ticks_keep_clear_of_the_capacity() -> None:
    chart = story_chart()
    assert [text for _, text in chart.ticks] == ["0", "20", "40", "60"]
    assert chart.capacity == "79.25"


def test_many_cards_share_a_bar() -> None:
    chart = bars.chart(report_hostile.large().ledger)
    assert chart is not None
    assert [drawn.title for drawn in chart.bars] == ["GPU 5", "1,023 further cards"]
    assert [drawn.failed for drawn in chart.bars] == [True, False]


def test_there_is_no_chart_without_capacity() -> None:
    assert bars.chart([]) is None
    assert bars.chart([replace(story.card(0), capacity_bytes=0)]) is None


def test_a_text_bar_shows_the_smallest_part_and_fills_the_capacity() -> None:
    drawn = bar(story.card(0), story.CAPACITY / 50)
    assert drawn.index("|") == 50
    assert [drawn.count(letter) > 0 for letter in "xArC."] == [True] * 5
    assert drawn.count("A") > drawn.count("C") > drawn.count("x")


def test_the_ring_order_is_found_from_its_edges() -> None:
    edges = [(0, 2), (2, 1), (1, 3), (0, 3)]
    every = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    ring = {frozenset(edge) for edge in edges}
    links = [replace(story.link(a, b), in_ring=frozenset((a, b)) in ring) for a, b in every]
    hosts, more = pairs.by_host(links)
    assert [node.name for node in hosts[0].nodes] == ["GPU0", "GPU2", "GPU1", "GPU3"]
    assert more == 0


@pytest.mark.parametrize("count", range(2, 9))
def test_the_polygon_stays_inside_its_picture(count: int) -> None:
    links = [replace(story.link(0, 1), a=f"GPU{a}", b=f"GPU{b}") for a in range(count) for b in range(a + 1, count)]
    nodes = pairs.by_host(links)[0][0].nodes
    assert len({(round(node.x), round(node.y)) for node in nodes}) == count
    assert all(34 <= node.x <= 456 - 34 and 13 <= node.y <= 300 - 13 for node in nodes)


def test_of_many_gpus_only_the_odd_ones_keep_a_row() -> None:
    links = [replace(story.link(1, 2), a=f"GPU{a}", b=f"GPU{b}") for a in range(20) for b in range(a + 1, 20)]
    odd = [replace(link, verdict="slow") if (link.a, link.b) == ("GPU3", "GPU11") else link for link in links]
    host = pairs.by_host(odd)[0][0]
    assert host.names == ("GPU3", "GPU11")
    assert host.left_out == 18
    assert not host.nodes


@pytest.mark.parametrize(("ratio", "shade"), [(None, ""), (1.19, ""), (1.2, "warm"), (1.49, "warm"), (1.5, "hot")])
def test_the_shade_follows_the_ratio(ratio: float | None, shade: str) -> None:
    assert pairs.heat(replace(story.link(0, 1), ratio=ratio)) == shade


def test_names_are_sorted_as_people_count() -> None:
    names = ["GPU10", "NIC0", "GPU9", "", "\u00b2", "GPU\u0663"]
    assert sorted(names, key=pairs.natural)[:4] == ["", "GPU\u0663", "GPU9", "GPU10"]


def test_a_line_has_one_number_wherever_it_is_cited() -> None:
    cites = Citations()
    first = cites.passage((story.OOM, story.ALLOC, story.OOM))
    second = cites.passage((story.OOM, story.P2P))
    assert [cited.number for cited in first.cited] == [1, 2]
    assert (second.earlier, [cited.number for cited in second.cited]) == ((1,), [3])
    assert cites.numbers((story.P2P, story.TOPO)) == [3]
    assert story.WATCHDOG in rest(story.full())


def test_numbers_become_ranges() -> None:
    assert int_ranges([7, 3, 0, 1, 2]) == "0-3, 7"
    assert int_ranges([0, 1]) == "0, 1"
    assert listed([str(n) for n in range(9)]) == "0, 1, 2, 3, 4, 5 and 3 more"


def test_events_around_the_first_failure_are_chosen() -> None:
    rows = report_hostile.large().timeline
    assert [row.rank for row in first_events(rows, 3)] == [516, 517, 518]
    assert first_events((), 3) == []


def test_gaps_are_grouped_by_what_would_fill_them() -> None:
    first = gaps(story.full())[0]
    assert (first.rules, first.causes, first.missing) == (2, ("gpu.xid", "pcie.aer"), ("xid", "kernel_event"))


def test_the_leading_finding_is_that_of_the_verdict() -> None:
    report = story.full()
    verdict = replace(report.verdict, cause="topology.asymmetric-link-latency")
    lead = leading(replace(report, verdict=verdict))
    assert lead is not None
    assert lead.role == "risk"
    assert leading(story.healthy()) is None


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.gib(71_283_245_056), "66.39"),
        (units.size(883_949_568), "0.82 GiB"),
        (units.size(5_368_709), "5.1 MiB"),
        (units.size(-2_684_354_560), "-2.50 GiB"),
        (units.gb_unit(78_500_000_000), "78.5 GB"),
        (units.margin(5_242), ""),
        (units.latency(4.71), "4.71 us"),
        (units.bandwidth(19.84), "19.8 GB/s"),
        (units.moment(None), "undated"),
        (units.moment(91.5, "boot"), "boot +91.500 s"),
        (units.moment(1e300), "undated"),
        (units.moment(story.T0), "2025-03-14 03:04:56.212 UTC"),
        (units.confidence(0.9), "high (0.90)"),
        (units.confidence(0.89), "good (0.89)"),
        (units.confidence(0.5), "moderate (0.50)"),
        (units.confidence(0.49), "low (0.49)"),
        (units.count(1, "card"), "1 card"),
        (units.count(1204, "entry", "entries"), "1,204 entries"),
    ],
)
def test_figures_as_text(shown: str, expected: str) -> None:
    assert shown == expected


@pytest.mark.parametrize(("confidence", "marks"), [(0.95, 4), (0.7, 3), (0.5, 2), (0.0, 1)])
def test_confidence_as_marks(confidence: float, marks: int) -> None:
    assert units.confidence_pips(confidence) == marks


@pytest.mark.parametrize(("count", "labels"), [(4, 4), (8, 1)])
def test_a_crowded_picture_labels_only_what_is_odd(count: int, labels: int) -> None:
    ring = [(i, (i + 1) % count) for i in range(count)]
    links = [replace(story.link(1, 2), a=f"GPU{a}", b=f"GPU{b}", in_ring=True) for a, b in ring]
    links[2] = replace(links[2], verdict="slow")
    edges = pairs.by_host(links)[0][0].edges
    assert len([edge for edge in edges if edge.label]) == labels
    assert [edge.kind for edge in edges].count("slow") == 1


def test_a_second_root_is_called_independent() -> None:
    lead, second, third = story.findings()
    assert part(lead, lead) == "root cause"
    assert part(replace(second, role="root"), lead) == "independent finding"
    assert part(replace(second, role="root"), None) == "root cause"
    assert part(third, lead) == "consequence"
