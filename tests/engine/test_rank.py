from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.engine import Candidate, Explains, rank
from analyzer.engine.components import components
from analyzer.engine.scope import agree
from analyzer.model import EvidenceLine, Finding, Where


def make(cause, confidence=0.8, role="root", severity="error", explains=(), rule=None, at=None, **where) -> Candidate:
    place = Where(**{name: value if isinstance(value, tuple) else (value,) for name, value in where.items()})
    finding = Finding(cause, rule or cause, role, severity, confidence, cause, "m", place, at=at)
    return Candidate(finding, tuple(e if isinstance(e, Explains) else Explains(e) for e in explains))


def roles(*candidates) -> dict[str, str]:
    return {one.rule: one.role for one in rank(candidates)}


def test_the_better_supported_explains():
    a = make("gpu.a", 0.9, explains=["symptom.*"])
    b = make("symptom.x", 0.8)
    assert roles(a, b) == {"gpu.a": "root", "symptom.x": "consequence"}
    assert rank([a, b])[0].explains == ("symptom.x",)
    assert rank([a])[0].explains == ()


def test_the_less_supported_does_not():
    assert roles(make("gpu.a", 0.7, explains=["gpu.b"]), make("gpu.b", 0.8)) == {"gpu.a": "root", "gpu.b": "root"}
    lighter = make("gpu.a", 0.9, severity="warning", explains=["gpu.b"])
    assert roles(lighter, make("gpu.b", 0.8)) == {"gpu.a": "root", "gpu.b": "root"}


def test_equal_support_is_enough():
    assert roles(make("z", explains=["a"]), make("a")) == {"z": "root", "a": "consequence"}


def test_only_roots_become_consequences():
    a = make("a", 0.9, explains=["*"])
    assert roles(a, make("b", role="risk"), make("c", role="info")) == {"a": "root", "b": "risk", "c": "info"}


def test_a_consequence_still_explains():
    chain = [make("a", 0.9, explains=["b"]), make("b", 0.8, explains=["c"]), make("c", 0.7)]
    assert roles(*chain) == {"a": "root", "b": "consequence", "c": "consequence"}


@pytest.mark.parametrize(
    ("scope", "a", "b", "same"),
    [
        (("host",), {"host": "n1"}, {"host": "n2"}, False),
        (("host",), {"host": ("n1", "n2")}, {"host": "n2"}, True),
        (("host",), {"host": "n1"}, {}, True),
        (("rank",), {"rank": 1, "host": "n1"}, {"rank": 1, "host": "n2"}, True),
        (("rank",), {"rank": 1}, {"rank": 2}, False),
        (("gpu",), {"gpu": "0", "host": "n1"}, {"gpu": "0", "host": "n2"}, False),
        (("gpu",), {"gpu": "0"}, {"gpu": "0", "host": "n2"}, True),
        (("gpu",), {"gpu": "0", "bus_id": "0000:3B:00.0"}, {"gpu": "1", "bus_id": "0000:3b:00.0"}, True),
        (("gpu",), {"gpu": "0", "bus_id": "0000:3b:00.0"}, {"gpu": "0", "bus_id": "0000:5b:00.0"}, False),
        (("gpu",), {"gpu": "0"}, {"bus_id": "0000:5b:00.0"}, True),
        (("link",), {"link": "GPU0-GPU3"}, {"link": "GPU3-GPU0"}, True),
        (("link",), {"link": "GPU0-GPU3"}, {"link": "GPU0-GPU2"}, False),
        (("process",), {"process": "17", "host": "n1"}, {"process": "17", "host": "n2"}, False),
        ((), {"host": "n1", "rank": 1}, {"host": "n2", "rank": 2}, True),
    ],
)
def test_scope(scope, a, b, same):
    one = make("a", 0.9, explains=[Explains("b", scope)], **a)
    assert roles(one, make("b", **b))["b"] == ("consequence" if same else "root")
    assert agree(make("x", **a).finding.where, make("x", **b).finding.where, scope) is same


@pytest.mark.parametrize(
    ("before", "a", "b", "same"),
    [(True, 1.0, 2.0, True), (True, 2.0, 2.0, True), (True, 3.0, 2.0, False), (False, 3.0, 2.0, True), (True, None, 2.0, True)],
)
def test_time_order(before, a, b, same):
    one = make("a", 0.9, explains=[Explains("b", (), before)], at=a)
    assert roles(one, make("b", at=b))["b"] == ("consequence" if same else "root")


def test_in_a_cycle_the_better_supported_wins():
    assert roles(make("a", 0.7, explains=["b"]), make("b", 0.9, explains=["a"])) == {"b": "root", "a": "consequence"}


def test_in_a_cycle_of_equals_the_stable_order_decides():
    ring = [make("a", explains=["b"]), make("b", explains=["c"]), make("c", explains=["a"])]
    assert roles(*ring) == {"a": "root", "b": "consequence", "c": "consequence"}
    early = [make("a", explains=["b"], at=5.0), make("b", explains=["a"], at=4.0)]
    assert roles(*early) == {"b": "root", "a": "consequence"}


