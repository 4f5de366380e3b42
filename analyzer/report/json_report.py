"""The report as JSON, ``crashcart.report/1``; ``report.schema.json`` beside this module is its schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from analyzer.model import (
    Comparison,
    EvidenceLine,
    Figure,
    Finding,
    LedgerCard,
    LedgerEntry,
    LinkRow,
    Report,
    TimelineRow,
    Where,
)
from analyzer.report.digest import is_index, ranked
from analyzer.report.escape import visible, visible_report
from analyzer.report.units import finite, iso_utc

SCHEMA_ID = "crashcart.report/1"

Object = dict[str, Any]

_LINK_FIELDS = ("host", "a", "b", "path", "nvlinks", "in_ring", "transport", "verdict")
_LINK_NUMBERS = ("latency_us", "bandwidth_gbps", "class_latency_us", "class_bandwidth_gbps", "ratio")
_CARD_HEAD = ("host", "gpu", "bus_id", "rank", "name", "total_bytes", "driver_reserved_bytes", "capacity_bytes")
_CARD_TAIL = ("balanced", "tolerance_bytes", "note", "communicators", "requested_bytes", "failed", "demand_bytes")


def schema() -> Object:
    """The published JSON schema (draft 2020-12)."""
    text = files("analyzer.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    parsed: Object = json.loads(text)
    return parsed


def _picked(value: object, names: Iterable[str]) -> Object:
    return {name: getattr(value, name) for name in names}


def _lines(evidence: Iterable[EvidenceLine]) -> list[Object]:
    return [_picked(line, ("file", "line", "text")) for line in evidence]


def _gpu(value: str) -> int | str:
    return int(value) if is_index(value) else value


def _where(where: Where) -> Object:
    """Only what is known; one value as a scalar, several as a list; a GPU by index and bus id where both are known."""
    values: dict[str, list[Any]] = {
        "host": list(where.host),
        "rank": list(where.rank),
        "gpu": [*(_gpu(value) for value in where.gpu), *(bus for bus in where.bus_id if bus not in where.gpu)],
        "bus_id": list(where.bus_id),
        "link": list(where.link),
        "process": list(where.process),
        "file": list(where.file),
    }
    return {name: known[0] if len(known) == 1 else known for name, known in values.items() if known}


def _share(confidence: float) -> float:
    """A confidence inside 0..1, rounded so that the same evidence prints the same digits."""
    return round(min(1.0, max(0.0, finite(confidence) or 0.0)), 4)


def _finding(finding: Finding) -> Object:
    return {
        **_picked(finding, ("cause", "rule", "role", "severity")),
        "confidence": _share(finding.confidence),
        **_picked(finding, ("title", "message")),
        "where": _where(finding.where),
        "explains": list(finding.explains),
        "evidence": _lines(finding.evidence),
        "advice": list(finding.advice),
        "considered": list(finding.considered),
        "references": list(finding.references),
        "at": finite(finding.at),
        "utc": iso_utc(finding.at),
    }


def _entry(entry: LedgerEntry) -> Object:
    return {**_picked(entry, ("entry", "bytes", "origin", "error_bytes", "note")), "evidence": _lines(entry.evidence)}


def _card(card: LedgerCard) -> Object:
    return {
        **_picked(card, _CARD_HEAD),
        "used_bytes": card.used_bytes,
        "entries": [_entry(entry) for entry in card.entries],
        **_picked(card, _CARD_TAIL),
        "demand_note": card.demand_note,
    }


def _link(link: LinkRow) -> Object:
    numbers = {name: finite(getattr(link, name)) for name in _LINK_NUMBERS}
    return {**_picked(link, _LINK_FIELDS), **numbers, "evidence": _lines(link.evidence)}


def _event(row: TimelineRow) -> Object:
    return {
        "at": finite(row.at),
        "utc": iso_utc(row.at) if row.clock == "wall" else None,
        **_picked(row, ("clock", "host", "rank", "kind", "text", "first")),
        "evidence": _lines(row.evidence),
    }


def _figure(figure: Figure | None) -> Object | None:
    if figure is None:
        return None
    numbers = {"value": finite(figure.value), "error": finite(figure.error)}
    return {**numbers, **_picked(figure, ("unit", "origin", "source")), "evidence": _lines(figure.evidence)}


def _comparison(row: Comparison) -> Object:
    return {"what": row.what, "baseline": _figure(row.baseline), "current": _figure(row.current), "note": row.note}


def _plain(value: object) -> Any:
    """Any value of ``meta`` as JSON: containers stay, keys are sorted, everything unknown becomes text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (set, frozenset)):
        return sorted(str(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return visible(str(value))


def to_dict(report: Report) -> Object:
    """The report as plain values: deterministic order, unprintable characters of the logs spelled out."""
    report = visible_report(report)
    verdict = report.verdict
    return {
        "schema": SCHEMA_ID,
        "verdict": {
            **_picked(verdict, ("headline", "cause")),
            "confidence": _share(verdict.confidence),
            "where": _where(verdict.where),
        },
        "findings": [_finding(finding) for finding in ranked(report.findings)],
        "not_evaluated": [
            {"rule": row.rule, "cause": row.cause, "missing": list(row.missing), "hint": row.hint}
            for row in report.not_evaluated
        ],
        "ledger": [_card(card) for card in report.ledger],
        "links": [_link(link) for link in report.links],
        "timeline": [_event(row) for row in report.timeline],
        "inventory": [
            {**_picked(row, ("kind", "host", "name", "value")), "evidence": _lines(row.evidence)}
            for row in report.inventory
        ],
        "inputs": [_picked(row, ("file", "kind", "bytes", "lines", "recognised_lines")) for row in report.inputs],
        "problems": [_picked(row, ("file", "line", "what", "count")) for row in report.problems],
        "baseline": [_comparison(row) for row in report.baseline],
        "meta": _plain(report.meta),
    }


def render(report: Report) -> str:
    """The report as ASCII-only JSON text, two spaces deep, with a final line feed."""
    return json.dumps(to_dict(report), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
