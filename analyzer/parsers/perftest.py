r"""Output of perftest (``ib_write_bw``, ``ib_read_bw``, ``ib_send_bw``) and of the OSU micro-benchmarks.

                        RDMA_Write BW Test
     Dual-port       : OFF\t\tDevice         : mlx5_0
     Mtu             : 4096[B]
     Link type       : Ethernet
     GID index       : 3
     #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
     65536      5000             376.86             376.85             0.718784
     Failed status 12: wr_id 0 syndrom 0x81

Seen: perftest 4.4 to 24, OSU 5 to 7. Bandwidths are brought to Gb/s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 8
_DEVICE = re.compile(r"Device\s*:\s*(\S+)")
_NUMBER = re.compile(r"[0-9]+")
_TOOLS = {"RDMA_Write": "ib_write", "RDMA_Read": "ib_read", "Send": "ib_send"}


class PerftestSession(Session):
    """Keeps the settings that stand above the figures."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._values: dict[str, object] = {}
        self._scale = 0.0
        self._column = 0
        self._foreign = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Forgets the settings."""
        self._values = {}
        self._scale = 0.0
        self._foreign = 0
        super().close()

    def _begin(self, tool: str) -> None:
        self._values = {"tool": tool}
        self._scale = 0.0
        self._foreign = 0
        self.open = True

    def on_title(self, f: Fields, line: Line) -> None:
        words = line.text.split()
        self._begin(f"{_TOOLS[words[0]]}_{'bw' if 'BW' in words else 'lat'}")

    def on_osu(self, f: Fields, line: Line) -> None:
        self._begin(line.text.strip("# ").partition(" v")[0])

    def on_pair(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        device, number = _DEVICE.search(line.text), _NUMBER.search(f["text"])
        name = line.text.strip()
        if device:
            self._values["device"] = device.group(1)
        elif name.startswith("Mtu") and number:
            self._values["mtu_bytes"] = int(number.group())
        elif name.startswith("GID index") and number:
            self._values["gid_index"] = int(number.group())
        elif name.startswith("Link type"):
            self._values["link_layer"] = "infiniband" if f["text"].strip() == "IB" else "ethernet"
        self._foreign = 0
        return None

    def on_head(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        gigabits = "Gb/sec" in line.text
        self._scale = (1.0 if gigabits else 8 * 1.048576 / 1000) if "BW average" in line.text else 0.0
        self._column = 3
        self._foreign = 0
        return None

    def on_osu_head(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._scale = 8 / 1000 if "MB/s" in line.text else 0.0
        self._column = 1
        return None

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        numbers = f["numbers"].split()
        if not self.open or not self._scale or len(numbers) <= self._column or not numbers[0].isdigit():
            return Verdict.LEFT
        value = round(float(numbers[self._column]) * self._scale, 3)
        self._send(line, {"size_bytes": int(numbers[0]), "value": value, "unit": "Gb/s", "failed": False})
        return None

    def _send(self, line: Line, values: Mapping[str, object]) -> None:
        self._foreign = 0
        self.emit("network_test", line, {**self._values, **values})

    def on_error(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._send(line, {"failed": True, "text": line.text.strip()[:200]})
        return None


FORMAT = Format(
    name="perftest",
    grammar="perftest",
    literals=("RDMA_Write ", "RDMA_Read ", "Send BW Test", "Send Bidirectional BW", "# OSU MPI"),
    session=PerftestSession,
    title="network tests (perftest, OSU micro-benchmarks)",
    command="ib_write_bw --report_gbits -d mlx5_0 SERVER",
    versions="perftest 4.4 to 24, OSU 5 to 7",
    weak_literals=frozenset({"RDMA_Write ", "RDMA_Read "}),
)
