"""One sound rule, and ways to change single keys of its text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from analyzer.engine import Rule, read_rule

PARTS: dict[str, str] = {
    "cause": "cause: gpu.fallen-off-bus",
    "role": "role: root",
    "severity": "severity: error",
    "confidence": "confidence: 0.9",
    "title": "title: A GPU fell off the bus",
    "needs": "needs: [xid]",
    "query": """\
query: |
  SELECT host, bus_id, min(at) AS at, min(ref) AS ref, group_concat(ref) AS refs, max(boot_s) AS boot_s
  FROM xid
  WHERE code = 79
  GROUP BY host, bus_id""",
    "key": "key: [host, bus_id]",
    "message": 'message: "GPU {bus_id} of {host} is gone {boot_s:s} after boot"',
    "fix": 'fix: ["Reset {bus_id}."]',
    "tests": """\
tests:
  - name: one card
    given:
      xid:
        - {host: n1, bus_id: 0000:3b:00.0, code: 79, boot_s: 12.5}
    expect:
      - {host: n1, bus_id: 0000:3b:00.0, message~: 12.5 s after boot}
  - name: another code
    given:
      xid:
        - {host: n1, bus_id: 0000:3b:00.0, code: 31}
    expect: []""",
}

Text = Callable[..., str]
Read = Callable[..., Rule]


@pytest.fixture
def text() -> Text:
    """The text of the rule; a keyword replaces the part of that name, None leaves it out, others are added."""

    def make(**changes: str | None) -> str:
        parts: dict[str, str | None] = {**PARTS, **changes}
        return "\n".join(part for part in parts.values() if part is not None) + "\n"

    return make


@pytest.fixture
def read(text: Text) -> Read:
    """The rule itself, with the same changes."""

    def make(**changes: str | None) -> Rule:
        return read_rule(text(**changes), "r.yaml")

    return make
