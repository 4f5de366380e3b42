r"""NVLinks of ``nvidia-smi nvlink``: state (``-s``), counters (``-e``, ``-ec``), far ends (``-p``, ``-R``); ``-L``.

    GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-1111-2222-3333-444444444444)
    \t Link 0: 25 GB/s
    \t Link 1: <inactive>
    \t Link 0: CRC Errors: 0
    \t Link 0: Remote Device 00000000:C9:00.0: Link 8

All these commands print the same line for a GPU; the lines behind it tell which one it was.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.smi_fields import part
from analyzer.parsers.values import bus_id, integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_FOREIGN_LINES = 8


class SmiNvlinkSession(Session):
    """Reads the links below a GPU; the GPU's own row waits for the first line that tells the command."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._gpu: int | None = None
        self._link_of_lanes: int | None = None
        self._waiting: tuple[Line, dict[str, object]] | None = None
        self._strange = 0

    def foreign(self, line: Line) -> Verdict:
        if line.text.strip():
            self._strange += 1
        return Verdict.ENDED if self._strange > _FOREIGN_LINES else Verdict.LEFT

    def close(self) -> None:
        """Sends the GPU that no link followed."""
        self._send("nvidia-smi -L")
        self._gpu = None
        super().close()

    def _send(self, tool: str) -> None:
        if self._waiting is not None:
            line, values = self._waiting
            self.emit("gpu_device", line, {**values, "tool": tool})
            self._waiting = None

    def on_gpu(self, f: Fields, line: Line) -> None:
        self._send("nvidia-smi -L")
        self._gpu = int(f["gpu"])
        self._waiting = (line, {"gpu": self._gpu, "uuid": f["uuid"], "name": f["name"].strip()})
        self._strange = 0
        self.open = True

    def on_mig(self, f: Fields, line: Line) -> Verdict | None:
        """A slice of the GPU above it."""
        if not self.open or self._gpu is None:
            return Verdict.LEFT
        self._strange = 0
        values = {"gpu": self._gpu, "slice": int(f["slice"]), "profile": f["profile"], "uuid": f["uuid"]}
        self.emit("mig_device", line, {**values, "tool": "nvidia-smi -L"})
        return None

    def on_speed(self, f: Fields, line: Line) -> Verdict | None:
        return self._link(line, int(f["link"]), True, float(f["speed"]))

    def on_inactive(self, f: Fields, line: Line) -> Verdict | None:
        return self._link(line, int(f["link"]), False, None)

    def on_all_inactive(self, f: Fields, line: Line) -> Verdict | None:
        return self._link(line, None, False, None)

    def on_one_inactive(self, f: Fields, line: Line) -> Verdict | None:
        return self._link(line, int(f["link"]), False, None)

    def _link(self, line: Line, link: int | None, active: bool, speed: float | None) -> Verdict | None:
        if self._gpu is None:
            return Verdict.LEFT
        self._send("nvidia-smi nvlink")
        self._strange = 0
        self.emit("gpu_link", line, {"gpu": self._gpu, "link": link, "active": active, "speed_gbps": speed})
        return None

    def on_counter(self, f: Fields, line: Line) -> Verdict | None:
        if self._gpu is None:
            return Verdict.LEFT
        self._send("nvidia-smi nvlink")
        self._strange = 0
        if "unit" not in f:
            field = f"nvlink.link_{f['link']}.{part(f['counter'].replace(' - ', ' '))}"
            values = {"gpu": self._gpu, "field": field, "text": f["value"], "value": float(f["value"])}
            self.emit("gpu_health", line, values)
        return None

    def on_remote(self, f: Fields, line: Line) -> Verdict | None:
        """The other end of a link (``-p``, ``-R``)."""
        if self._gpu is None:
            return Verdict.LEFT
        self._send("nvidia-smi nvlink")
        self._strange = 0
        values: dict[str, object] = {"gpu": self._gpu, "link": int(f["link"]), "remote_bus_id": bus_id(f["remote"])}
        values |= {"remote_kind": f.get("kind"), "remote_link": integer(f.get("far"))}
        self.emit("link_remote", line, values)
        return None

    def on_lanes(self, f: Fields, line: Line) -> Verdict | None:
        """The head of the lanes of a link."""
        if self._gpu is None:
            return Verdict.LEFT
        self._link_of_lanes, self._strange = int(f["link"]), 0
        return None

    def on_lane(self, f: Fields, line: Line) -> Verdict | None:
        """CRC errors of one lane (``-ec``), below the line that names the link."""
        if self._gpu is None or self._link_of_lanes is None:
            return Verdict.LEFT
        self._strange = 0
        field = f"nvlink.link_{self._link_of_lanes}.crc_errors_lane_{f['lane']}"
        values = {"gpu": self._gpu, "field": field, "text": f["value"], "value": float(f["value"])}
        self.emit("gpu_health", line, values)
        return None

    def on_detail(self, f: Fields, line: Line) -> Verdict | None:
        """Known: capabilities and throughput of a link."""
        if self._gpu is None:
            return Verdict.LEFT
        self._send("nvidia-smi nvlink")
        self._strange = 0
        return None


FORMAT = Format(
    name="nvidia-smi-nvlink",
    grammar="smi_nvlink",
    literals=("(UUID: GPU-", "NVML: Unable to retrieve N"),
    session=SmiNvlinkSession,
    title="nvidia-smi nvlink -s, nvidia-smi -L",
    command="nvidia-smi nvlink -s",
    versions="drivers 450 to 610",
    weak_literals=frozenset({"NVML: Unable to retrieve N"}),
)
