"""``free`` and ``/proc/meminfo``: memory of the host.

    $ free -m
                   total        used        free      shared  buff/cache   available
    Mem:          257430       18250      201460         512       37720      236600
    Swap:              0           0           0

    MemTotal:       527951236 kB
    MemAvailable:   402120000 kB

Seen: procps 3.2 to 4.0. ``free`` prints KiB unless an option says otherwise; where the command line is missing, the
unit is the smallest that makes at least 4 GiB of the total.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import number, size
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 3
_LEAST_TOTAL = 4 << 30
_NAMES = {"buff/cache": "buff_cache"}
_KEPT = frozenset({"total", "used", "free", "shared", "available", "buff_cache"})
_MEMINFO = {
    "MemTotal": "total",
    "MemFree": "free",
    "MemAvailable": "available",
    "Shmem": "shared",
    "SwapTotal": "swap_total",
    "SwapFree": "swap_free",
    "Mlocked": "locked",
}
_OPTION = re.compile(r"(?<!\S)--?([a-z]+)(?!\S)")
_LONG = {
    "bytes": 1,
    "kibi": 1 << 10,
    "mebi": 1 << 20,
    "gibi": 1 << 30,
    "tebi": 1 << 40,
    "kilo": 10**3,
    "mega": 10**6,
    "giga": 10**9,
    "tera": 10**12,
}
_SHORT = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class HostMemorySession(Session):
    """Open from the command line or the header of ``free`` up to its swap line, and over /proc/meminfo."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._unit: int | None = None
        self._told = False
        self._columns: list[str] = []
        self._foreign = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.UNREAD

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Forgets the columns."""
        self._columns = []
        self._told = False
        super().close()

    def _begin(self) -> None:
        self._foreign = 0
        self.open = True

    def on_command(self, f: Fields, line: Line) -> None:
        self._unit, self._told = _unit(f.get("options", "")), True
        self._columns = []
        self._begin()

    def on_head(self, f: Fields, line: Line) -> None:
        if not self._told:
            self._unit = None
        self._columns = ["total", "used", "free", *(_NAMES.get(n, n) for n in f.get("columns", "").split())]
        self._begin()

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        if not self._columns:
            return Verdict.LEFT
        wanted = 3 if f["row"] == "Swap:" else len(self._columns)
        cells = f["cells"].replace(",", ".").split()
        if len(cells) < wanted:
            cells.pop()
        if cells and f["row"] in ("Mem:", "Swap:"):
            if self._unit is None:
                self._unit = _guess(cells[0])
            for name, cell in zip(self._columns, cells, strict=False):
                found = _bytes(cell, self._unit)
                if found is not None and name in _KEPT:
                    self._send(line, f"swap_{name}" if f["row"] == "Swap:" else name, found)
        self._foreign = 0
        if f["row"] == "Swap:":
            self.close()
        return None

    def _send(self, line: Line, what: str, found: int) -> None:
        self.emit("host_memory", line, {"what": what, "bytes": found})

    def on_meminfo(self, f: Fields, line: Line) -> Verdict | None:
        what = _MEMINFO.get(f["field"])
        if not self.open and what is None:
            return Verdict.LEFT
        if what is not None:
            self._send(line, what, int(f["size"]) * 1024)
        self._begin()
        return None

    def on_count(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open and f["field"].startswith("HugePages") else Verdict.LEFT

    def on_node_meminfo(self, f: Fields, line: Line) -> None:
        """Known: memory of one NUMA node."""


def _unit(options: str) -> int:
    """Bytes of one unit of ``free`` with these options."""
    unit = 1 << 10
    for option in _OPTION.findall(options):
        found = _LONG.get(option) or next((_SHORT[letter] for letter in option if letter in _SHORT), None)
        unit = found or unit
    return unit


def _bytes(cell: str, unit: int) -> int | None:
    """A cell in bytes; with a suffix (``-h``: 251Gi, 1.2T, 0B) it names its own unit, in powers of 1024."""
    plain = number(cell)
    if plain is not None:
        return round(plain * unit) if math.isfinite(plain * unit) else None
    known = size(cell.removesuffix("B").removesuffix("i"))
    return None if known is None else known.bytes


def _guess(total: str) -> int:
    if not total[-1].isdigit():
        return 1
    return next((u for u in (1 << 10, 1 << 20, 1 << 30) if float(total) * u >= _LEAST_TOTAL), 1 << 30)


FORMAT = Format(
    name="host-memory",
    grammar="host_memory",
    literals=(
        "$ free",
        "# free",
        "buff/cache",
        "shared    buffers",
        "shared     buffers",
        "MemTotal:",
        "MemFree:",
        "MemAvailable:",
        "SwapTotal:",
        "SwapFree:",
    ),
    session=HostMemorySession,
    title="memory of the host (free, /proc/meminfo)",
    command="free -k; cat /proc/meminfo",
    versions="procps 3.2 to 4.0",
    weak_literals=frozenset({"$ free", "# free", "MemTotal:", "MemFree:", "MemAvailable:", "SwapTotal:", "SwapFree:"}),
)