def test_a_cause_does_not_explain_itself_elsewhere():
    cards = [make("gpu.a", 0.9, explains=["gpu.*"], host="n1", gpu="1"), make("gpu.a", 0.8, host="n1", gpu="2")]
    assert [one.role for one in rank(cards)] == ["root", "root"]


def test_order_of_the_result():
    items = [
        make("info", 1.0, "info"),
        make("consequence", 1.0, "consequence"),
        make("risk", 1.0, "risk"),
        make("late", 0.8, at=2.0),
        make("early", 0.8, at=1.0),
        make("undated", 0.8),
        make("warning", 1.0, severity="warning"),
        make("sure", 0.9),
        make("place", 0.7, gpu="10"),
        make("place", 0.7, gpu="9"),
    ]
    found = rank(items)
    assert [one.cause for one in found] == (
        "sure early late undated place place warning risk consequence info".split()
    )
    assert [one.where.gpu for one in found if one.cause == "place"] == [("9",), ("10",)]


def line(number: int) -> EvidenceLine:
    return EvidenceLine("f", number, "t")


def with_evidence(item: Candidate, *numbers: int) -> Candidate:
    return replace(item, finding=replace(item.finding, evidence=tuple(line(n) for n in numbers)))


def test_one_cause_from_two_rules_is_one_finding():
    a = with_evidence(make("x", 0.9, rule="x:a", rank=3), 1, 2)
    b = with_evidence(make("x", 0.8, rule="x:b", gpu="1", host="n1", at=4.0, explains=["y"]), 2, 3)
    (one, other) = rank([b, a, make("y", 0.5)])
    assert one.rule == "x:a" and one.evidence == (line(1), line(2), line(3))
    assert one.where == Where(host=("n1",), rank=(3,), gpu=("1",)) and one.at == 4.0
    assert other.role == "consequence"


def test_different_places_stay_apart_and_so_do_findings_of_one_rule():
    assert len(rank([make("x", rule="x:a", rank=3), make("x", rule="x:b", rank=4)])) == 2
    assert len(rank([make("x", rule="x", rank=3), make("x", 0.7, rule="x", gpu="4")])) == 2


def test_what_happened_beats_what_may_happen():
    (one,) = rank([make("x", 0.9, "risk", rule="x:a"), make("x", 0.5, "root", rule="x:b")])
    assert (one.role, one.rule) == ("root", "x:b")


def test_bare_findings_are_ranked_too():
    a = replace(make("a", 0.9).finding, explains=("b",))
    assert [one.role for one in rank([make("b").finding, a])] == ["root", "consequence"]


def test_nothing_is_nothing():
    assert rank([]) == []


CAUSES = st.sampled_from(["gpu.a", "gpu.b", "nccl.c", "symptom.d"])
ENTRIES = st.builds(
    Explains,
    st.one_of(CAUSES, st.sampled_from(["gpu.*", "symptom.*", "*"])),
    st.sampled_from([(), ("host",), ("host", "gpu"), ("rank",)]),
    st.booleans(),
)
WHERES = st.builds(
    Where,
    host=st.sampled_from([(), ("n1",), ("n2",), ("n1", "n2")]),
    rank=st.sampled_from([(), (0,), (1,)]),
    gpu=st.sampled_from([(), ("0",), ("1",)]),
)
FINDINGS = st.builds(
    Finding,
    cause=CAUSES,
    rule=st.sampled_from(["r1", "r2", "r3"]),
    role=st.sampled_from(["root", "root", "root", "risk", "consequence", "info"]),
    severity=st.sampled_from(["error", "warning"]),
    confidence=st.sampled_from([0.5, 0.8, 1.0]),
    title=st.just("t"),
    message=st.sampled_from(["m1", "m2"]),
    where=WHERES,
    evidence=st.lists(st.builds(EvidenceLine, st.just("f"), st.integers(1, 3), st.just("t")), max_size=2).map(tuple),
    at=st.sampled_from([None, 1.0, 2.0]),
)
CANDIDATES = st.builds(Candidate, FINDINGS, st.lists(ENTRIES, max_size=3).map(tuple))


@given(st.lists(CANDIDATES, max_size=9), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(items, chance):
    shuffled = list(items)
    chance.shuffle(shuffled)
    assert rank(shuffled) == rank(items)


@given(st.lists(CANDIDATES, min_size=1, max_size=9))
def test_some_root_survives_and_no_place_is_lost(items):
    found = rank(items)
    had_root = any(item.finding.role == "root" for item in items)
    if had_root and all(item.finding.role == "root" for item in items):
        assert found[0].role == "root"
    assert {item.finding.cause for item in items} == {one.cause for one in found}
    for name in ("host", "rank", "gpu"):
        before = {value for item in items for value in getattr(item.finding.where, name)}
        assert {value for one in found for value in getattr(one.where, name)} <= before


@given(st.integers(1, 7).flatmap(lambda n: st.lists(st.sets(st.integers(0, n - 1)), min_size=n, max_size=n)))
def test_components_are_the_nodes_that_reach_each_other(edges):
    reach = [{node} for node in range(len(edges))]
    for _ in edges:
        reach = [nodes.union(*(edges[node] for node in nodes)) for nodes in reach]
    group = components(edges)
    for a in range(len(edges)):
        for b in range(len(edges)):
            assert (group[a] == group[b]) == (b in reach[a] and a in reach[b])
