r"""Matrix of ``nvidia-smi topo -m``, drivers 384 to 610, with GPUs and NICs.

    \tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
    GPU0\t X \tNV18\tPIX\t0-31,64-95\t0\t\tN/A
    GPU1\tNV18\t X \tNODE\t0-31,64-95\t0\t\tN/A
    NIC0\tPIX\tNODE\t X

Pasted copies have blanks for the tabs. The matrix is symmetric; where a copy is not, both directions are rows.
``topo -mp`` hides NVLinks, as its legend tells: its pairs of GPUs are left out, for they would look like lost links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.smi_fields import absent
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_GPU = re.compile(r"GPU([0-9]+)")
_PATH = re.compile(r"X|NV([0-9]+)|C2C|PIX|PXB|PHB|NODE|SYS|SOC|PSB")
_TITLES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_HEADER = re.compile(r"GPU[0-9]+\s.*CPU Affinity")
_FOREIGN_LINES = 12


class SmiTopoSession(Session):
    """Collects the rows of one matrix; pairs go out when the matrix is complete or breaks off."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._begin([], 0)

    def _begin(self, devices: list[str], columns: int) -> None:
        self._devices = devices
        self._columns = columns
        self._rows: dict[str, tuple[Line, dict[str, str]]] = {}
        self._signs: list[str] | None = None
        self._strange = 0

    def unread(self, line: Line) -> Verdict:
        return Verdict.UNREAD if _HEADER.search(line.text) else self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        if not line.text.strip():
            return Verdict.LEFT
        self._strange += 1
        return Verdict.ENDED if self._signs is not None or self._strange > _FOREIGN_LINES else Verdict.LEFT

    def close(self) -> None:
        """Sends the pairs."""
        self._send()
        self._begin([], 0)
        super().close()

    def on_header(self, f: Fields, line: Line) -> None:
        self._send()
        self._begin(f["devices"].split(), sum(title in line.text for title in _TITLES))
        self.open = True

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        label = f["label"]
        if not self.open:
            return Verdict.LEFT
        if self._signs is not None or label in self._rows or not (label in self._devices or _nic(label)):
            return self.foreign(line)
        cells, places = _split(line.text, f["cells"], f.get("places", ""), len(self._devices))
        self._rows[label] = (line, dict(zip(self._devices, cells)))
        gpu = _GPU.fullmatch(label)
        if gpu:
            self._affinity(int(gpu.group(1)), places, line)
        return None

    def _affinity(self, gpu: int, places: Sequence[str], line: Line) -> None:
        cpus, numa = _affinity(places, self._columns)
        if cpus is not None or numa is not None:
            self.emit("affinity", line, {"gpu": gpu, "cpus": cpus, "numa": numa})

    def on_legend_title(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._signs = self._signs or []
        return None

    def on_legend(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._signs = [*(self._signs or []), f["sign"]]
        return None

    def on_nic(self, f: Fields, line: Line) -> Verdict | None:
        """The name of a NIC; the matrix keeps its number."""
        if not self.open:
            return Verdict.LEFT
        self.emit("topo_nic", line, {"nic": f["nic"], "device": f["name"].strip()})
        return None

    def _send(self) -> None:
        order = [*self._devices, *(label for label in self._rows if label not in self._devices)]
        hidden = self._signs is not None and self._signs[-1:] == ["PIX"]
        for number, a in enumerate(order):
            for b in order[number + 1 :]:
                if hidden and not (_nic(a) or _nic(b)):
                    continue
                for one, other, line, path in self._pair(a, b):
                    found = _PATH.fullmatch(path)
                    links = int(found.group(1) or 0) if found else None
                    self.emit("topo_link", line, {"a": one, "b": other, "path": path, "nvlinks": links})

    def _pair(self, a: str, b: str) -> Iterator[tuple[str, str, Line, str]]:
        """The pair in header order; also the way back where the matrix is not symmetric or has only that."""
        there, back = self._cell(a, b), self._cell(b, a)
        if there is not None:
            yield (a, b, *there)
        if back is not None and there is None:
            yield (a, b, *back)
        elif back is not None and there is not None and back[1] != there[1]:
            yield (b, a, *back)

    def _cell(self, row: str, column: str) -> tuple[Line, str] | None:
        line, cells = self._rows.get(row, (None, {}))
        path = cells.get(column)
        return (line, path) if line is not None and path is not None else None


def _nic(label: str) -> bool:
    return _GPU.fullmatch(label) is None and any(c.isdigit() for c in label)


def _split(text: str, cells: str, places: str, columns: int) -> tuple[list[str], list[str]]:
    """The cells of a row and the texts behind them; empty texts are kept where tabs show them."""
    tabbed = [part.strip() for part in text.split("\t")]
    if len(tabbed) > columns and all(_PATH.fullmatch(cell) for cell in tabbed[1 : columns + 1]):
        return tabbed[1 : columns + 1], tabbed[columns + 1 :]
    return cells.split()[:columns], places.split()


def _affinity(places: Sequence[str], columns: int) -> tuple[str | None, str | None]:
    """CPU list and NUMA node from the texts behind the cells, under one to three column titles.

    The texts are the CPU list, the NUMA node, and behind an empty text the NUMA id of the GPU's own memory. Where
    blanks part them and one is missing, a single number is the node.
    """
    cpus, *rest = places or [""]
    if len(places) < columns and not re.search("[-,]", cpus):
        cpus, rest = "", [*places]
    if columns > 2 and rest:
        rest = rest[:-1]
    numa = next((text for text in rest if text), "")
    return (None if absent(cpus) else cpus), (None if absent(numa) else numa)


FORMAT = Format(
    name="nvidia-smi-topo",
    grammar="smi_topo",
    literals=("CPU Affinity",),
    session=SmiTopoSession,
    title="nvidia-smi topo -m",
    command="nvidia-smi topo -m",
    versions="drivers 384 to 610",
)
