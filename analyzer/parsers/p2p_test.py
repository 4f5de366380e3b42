r"""p2pBandwidthLatencyTest (cuda-samples): bandwidth and latency between every pair of GPUs of a host.

    [P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
    Device: 0, NVIDIA A100-SXM4-80GB, pciBusID: 17, pciDeviceID: 0, pciDomainID:0
    Device=0 CAN Access Peer Device=1
    P2P=Enabled Latency (P2P Writes) Matrix (us)
       GPU     0      1
         0   2.61   2.89

Seen: samples of CUDA 8 to 13; old ones name no "(P2P Writes)" and print one latency block, under ``D\D``.
Rows are sources, columns are destinations; the diagonal is a copy inside one GPU and is not kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import bus_id
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

TOOL = "p2pBandwidthLatencyTest"
_PATIENCE = 12
"""Foreign lines after a finished GPU block of a latency matrix, within which its CPU block must begin."""


class P2pSession(Session):
    """Reads one matrix after the other; between two matrices nothing is open."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._reset()

    def _reset(self) -> None:
        self._title = ""
        self._metric = ""
        self._p2p: bool | None = None
        self._columns: list[int] = []
        self._missing = 0
        self._foreign = 0
        self._access: dict[tuple[int, int], tuple[Line, int]] = {}

    def foreign(self, line: Line) -> Verdict:
        if not line.text.strip():
            return Verdict.LEFT
        self._foreign += 1
        return Verdict.ENDED if not self._missing and self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Sends the peer access that the device list stated and no matrix repeated."""
        access, self._access = self._access, {}
        for (a, b), (line, value) in access.items():
            self._send(line, a, b, "connectivity", float(value))
        self._reset()
        super().close()

    def on_banner(self, f: Fields, line: Line) -> None:
        self.close()

    def on_note(self, f: Fields, line: Line) -> None:
        """Known: advice."""

    def on_device(self, f: Fields, line: Line) -> None:
        bus = bus_id(f"{int(f['domain'], 16):04x}:{f['bus']}:{f['device']}")
        self.emit("pair_device", line, {"gpu": int(f["gpu"]), "bus_id": bus, "name": f["name"], "tool": TOOL})

    def on_peer(self, f: Fields, line: Line) -> None:
        self._access[int(f["gpu"]), int(f["peer"])] = (line, int(f["access"] == "CAN"))

    def on_title(self, f: Fields, line: Line) -> None:
        self._title = f["title"]
        self._p2p = "P2P=Enabled" in self._title if "P2P=" in self._title else None
        self._start_block("")
        self.open = True

    def on_columns(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._start_block(f["corner"])
        self._columns = [int(column) for column in f["columns"].split()]
        self._missing = len(self._columns)
        return None

    def _start_block(self, corner: str) -> None:
        self._metric = _metric(self._title, corner)
        self._columns = []
        self._missing = 1
        self._foreign = 0

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        if not self._missing or not self._columns:
            return Verdict.LEFT
        row, cells = int(f["row"]), _whole(f["cells"].split(), len(self._columns))
        if row not in self._columns or len(cells) > len(self._columns):
            return Verdict.LEFT
        for column, cell in zip(self._columns, cells, strict=False):
            if column != row and math.isfinite(value := float(cell)):
                self._send(line, row, column, self._metric, value)
        self._foreign = 0
        self._missing -= 1
        if not self._missing and self._metric not in ("latency_us", "latency_read_us"):
            self.open = False
        return None

    def _send(self, line: Line, a: int, b: int, metric: str, value: float) -> None:
        p2p = self._p2p
        if metric == "connectivity":
            self._access.pop((a, b), None)
            p2p = None
        self.emit("pair_measure", line, {"a": a, "b": b, "metric": metric, "p2p": p2p, "value": value, "tool": TOOL})


def _metric(title: str, corner: str) -> str:
    """Name of the figures of a matrix; ``corner`` is the word above its row numbers."""
    read = "_read" if "(P2P Reads)" in title else ""
    if title.startswith("P2P Connectivity"):
        return "connectivity"
    if "Latency" in title:
        return f"{'cpu_' if corner == 'CPU' else ''}latency{read}_us"
    return f"{'bidirectional' if title.startswith('Bi') else 'unidirectional'}{read}_gbps"


def _whole(cells: list[str], wanted: int) -> list[str]:
    """The cells of a row less a last one that was cut: it has fewer decimals, or the row is too short."""
    if len(cells) < wanted or (len(cells) > 1 and _decimals(cells[-1]) < _decimals(cells[0])):
        return cells[:-1]
    return cells


def _decimals(cell: str) -> int:
    return len(cell.partition(".")[2]) if cell[-1].isdigit() or cell.endswith(".") else 99


FORMAT = Format(
    name="p2p-test",
    grammar="p2p_test",
    literals=(
        "[P2P (Peer-to-Peer)",
        "pciBusID:",
        "Access Peer Device=",
        "P2P Connectivity Matrix",
        "directional P2P=",
        "P2P=Enabled Latency",
        "P2P=Disabled Latency",
    ),
    session=P2pSession,
    title="GPU pair bandwidth and latency (p2pBandwidthLatencyTest)",
    command="p2pBandwidthLatencyTest (from cuda-samples)",
    versions="cuda-samples 8 to 13",
    weak_literals=frozenset({"P2P Connectivity Matrix", "P2P=Enabled Latency", "P2P=Disabled Latency"}),
)
