r"""Dedicated and shared GPU memory as Windows shows it: Task Manager, performance counters, tools that copy them.

    Dedicated GPU memory 23.6/24.0 GB
    Shared GPU memory usage: 7.9 / 31.8 GB
    \\box\gpu adapter memory(luid_0x00000000_0x0000f1b2_phys_0)\shared usage : 8482560409

Windows counts in 2^30. The value of a counter may stand in the line below its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import Size, size
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_FIGURES = re.compile(
    r"^[ :=|]*([0-9]+(?:[.,][0-9]+)?) ?([KMG]i?B)?(?: ?(?:/|of) ?([0-9]+(?:[.,][0-9]+)?))? ?([KMG]i?B)?"
)
_BARE = re.compile(r"\s*([0-9]{4,18})\s*")
_LEAST_BYTES = 1 << 20


class WddmSession(Session):
    """One row for each figure; the number of a counter may follow in the next line."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._metric = ""

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        """The line below the name of a counter."""
        number = _BARE.fullmatch(line.text)
        if number is None:
            return Verdict.ENDED if line.text.strip() else Verdict.LEFT
        self._emit(self._metric, Size(int(number.group(1)), 0), line)
        self.close()
        return Verdict.TAKEN

    def on_used(self, f: Fields, line: Line) -> Verdict | None:
        metric = f["phrase"].split(" ")[0].lower()
        match = _FIGURES.match(f.get("rest", ""))
        if match is None:
            self._metric, self.open = metric, not f.get("rest", "").strip(" :")
            return None if self.open else Verdict.LEFT
        used, unit, total, other = match.groups()
        unit = unit or other
        if unit is None and int(float(used.replace(",", "."))) < _LEAST_BYTES:
            return Verdict.LEFT
        self._emit(metric, _size(used, unit), line)
        if total is not None and unit is not None:
            self._emit(f"{metric}_total", _size(total, unit), line)
        return None

    def _emit(self, metric: str, figure: Size | None, line: Line) -> None:
        if figure is not None:
            values = {"framework": "wddm", "metric": metric, "bytes": figure.bytes, "error_bytes": figure.error}
            self.emit("allocator_stat", line, values)


def _size(number: str, unit: str | None) -> Size | None:
    number = number.replace(",", ".")
    return size(f"{number} {unit[0]}iB") if unit else Size(int(float(number)), 0)


_LITERALS = (
    "hared GPU memory",
    "edicated GPU memory",
    "hared GPU Memory",
    "edicated GPU Memory",
    "hared usage",
    "hared Usage",
)
FORMAT = Format(
    name="wddm-memory",
    grammar="wddm_memory",
    literals=_LITERALS,
    session=WddmSession,
    title="dedicated and shared GPU memory on Windows",
    command=r"powershell: (Get-Counter '\GPU Adapter Memory(*)\Shared Usage').CounterSamples",
    versions="Windows 10 and 11",
    weak_literals=frozenset(_LITERALS),
)
