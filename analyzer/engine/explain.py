"""Texts about rules: what a rule does (``show``) and a file to start a new one from (``skeleton``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from analyzer.engine.rule import Rule
from analyzer.engine.suggest import printable

_SHOWN_ROWS = 50
_WIDTH = 60


def show(rule: Rule, rows: Sequence[Mapping[str, object]] | None = None) -> str:
    """A rule as text; with ``rows`` also what its query gave. Control characters are escaped."""
    lines = [
        f"{rule.id}  ({rule.role}, {rule.severity}, confidence {rule.confidence:g})",
        f"  {rule.title}",
        f"  cause      {rule.cause}",
        f"  file       {rule.file}",
        f"  needs      {', '.join(' or '.join(names) for names in rule.needs) or 'nothing'}",
        f"  reads      {', '.join(sorted(rule.tables))}",
        f"  key        {', '.join(rule.key) or 'none: one finding in all'}",
        f"  message    {rule.message.text}",
        *_section("explains", [_explained(rule, place) for place in range(len(rule.explains))]),
        *_section("considered", [text.text for text in rule.considered]),
        *_section("fix", [text.text for text in rule.fix]),
        *_section("references", rule.references),
        "  query",
        *(f"    {line}" for line in rule.query.splitlines()),
        *([] if rows is None else _rows(rule, rows)),
    ]
    return "\n".join(printable(line) for line in lines) + "\n"


def skeleton(cause: str) -> str:
    """A rule file for a cause that loads once TODO in its query is replaced."""
    return _SKELETON.replace("CAUSE", cause).replace("AREA", re.sub(r"\..*", "", cause))


def _section(name: str, entries: Sequence[str]) -> Iterator[str]:
    for place, entry in enumerate(entries):
        yield f"  {name if place == 0 else '':<11}- {entry}"


def _explained(rule: Rule, place: int) -> str:
    entry = rule.explains[place]
    scope = f" on the same {', '.join(entry.scope)}" if entry.scope else ""
    return f"{entry.cause}{scope}{', not earlier than this' if entry.before else ''}"


def _rows(rule: Rule, rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    yield f"  rows       {len(rows)}"
    cells = [list(rule.columns), *([_cell(row.get(name)) for name in rule.columns] for row in rows[:_SHOWN_ROWS])]
    widths = [max(len(line[place]) for line in cells) for place in range(len(rule.columns))]
    for line in cells:
        yield "    " + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
    if len(rows) > _SHOWN_ROWS:
        yield f"    ... and {len(rows) - _SHOWN_ROWS} more"


def _cell(value: object) -> str:
    text = "NULL" if value is None else printable(str(value))
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


_SKELETON = '''\
# rules/AREA/<name>.yaml - replace every TODO, then: crashcart rules test <this file>
id: CAUSE                 # unique; a second rule of the same cause gets a suffix (CAUSE:by-kernel-log)
cause: CAUSE
role: root                # root, consequence, risk (not failed yet) or info
severity: error           # error, warning or info
confidence: 0.8           # 0..1; a column "confidence" of the query overrides it for its row
title: TODO one line that names the cause
needs: [xid]              # tables that must have rows; "a|b" is either of two
# One SELECT over the tables of the evidence. Columns with a meaning: ref (a line), refs (lines, with commas);
# host, rank, gpu, bus_id, link, process, file (the culprit); confidence, severity, role, at, title (override
# the rule's own for their row). All other columns are for the texts. Replace TODO, for example by
#   SELECT host, bus_id, min(at) AS at, group_concat(ref) AS refs FROM xid WHERE code = 79 GROUP BY host, bus_id
query: |
  TODO
key: [host, bus_id]       # rows that share these columns are one finding
message: "TODO what happened on {host}, GPU {bus_id}."   # {column} or {column:GiB}, MiB, GB, MB, us, s, pct, int, .1f
explains:                 # what this cause makes redundant, and where
  - {cause: symptom.*, scope: [host], before: true}
considered: []            # what else it could have been, and what rules that out
fix:
  - "TODO the exact command or variable; what it costs; how to check that it worked."
references: []
tests:                    # columns that are not named are NULL; references are given by the runner
  - name: TODO the event itself
    given:
      xid:
        - {host: node1, bus_id: "0000:3b:00.0", code: 79}
    expect:
      - {host: node1, bus_id: "0000:3b:00.0", message~: "node1"}
  - name: TODO a look-alike that must stay quiet
    given:
      xid:
        - {host: node1, bus_id: "0000:3b:00.0", code: 31}
    expect: []
'''
