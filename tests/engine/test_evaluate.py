from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from analyzer.engine import Database, evaluate, run_rule
from analyzer.engine.evaluate import EVIDENCE_LINES, spread
from analyzer.model import EvidenceLine, make_ref, split_ref

COLUMNS = "ref, host, rank, at, gpu, bus_id, field, text, value"


def cite(ref: int) -> EvidenceLine:
    number, line = split_ref(ref)
    return EvidenceLine(f"in{number}.log", line, f"line {line}")


@pytest.fixture
def rule(read):
    """A rule that passes the rows of gpu_health through, so that a test can give any row."""
    query = f"query: |\n  SELECT {COLUMNS}, text AS said, NULL AS refs, value AS used FROM gpu_health"
    fix = "fix: ['Look at {gpu}.']\nconsidered: ['{said} was said']"
    return read(query=query, key="key: [host]", needs="needs: [gpu_health]", fix=fix, message="message: '{gpu}: {said}'")


def health(*rows):
    return Database.from_rows({"gpu_health": list(rows)})


def test_rows_that_share_the_key_are_merged_whatever_their_order(rule):
    rows = [
        {"host": "a", "rank": 2, "gpu": 10, "ref": make_ref(1, 5), "at": 9.0, "text": "late", "bus_id": "x,y"},
        {"host": "a", "rank": 1, "gpu": 2, "ref": make_ref(0, 7), "text": "first", "bus_id": "y"},
        {"host": "a", "ref": make_ref(0, 7), "at": 8.0, "text": "twice"},
        {"host": "b", "gpu": 3, "text": "other"},
    ]
    results = []
    for order in itertools.permutations(rows):
        findings = evaluate([rule], health(*order), cite).findings
        results.append(findings)
    assert all(result == results[0] for result in results)
    a, b = sorted(results[0], key=lambda one: one.where.host)
    assert a.where.host == ("a",) and a.where.rank == (1, 2)
    assert a.where.gpu == ("2", "10") and a.where.bus_id == ("x", "y")
    assert a.evidence == (cite(make_ref(0, 7)), cite(make_ref(1, 5)))
    assert a.message == "2, 10: first" and a.advice == ("Look at 2, 10.",) and a.considered == ("first was said",)
    assert a.at == 8.0 and b.evidence == () and b.at is None


def test_a_row_overrides_confidence_severity_role_and_title(read):
    query = """query: |
  SELECT ref, host, value AS confidence, field AS severity, text AS role, bus_id AS title FROM gpu_health"""
    rule = read(query=query, key="key: [host]", message="message: x", fix="fix: [y]")
    row = {"host": "a", "ref": 1, "value": 1.7, "field": "warning", "text": "risk", "bus_id": "Own title"}
    (found,) = run_rule(rule, health(row))
    one = found.finding
    assert (one.confidence, one.severity, one.role, one.title) == (1.0, "warning", "risk", "Own title")
    (found,) = run_rule(rule, health({"host": "a", "ref": 1}))
    one = found.finding
    assert (one.confidence, one.severity, one.role, one.title) == (0.9, "error", "root", "A GPU fell off the bus")


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("'high' AS confidence", "column confidence gives 'high', which is no number"),
        ("'fatal' AS severity", "column severity gives 'fatal', which is none of error, warning, info"),
        ("'cause' AS role", "which is none of root, consequence, risk, info"),
        ("'x' AS rank", "column rank gives 'x', which is no rank"),
        ("'1,x' AS refs", "column refs gives 'x', which is no reference"),
        ("-1 AS refs", "column refs gives '-1', which is no reference"),
        ("replace(printf('%99d', 1), ' ', printf('%99d', 1)) AS a, printf('%999d', 1) AS b", "a function got what"),
    ],
)
def test_a_rule_that_fails_is_told_of(read, select, expected):
    rule = read(query=f"query: SELECT ref, {select} FROM xid", key="key: [ref]", message="message: x", fix="fix: [y]")
    database = Database.from_rows({"xid": [{"ref": 1}]})
    evaluation = evaluate([rule, replace(rule, id="sound", query="SELECT ref FROM xid")], database, cite)
    assert [one.rule for one in evaluation.findings] == ["sound"]
    (skipped,) = evaluation.not_evaluated
    assert skipped.rule == rule.id and skipped.missing == ()
    assert skipped.hint.startswith("the rule failed: r.yaml:") and expected in skipped.hint


def test_the_time_limit_of_one_rule_does_not_stop_the_others(read):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS ref FROM c"
    rule = read()
    database = Database.from_rows({"xid": [{"ref": 1, "code": 79}]})
    evaluation = evaluate([rule, replace(rule, id="a.slow", query=endless)], database, cite, seconds=0.2)
    assert len(evaluation.findings) == 1
    assert "longer than 0.2 s" in evaluation.not_evaluated[0].hint


def test_missing_tables_are_told_with_the_command_that_prints_them(read):
    rule = read(needs="needs: ['xid|kernel_event', gpu_device, event]")
    evaluation = evaluate([rule], Database.from_rows({"event": [{"ref": 1}]}), cite)
    (skipped,) = evaluation.not_evaluated
    assert skipped.missing == ("xid|kernel_event", "gpu_device")
    assert "dmesg" in skipped.hint and "nvidia-smi -q" in skipped.hint
    rows = {"kernel_event": [{"ref": 1}], "gpu_device": [{"ref": 1}], "event": [{"ref": 1}]}
    assert evaluate([rule], Database.from_rows(rows), cite).not_evaluated == []


def test_evidence_is_capped_and_shows_every_input(rule):
    many = [{"host": "a", "ref": make_ref(0, line)} for line in range(1, 100)]
    many += [{"host": "a", "ref": make_ref(number, 500)} for number in (3, 7)]
    (finding,) = evaluate([rule], health(*many), cite).findings
    assert len(finding.evidence) == EVIDENCE_LINES
    assert [line.file for line in finding.evidence[:3]] == ["in0.log", "in3.log", "in7.log"]
    assert [line.line for line in finding.evidence[3:]] == list(range(2, 11))


def test_spread_keeps_the_main_references_first():
    refs = [make_ref(1, 9), make_ref(1, 1), make_ref(0, 4), make_ref(1, 9)]
    assert spread(refs, 2) == [make_ref(0, 4), make_ref(1, 9)]
    assert spread([], 5) == []


def test_many_ranks_are_shown_as_runs(read):
    query = "query: SELECT ref, rank, host FROM gpu_health"
    rule = read(query=query, key="key: []", message="message: 'ranks {rank}'", fix="fix: [y]")
    ranks = [*range(64), 70]
    (found,) = run_rule(rule, health(*({"rank": rank, "ref": rank + 1} for rank in ranks)))
    assert found.finding.message == "ranks 0-63, 70"
    assert found.finding.where.rank == tuple(ranks)


def test_a_whole_float_is_an_index(read):
    query = "query: SELECT ref, avg(gpu) AS gpu, avg(rank) AS rank FROM gpu_health"
    rule = read(query=query, key="key: []", message="message: x", fix="fix: [y]")
    (found,) = run_rule(rule, health({"gpu": 3, "rank": 4, "ref": 1}))
    assert found.finding.where.gpu == ("3",) and found.finding.where.rank == (4,)


def test_a_reference_that_leads_nowhere_is_left_out(rule):
    lines = {1: EvidenceLine("f", 1, "t")}
    (finding,) = evaluate([rule], health({"host": "a", "ref": 1}, {"host": "a", "ref": 99}), lines.__getitem__).findings
    assert finding.evidence == (lines[1],)
