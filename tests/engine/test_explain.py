from __future__ import annotations

import pytest

from analyzer.engine import read_rule, show, skeleton, test_rules
from analyzer.errors import RuleError

SAMPLE = "SELECT host, bus_id, min(at) AS at, group_concat(ref) AS refs FROM xid WHERE code = 79 GROUP BY host, bus_id"


def test_the_skeleton_lacks_only_its_query():
    text = skeleton("gpu.fallen-off-bus")
    with pytest.raises(RuleError, match=r"new\.yaml:14: query: the query must start with SELECT or WITH"):
        read_rule(text, "new.yaml", {"gpu.fallen-off-bus", "symptom.x"})
    assert SAMPLE in text
    rule = read_rule(text.replace("  TODO\n", f"  {SAMPLE}\n"), "new.yaml")
    assert rule.id == "gpu.fallen-off-bus" and "rules/gpu/" in text
    assert test_rules([rule]) == []


def test_show_tells_what_a_rule_does(read):
    explains = "fix: ['Reset {bus_id}.']\nexplains: [{cause: symptom.*, scope: [host], before: true}]"
    text = show(read(fix=explains))
    for part in ("root, error, confidence 0.9", "needs      xid", "symptom.* on the same host, not earlier", "code = 79"):
        assert part in text


def test_rows_are_shown_as_a_table_without_control_characters(read):
    rows = [{"host": f"n{i}\x1b[31m", "refs": "1" * 500} for i in range(60)]
    text = show(read(), rows)
    assert "\x1b" not in text and "NULL" in text and "... and 10 more" in text
    assert max(len(row) for row in text.splitlines()) < 200
    assert "rows       0" in show(read(), [])
