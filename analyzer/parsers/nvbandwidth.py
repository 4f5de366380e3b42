"""nvbandwidth, text and JSON (``-j``): copies between host and GPUs and between GPUs; versions 0.2 to 0.8.

    nvbandwidth Version: v0.8
    Device 0: NVIDIA H100 80GB HBM3 (00000000:07:00)
    Running device_to_device_memcpy_read_ce.
    memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
               0         1
     0       N/A    276.07
    SUM device_to_device_memcpy_read_ce 552.14

Pairs become ``pair_measure`` (read tests copy from the row to the column), copies with the host ``host_measure``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analyzer.parsers.base import Emit, Format, Line, Verdict
from analyzer.parsers.json_block import JsonBlock, JsonOrTableSession, opening
from analyzer.parsers.values import bus_id
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]
Values = dict[str, object]

TOOL = "nvbandwidth"
_DEVICE = re.compile(r"([0-9]{1,3}): (.{1,80}?) \(([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})")


class NvbandwidthSession(JsonOrTableSession):
    """Reads one matrix after the other; a JSON document is collected and read at once."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._title = ""
        self._test = ""
        self._columns: list[int] = []
        self._strange = 0

    def close(self) -> None:
        """Sends the JSON document, if one is open."""
        block, self._json = self._json, None
        if block is not None:
            for table, values in _json_rows(block.value()):
                self.emit(table, block.line, values | {"tool": TOOL})
        self._title, self._test, self._columns, self._strange = "", "", [], 0
        super().close()

    def _go_on(self) -> None:
        self.open, self._strange = True, 0

    def on_json(self, f: Fields, line: Line) -> Verdict | None:
        head, text = opening(line.text, "nvbandwidth")
        self.close()
        self._json = JsonBlock(line, head)
        self.open = True
        if self._json.add(text):
            self.close()
        return None

    def on_version(self, f: Fields, line: Line) -> None:
        self.close()
        self._go_on()

    def on_device(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._strange = 0
        values = {"gpu": int(f["gpu"]), "bus_id": bus_id(f["bus"]), "name": f["name"].strip(), "tool": TOOL}
        self.emit("pair_device", line, values)
        return None

    def on_running(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open and "memcpy" not in f["key"] and "latency" not in f["key"]:
            return Verdict.LEFT
        self._go_on()
        self._test, self._title, self._columns = f["key"], "", []
        return None

    def on_title(self, f: Fields, line: Line) -> None:
        self._go_on()
        self._title, self._columns = f["title"], []

    def on_cells(self, f: Fields, line: Line) -> Verdict | None:
        """The numbers of the columns, then one row after the other."""
        cells = f["cells"].split()
        if not self._title:
            return self.foreign(line)
        if not self._columns and all(cell.isdigit() for cell in cells):
            self._columns = [int(cell) for cell in cells]
            return None
        if len(cells) != len(self._columns) + 1 or not cells[0].isdigit():
            return self.foreign(line)
        self._strange = 0
        for column, cell in zip(self._columns, cells[1:], strict=True):
            for table, values in measure(self._test, self._title, int(cells[0]), column, cell):
                self.emit(table, line, values | {"tool": TOOL})
        return None

    def on_sum(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._title, self._columns, self._strange = "", [], 0
        return None

    def on_waived(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_fact(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_note(self, f: Fields, line: Line) -> None:
        self.close()


def measure(test: str, title: str, row: int, column: int, cell: str) -> Iterator[tuple[str, Values]]:
    """The row of one cell of a matrix; none for a missing figure or the sum of both directions."""
    try:
        value = float(cell)
    except ValueError:
        return
    if not math.isfinite(value) or "Total" in title:
        return
    both = "_bidirectional" if "<->" in title and "latency" not in title.lower() else ""
    if "GPU(row)" in title:
        if row == column or value == 0:
            return
        metric = (
            "latency_ns" if "atency" in title else f"{'bidirectional' if both else 'unidirectional'}{_read(title)}_gbps"
        )
        a, b = (row, column) if "<-" not in title.replace("<->", "") else (column, row)
        engine = "" if " CE " in title or metric == "latency_ns" else "_sm"
        yield (
            "pair_measure",
            {"a": a, "b": b, "metric": metric.replace("_gbps", f"{engine}_gbps"), "p2p": True, "value": value},
        )
        return
    if "atency" in title:
        metric = "latency_ns"
    elif "local" in title.lower():
        metric = "local_gbps"
    else:
        way = "device_to_host" if "<- GPU" in title or test.startswith("device_to_host") else "host_to_device"
        metric = f"{way}{both}_gbps" if " CE " in title else f"{way}{both}_sm_gbps"
    yield "host_measure", {"gpu": column, "metric": metric, "value": value}


def _read(title: str) -> str:
    """Bidirectional tests print the reading and the writing side apart."""
    return "_read" if "Read" in title else ""


def _json_rows(document: Any) -> Iterator[tuple[str, Values]]:
    root = document.get("nvbandwidth") if isinstance(document, dict) else None
    if not isinstance(root, dict):
        return
    for text in _list(root.get("GPU Device list")):
        found = _DEVICE.match(str(text))
        if found:
            gpu, name, bus = found.groups()
            yield "pair_device", {"gpu": int(gpu), "bus_id": bus_id(bus), "name": name}
    for case in _list(root.get("testcases")):
        if isinstance(case, dict):
            test, title = str(case.get("name", "")), str(case.get("bandwidth_description", ""))
            for row, cells in enumerate(_list(case.get("bandwidth_matrix"))):
                for column, cell in enumerate(_list(cells)):
                    yield from measure(test, title, row, column, str(cell))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


_LITERALS = ("nvbandwidth Version:", '"nvbandwidth"', "memcpy CE ", "memcpy SM ", "Latency SM ", "memory latency SM")

FORMAT = Format(
    name="nvbandwidth",
    grammar="nvbandwidth",
    literals=_LITERALS,
    session=NvbandwidthSession,
    title="copy bandwidth and latency (nvbandwidth)",
    command="nvbandwidth",
    versions="nvbandwidth 0.2 to 0.8",
    weak_literals=frozenset({"memcpy CE ", "memcpy SM ", "Latency SM ", "memory latency SM"}),
)
