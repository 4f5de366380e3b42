r"""Matrix of ``nvidia-smi topo -p2p r``: whether the driver offers peer access between two GPUs, drivers 450 to 610.

    \tGPU0\tGPU1\tGPU2
    GPU0\tX\tOK\tCNS
    GPU1\tOK\tX\tCNS
    GPU2\tCNS\tCNS\tX

The letter of the command says what for: r reads, w writes, n NVLink, a atomics, p the PCIe property. OK is yes; CNS,
GNS and TNS blame the chipset, the GPU or the topology, NS is "not supported", U unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_NEAR = 3


class SmiP2pSession(Session):
    """Reads the rows below a heading of GPUs; every cell of a row is sent at once."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._columns: list[str] = []
        self._capability: tuple[int, str | None] = (0, None)
        self._strange = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        self._strange += bool(line.text.strip())
        return Verdict.ENDED if self.open and self._strange > _NEAR else Verdict.LEFT

    def close(self) -> None:
        """Forgets the heading."""
        self._columns = []
        super().close()

    def on_command(self, f: Fields, line: Line) -> None:
        self._capability = (line.ref, f["capability"])

    def on_header(self, f: Fields, line: Line) -> None:
        self._columns = line.text.replace("[4m", " ").replace("[0m", " ").split()
        self._strange = 0
        self.open = True

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        cells = f["cells"].split()
        if len(cells) > len(self._columns) or f["label"] not in self._columns:
            return Verdict.LEFT
        ref, letter = self._capability
        capability = letter if 0 < line.ref - ref <= len(self._columns) + _NEAR else None
        for column, status in zip(self._columns, cells, strict=False):
            if status != "X" and column != f["label"]:
                values = {"a": int(f["label"][3:]), "b": int(column[3:]), "capability": capability, "status": status}
                self.emit("p2p_status", line, values)
        return None

    def on_legend_title(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_legend(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT


FORMAT = Format(
    name="nvidia-smi-p2p",
    grammar="smi_p2p",
    literals=("topo -p2p", "topo --p2p", "GPU0\tGPU1", "GPU0 GPU1", "GPU0  GPU1", "GPU0   GPU1", "GPU0    GPU1"),
    session=SmiP2pSession,
    title="peer access of GPUs (nvidia-smi topo -p2p)",
    command="nvidia-smi topo -p2p r",
    versions="drivers 450 to 610",
    weak_literals=frozenset(
        {"topo -p2p", "topo --p2p", "GPU0\tGPU1", "GPU0 GPU1", "GPU0  GPU1", "GPU0   GPU1", "GPU0    GPU1"}
    ),
)
