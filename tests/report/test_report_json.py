"""The JSON report keeps its published contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import report_hostile
import report_story as story

from analyzer.model import Figure, Finding, Report, Verdict, Where
from analyzer.report import json_report, render_to_string

VALIDATOR = jsonschema.Draft202012Validator(json_report.schema())
REPORTS = {
    "full": story.full(),
    "healthy": story.healthy(),
    "empty": story.empty(),
    "large": report_hostile.large(),
    **{name: report_hostile.hostile(text) for name, text in report_hostile.TEXTS.items()},
}


def loaded(report: Report) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json_report.render(report))
    return value


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_validates(name: str) -> None:
    VALIDATOR.validate(loaded(REPORTS[name]))


def test_the_schema_is_sound_and_published(root: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json_report.schema())
    assert json.loads((root / "docs" / "report.schema.json").read_text()) == json_report.schema()


def objects(schema: Any) -> list[dict[str, Any]]:
    children = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    here = [schema] if isinstance(schema, dict) and "properties" in schema else []
    return here + [found for child in children for found in objects(child)]


def test_the_schema_is_strict() -> None:
    assert len(objects(json_report.schema())) >= 13
    assert all(found["additionalProperties"] is False for found in objects(json_report.schema()))


@pytest.mark.parametrize("where", [("extra",), ("findings", 0, "extra"), ("ledger", 0, "entries", 0, "extra")])
def test_an_unknown_key_does_not_validate(where: tuple[Any, ...]) -> None:
    report = loaded(story.full())
    place: Any = report
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = 1
    assert not VALIDATOR.is_valid(report)


@pytest.mark.parametrize("key", ["schema", "verdict", "findings", "baseline", "meta"])
def test_a_missing_key_does_not_validate(key: str) -> None:
    report = loaded(story.full())
    del report[key]
    assert not VALIDATOR.is_valid(report)


def test_where_is_scalar_list_or_absent() -> None:
    first, second, third = loaded(story.full())["findings"]
    assert first["where"] == {
        "host": "node-a",
        "rank": 2,
        "gpu": [2, "0000:0f:00.0"],
        "bus_id": "0000:0f:00.0",
    }
    assert second["where"] == {"host": "node-a", "gpu": [0, 3], "link": "GPU0-GPU3"}
    assert third["where"] == {"host": "node-a", "rank": [0, 1, 3]}


@pytest.mark.parametrize(("gpu", "shown"), [("3", 3), ("0000:0f:00.0", "0000:0f:00.0"), ("\u0663", "\u0663")])
def test_a_gpu_is_an_index_or_a_bus_id(gpu: str, shown: object) -> None:
    report = Report(Verdict("x", None, 0.0, Where(gpu=(gpu,))))
    assert loaded(report)["verdict"]["where"]["gpu"] == shown


def test_the_ledger_keeps_every_byte() -> None:
    failed = loaded(story.full())["ledger"][2]
    sizes = {entry["entry"]: entry["bytes"] for entry in failed["entries"]}
    assert sizes == {
        "framework_allocated": 71_283_245_056,
        "framework_reserved_unallocated": 883_949_568,
        "comm_buffers": 12_164_936_000,
        "context_and_other": 508_997_312,
        "free": 258_154_496,
    }
    assert sum(sizes.values()) == failed["capacity_bytes"] == story.CAPACITY
    assert failed["failed"] is True


def test_roots_come_first_and_the_order_is_kept_otherwise() -> None:
    one, two, three = story.findings()
    report = Report(Verdict("x", None, 0.0), findings=(three, two, one))
    assert [row["role"] for row in loaded(report)["findings"]] == ["root", "consequence", "risk"]


def test_numbers_that_are_none_become_null() -> None:
    nan = float("nan")
    broken = Finding("c", "r", "info", "info", nan, "t", "m", at=1e300)
    figure = Figure(float("inf"), "s", "read", error=nan)
    row = story.full().baseline[0]
    report = Report(Verdict("x", None, 7.0), (broken,), baseline=(type(row)("x", figure, None),), meta={"a": nan})
    value = loaded(report)
    VALIDATOR.validate(value)
    assert value["verdict"]["confidence"] == 1.0
    assert value["findings"][0]["confidence"] == 0.0
    assert value["findings"][0]["utc"] is None
    assert value["baseline"][0]["baseline"]["value"] is None
    assert value["meta"] == {"a": None}


def test_times_are_seconds_and_utc() -> None:
    rows = loaded(story.full())["timeline"]
    assert rows[1]["utc"] == "2025-03-14T03:04:56.212Z"
    assert (rows[3]["at"], rows[3]["utc"], rows[3]["clock"]) == (91.5, None, "boot")


def test_meta_is_sorted_and_plain() -> None:
    report = Report(Verdict("x", None, 0.0), meta={"b": {2, 1}, "a": (1, None), "path": Path("x\x1b")})
    assert render_to_string(report, "json").index('"a"') < render_to_string(report, "json").index('"b"')
    assert loaded(report)["meta"] == {"a": [1, None], "b": ["1", "2"], "path": "x\\x1b"}
