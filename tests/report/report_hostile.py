"""Reports that attack their reader: hostile text in every field that a log can fill, and very many of everything."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

import report_story as story

from analyzer.model import (
    EvidenceLine,
    Finding,
    InputFile,
    InventoryRow,
    LedgerCard,
    LinkRow,
    NotEvaluated,
    Problem,
    Report,
    TimelineRow,
    Verdict,
    Where,
)

TEXTS = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><a href='http://evil.example/'>x</a>",
    "cdata": "]]> --> </style></title></textarea> <!-- &lt;b&gt; &#x1b;",
    "ansi": "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x9b2J \x00 \x7f \x08\x08",
    "bidi": "abc\u202egpj.exe\u202c \u2066x\u2069 \u200b\ufeff \u2028line\u2029 \U000e0041",
    "surrogate": "byte \udcff and \ud800",
    "backticks": "```\n# not a heading\n````` [x](javascript:alert(1)) ![i](http://evil.example/i.png) ``",
    "markdown": "| a | b |\n|---|---|\n- [ ] *b* _i_ ~~s~~ <b>x</b> http://evil.example www.evil.example $x$ @team #1",
    "setext": "one\n===\ntwo\n---\n    code\n> quote\n1. list",
    "template": "{{ 7 * 7 }} {% raw %} [bold red]markup[/] :smile: %s {0}",
    "lines": "first\nsecond\r\nthird\rfourth\ttab",
    "long": "A" * 10_000,
    "wide": "\u6f22\u5b57" * 500 + "e\u0301" * 200 + "\u0301" * 3_000,
    "digits": "9" * 5_000,
    "blank": "",
    "spaces": "   ",
}
# Values of a fixed set, which no log can fill.
_FIXED = {"role", "severity", "origin", "entry", "clock", "unit"}


def poisoned(value: Any, text: str) -> Any:
    """The value with the text in front of every free string in it."""
    if isinstance(value, str):
        return text + value if text.strip() else text
    if isinstance(value, tuple):
        return tuple(poisoned(item, text) for item in value)
    if isinstance(value, dict):
        return {poisoned(key, text): poisoned(item, text) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        free = [f.name for f in fields(value) if f.name not in _FIXED]
        return replace(value, **{name: poisoned(getattr(value, name), text) for name in free})
    return value


def hostile(text: str) -> Report:
    """The full story with the text in every field, and with files in Where."""
    report = story.full()
    lead = replace(report.findings[0], where=Where(process=("python[7]",), file=("rank2.log",), gpu=("2", "3")))
    return cast(Report, poisoned(replace(report, findings=(lead, *report.findings[1:])), text))


def _card(index: int) -> LedgerCard:
    return replace(story.card(index % 8, index == 517), gpu=index % 8, rank=index, host=f"node-{index // 8:03d}")


def _links(host: int) -> list[LinkRow]:
    pairs = [(a, b) for a in range(8) for b in range(a + 1, 8)]
    rows = [replace(story.link(1, 2), host=f"node-{host:03d}", a=f"GPU{a}", b=f"GPU{b}") for a, b in pairs]
    return [replace(rows[0], verdict="slow", ratio=2.4), *rows[1:]] if host in (3, 77) else rows


def large() -> Report:
    """1,024 ranks on 128 hosts: 5,000 problems, 300 findings, evidence without end."""
    lines = tuple(EvidenceLine(f"rank{i}.log", i + 1, f"line {i} " + "x" * 400) for i in range(1024))
    finding = Finding("nccl.watchdog-timeout", "r", "consequence", "error", 0.9, "t", "m", evidence=lines[:32])
    root = replace(story.findings()[0], evidence=lines, where=Where(rank=tuple(range(0, 1024, 3))))
    return Report(
        verdict=Verdict("One of 1,024 ranks ran out of memory", root.cause, 0.8, root.where),
        findings=(root, *(replace(finding, title=f"Rank {i} timed out", where=Where(rank=(i,))) for i in range(300))),
        not_evaluated=tuple(NotEvaluated(f"r{i}", f"c{i}", ("t",), f"command {i % 90}") for i in range(400)),
        ledger=tuple(map(_card, range(1024))),
        links=tuple(row for host in range(128) for row in _links(host)),
        timeline=tuple(TimelineRow(story.T0 + i, "wall", "n", i, "exit", "died", i == 517) for i in range(1024)),
        inventory=tuple(InventoryRow("process", "n", str(i), f"rank {i}") for i in range(1024)),
        inputs=tuple(InputFile(f"logs/rank{i}.log", "PyTorch log", 1_000_000, 9_000, 8_000) for i in range(1024)),
        problems=tuple(Problem(f"logs/rank{i % 1024}.log", i + 1, "not understood " + "y" * 300) for i in range(5000)),
    )
