from __future__ import annotations

import pytest

from analyzer.engine import test_rule as run
from analyzer.engine import test_rules as run_all

TESTS = """tests:
  - name: fires
    given:
      xid: [{host: n1, bus_id: a, code: 79, pid: 7}]
    expect:
      - {host: n1}
  - name: quiet
    given:
      xid: [{host: n1, bus_id: a, code: 31, pid: 7}]
    expect: []"""
TEXTS = {"key": "key: [host]", "message": "message: 'n {n}'", "fix": "fix: [x]", "tests": TESTS}


def failures(read, sql: str, **changes: str) -> list[str]:
    return [f.what for f in run(read(query="query: |\n  " + sql, **{**TEXTS, **changes}))]


def test_a_sound_rule_has_no_failures(read):
    assert run(read()) == []
    assert failures(read, "SELECT host, min(ref) AS ref, 1 AS n FROM xid WHERE code = 79 GROUP BY host") == []


def test_a_failure_names_rule_file_line_and_test(read):
    rule = read(query="query: SELECT host, ref, 1 AS n FROM xid WHERE code = 80", **TEXTS)
    (failure,) = run_all([rule])
    assert str(failure) == "r.yaml:12: gpu.fallen-off-bus: test 'fires': expected 1 finding, got no finding"
    assert failure.test == "fires"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT host, min(ref) AS ref, count(*) AS n FROM xid WHERE code = 79 GROUP BY host",
            "every event logged twice: message changed from n 1 to n 2",
        ),
        (
            "SELECT host, ref, rowid AS n FROM xid WHERE code = 79",
            "every event logged twice, shuffled: message changed from n 1 to n 2",
        ),
        (
            "SELECT host, min(ref) AS ref, 1 AS n FROM xid GROUP BY host",
            "expected no finding, got 1 finding; n 1",
        ),
        (
            "SELECT host, NULL AS ref, 1 AS n FROM xid WHERE code = 79",
            "a finding cites no line (ref and refs are NULL): n 1",
        ),
        (
            "SELECT host, ref, 1 AS n FROM xid WHERE code = 79 AND bus_id IS NOT NULL",
            "WHERE term 'bus_id IS NOT NULL' is untested",
        ),
        (
            "SELECT host, min(ref) AS ref, 1 AS n FROM xid WHERE code = 79 GROUP BY host HAVING count(DISTINCT pid) < 5",
            "HAVING term 'count(DISTINCT pid) < 5' is untested",
        ),
        (
            "SELECT host, ref, 'x' || (SELECT 1 WHERE 1 = 1) AS n FROM xid WHERE code = 79",
            "WHERE term '1 = 1' is untested",
        ),
    ],
)
def test_faults_of_queries_are_found(read, sql, expected):
    assert failures(read, sql) == ([expected] if expected else [])


def test_a_join_that_forgets_the_host_finds_the_other_host(read):
    tests = """tests:
  - name: fires
    given:
      xid: [{host: n1, bus_id: a, code: 79}]
      gpu_device: [{host: n1, bus_id: a}]
    expect: [{host: n1}]
  - name: quiet
    given:
      xid: [{host: n1, bus_id: b, code: 79}]
      gpu_device: [{host: n1, bus_id: a}]
    expect: []"""
    head = "SELECT DISTINCT d.host, x.ref, 1 AS n FROM gpu_device d JOIN xid x ON x.bus_id = d.bus_id"
    (what,) = failures(read, head, tests=tests)
    assert what == "with the rows of quiet test 'quiet' on another host: a finding for that host: n 1"
    assert failures(read, f"{head} AND x.host = d.host", tests=tests) == []


def test_a_dependence_on_the_order_of_rows_is_found(read):
    tests = TESTS.replace("pid: 7}]\n    expect:\n", "pid: 7}, {host: n1, code: 79, pid: 8}]\n    expect:\n")
    sql = "SELECT DISTINCT host, min(ref) OVER () AS ref, first_value(pid) OVER () AS n FROM xid WHERE code = 79"
    (what, *_) = failures(read, sql, tests=tests)
    assert what == "rows and tables reversed: message changed from n 7 to n 8"


def test_a_quiet_test_without_the_needed_rows_proves_nothing(read):
    (what,) = failures(
        read, "SELECT host, ref, 1 AS n FROM xid WHERE code = 79", needs="needs: [xid, gpu_device]",
        tests=TESTS.replace("code: 79, pid: 7}]", "code: 79}]\n      gpu_device: [{gpu: 0}]"),
    )
    assert what.startswith("given has no row of gpu_device")


def test_a_query_that_fails_is_a_failure(read):
    sql = "SELECT host, ref, 1 AS n, 'nope' AS severity FROM xid WHERE code = 79"
    (what,) = failures(read, sql)
    assert "column severity gives 'nope'" in what


@pytest.mark.parametrize(
    ("expect", "what"),
    [
        ("{host: n2}", "expectation in line 17: host: expected n2, got n1"),
        ("{host: [n1, n2]}", "expectation in line 17: host: expected n1, n2, got n1"),
        ("{rank: 3}", "rank: expected 3, got nothing"),
        ("{rank: null, host: n1}", ""),
        ("{n: 1}", ""),
        ("{n: 2}", "n: expected 2, got 1"),
        ("{message~: [n, '1']}", ""),
        ("{message~: [n, '7']}", "message lacks '7': n 1"),
        ("{message: n 1, title~: bus, fix~: x, role: root, severity: error, confidence: 0.9, at: null}", ""),
        ("{confidence: 0.8}", "confidence: expected 0.8, got 0.9"),
    ],
)
def test_expectations(read, expect, what):
    tests = TESTS.replace("      - {host: n1}", f"      - {expect}")
    found = failures(read, "SELECT host, rank, ref, 1 AS n FROM xid WHERE code = 79", tests=tests)
    assert (found == []) if not what else (len(found) == 1 and what in found[0])


def test_every_expectation_needs_a_finding_of_its_own(read):
    tests = TESTS.replace("pid: 7}]\n    expect:\n", "pid: 7}, {host: n2, code: 79}]\n    expect:\n")
    sql = "SELECT host, ref, 1 AS n FROM xid WHERE code = 79"
    both = tests.replace("- {host: n1}", "- {n: 1}\n      - {host: n1}")
    assert failures(read, sql, tests=both) == []
    twice = tests.replace("- {host: n1}", "- {host: n1}\n      - {host: n1}")
    assert failures(read, sql, tests=twice) == ["two expectations are met by the same finding only"]
