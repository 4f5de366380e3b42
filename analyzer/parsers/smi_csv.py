"""Tables of ``nvidia-smi --query-gpu=... --format=csv`` and ``--query-compute-apps``, with header.

    index, name, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB], temperature.gpu
    0, NVIDIA H200, 00000000:00:06.0, 143771 MiB, 0 MiB, 143156 MiB, 37

With ``nounits`` the cells are bare numbers in the unit of the header; ``-l`` repeats the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.smi_fields import absent, fault, reading
from analyzer.parsers.values import bus_id, integer, size
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import iso_seconds

Fields = Mapping[str, str]
Cells = dict[str, str]

TOOL = "nvidia-smi --query"
_FOREIGN_LINES = 8
_COLUMN = re.compile(r"([\w.]+)(?: \[(.+)\])?")
_ALIASES = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "process_name": "process"}
_DEVICE = {"name": "name", "uuid": "uuid", "mig.mode.current": "mig_mode", "compute_mode": "compute_mode"}
_DEVICE_SIZES = {"memory.total": "total_bytes", "memory.reserved": "reserved_bytes"}
_MEMORY = {"memory.used": "used_bytes", "memory.free": "free_bytes"}
_HEALTH = {
    "clocks.current.graphics": "clocks.graphics",
    "clocks.current.memory": "clocks.memory",
    "clocks.current.sm": "clocks.sm",
    "clocks.gr": "clocks.graphics",
    "clocks.max.graphics": "max_clocks.graphics",
    "clocks.max.memory": "max_clocks.memory",
    "clocks.max.sm": "max_clocks.sm",
    "clocks.mem": "clocks.memory",
    "clocks.sm": "clocks.sm",
    "clocks_event_reasons.hw_power_brake_slowdown": "clocks_event_reasons.hw_slowdown.hw_power_brake_slowdown",
    "clocks_event_reasons.hw_slowdown": "clocks_event_reasons.hw_slowdown",
    "clocks_event_reasons.hw_thermal_slowdown": "clocks_event_reasons.hw_slowdown.hw_thermal_slowdown",
    "clocks_event_reasons.sw_power_cap": "clocks_event_reasons.sw_power_cap",
    "clocks_event_reasons.sw_thermal_slowdown": "clocks_event_reasons.sw_thermal_slowdown",
    "ecc.errors.corrected.volatile.total": "ecc_errors.volatile.corrected_total",
    "ecc.errors.corrected.aggregate.total": "ecc_errors.aggregate.corrected_total",
    "ecc.errors.uncorrected.volatile.total": "ecc_errors.volatile.uncorrected_total",
    "ecc.errors.uncorrected.aggregate.total": "ecc_errors.aggregate.uncorrected_total",
    "ecc.mode.current": "ecc_mode.current",
    "ecc.mode.pending": "ecc_mode.pending",
    "fabric.state": "fabric.state",
    "fabric.status": "fabric.status",
    "gpu_recovery_action": "gpu_recovery_action",
    "mig.mode.current": "mig_mode.current",
    "pcie.link.gen.current": "pci.gpu_link_info.pcie_generation.current",
    "pcie.link.gen.gpucurrent": "pci.gpu_link_info.pcie_generation.device_current",
    "pcie.link.gen.gpumax": "pci.gpu_link_info.pcie_generation.device_max",
    "pcie.link.gen.hostmax": "pci.gpu_link_info.pcie_generation.host_max",
    "pcie.link.gen.max": "pci.gpu_link_info.pcie_generation.max",
    "pcie.link.width.current": "pci.gpu_link_info.link_width.current",
    "pcie.link.width.max": "pci.gpu_link_info.link_width.max",
    "persistence_mode": "persistence_mode",
    "power.default_limit": "gpu_power_readings.default_power_limit",
    "power.draw": "gpu_power_readings.average_power_draw",
    "power.draw.average": "gpu_power_readings.average_power_draw",
    "power.draw.instant": "gpu_power_readings.instantaneous_power_draw",
    "power.limit": "gpu_power_readings.requested_power_limit",
    "enforced.power.limit": "gpu_power_readings.current_power_limit",
    "power.max_limit": "gpu_power_readings.max_power_limit",
    "pstate": "performance_state",
    "remapped_rows.correctable": "remapped_rows.correctable_error",
    "remapped_rows.failure": "remapped_rows.remapping_failure_occurred",
    "remapped_rows.pending": "remapped_rows.pending",
    "remapped_rows.uncorrectable": "remapped_rows.uncorrectable_error",
    "retired_pages.double_bit.count": "retired_pages.double_bit_ecc",
    "retired_pages.pending": "retired_pages.pending_page_blacklist",
    "retired_pages.single_bit_ecc.count": "retired_pages.single_bit_ecc",
    "temperature.gpu": "temperature.gpu_current_temp",
    "temperature.memory": "temperature.memory_current_temp",
    "utilization.gpu": "utilization.gpu",
    "utilization.memory": "utilization.memory",
}
_REASONS = (
    "idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_slowdown.hw_thermal_slowdown",
    "hw_slowdown.hw_power_brake_slowdown",
    "display_clock_setting",
)
"""What the bits of ``clocks_event_reasons.active`` mean, lowest first."""
_SURE = frozenset({"index", "uuid", "pci.bus_id"})
_USED = frozenset({"used_gpu_memory", "used_memory"})
_FORM = {
    "index": re.compile("[0-9]+"),
    "pci.bus_id": re.compile("[0-9A-Fa-f]{4,8}:.*"),
    "uuid": re.compile("(?:GPU|MIG)-.*"),
    "pid": re.compile("[0-9]+"),
}


class SmiCsvSession(Session):
    """Reads the rows below a header that names GPUs."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._columns: list[tuple[str, str | None]] = []
        self._cards: dict[str, dict[str, object]] = {}
        self._strange = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        self._strange += bool(line.text.strip())
        return Verdict.ENDED if self.open and self._strange > _FOREIGN_LINES else Verdict.LEFT

    def on_header(self, f: Fields, line: Line) -> Verdict | None:
        columns = []
        for text in f["names"].split(","):
            found = _COLUMN.fullmatch(text.strip())
            if found is None:
                return self.foreign(line)
            columns.append((_column(found.group(1)), found.group(2)))
        if not _SURE.intersection(name for name, _ in columns):
            return self.foreign(line)
        self._columns = columns
        self._strange = 0
        self.open = True
        return None

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        texts = [text.strip() for text in f["cells"].split(",")]
        if not self.open or len(texts) != len(self._columns):
            return self.foreign(line)
        cells: Cells = {}
        for (name, unit), text in zip(self._columns, texts):
            form = _FORM.get(name)
            if form is not None and not form.fullmatch(text) and not absent(text) and fault(text) is None:
                return self.foreign(line)
            cells[name] = f"{text} {unit}" if unit in ("MiB", "W", "%", "MHz") and text[-1:].isdigit() else text
        self._strange = 0
        self._row(cells, line)
        return None

    def _row(self, cells: Cells, line: Line) -> None:
        common: dict[str, object] = {
            "gpu": integer(cells.get("index")),
            "bus_id": bus_id(cells.get("pci.bus_id")),
        }
        uuid = cells.get("uuid", "")
        if common["gpu"] is None and common["bus_id"] is None:
            common = dict(self._cards.get(uuid, common))
        elif uuid:
            self._cards[uuid] = dict(common)
        at = iso_seconds(cells.get("timestamp", ""))
        if at is not None:
            common["at"] = at
        for text in sorted({broken for broken in map(fault, cells.values()) if broken is not None}):
            self.emit("device_fault", line, {**common, "text": text, "tool": TOOL})
        good = {name: text for name, text in cells.items() if not absent(text) and fault(text) is None}
        if "pid" not in cells:
            self._device(good, common, line)
        elif _USED.intersection(cells):  # else accounts of processes that have ended
            self._process(good, common, line)

    def _process(self, cells: Cells, common: dict[str, object], line: Line) -> None:
        values: dict[str, object] = {
            "pid": integer(cells.get("pid")),
            "name": cells.get("process") or cells.get("name"),
        }
        used = size(cells.get("used_gpu_memory") or cells.get("used_memory"))
        if used is not None:
            values |= {"used_bytes": used.bytes, "error_bytes": used.error}
        self.emit("gpu_process", line, {**common, **values, "kind": "C", "tool": TOOL})

    def _device(self, cells: Cells, common: dict[str, object], line: Line) -> None:
        device: dict[str, object] = {_DEVICE[name]: text for name, text in cells.items() if name in _DEVICE}
        device |= {_DEVICE_SIZES[name]: figure for name, figure, _ in _sizes(cells) if name in _DEVICE_SIZES}
        self.emit("gpu_device", line, {**common, **device, "tool": TOOL})
        memory: dict[str, object] = {_MEMORY[name]: figure for name, figure, _ in _sizes(cells) if name in _MEMORY}
        if memory:
            error = max(error for name, _, error in _sizes(cells) if name in _MEMORY)
            self.emit("gpu_memory", line, {**common, **memory, "error_bytes": error, "tool": TOOL})
        for name, text in cells.items():
            if name in _HEALTH:
                values = {"field": _HEALTH[name], "text": text, "value": reading(text)}
                self.emit("gpu_health", line, {**common, **values})
        for name, text in _reasons(cells.get("clocks_event_reasons.active", "")):
            self.emit("gpu_health", line, {**common, "field": f"clocks_event_reasons.{name}", "text": text})
        if cells.get("driver_version", "")[:1].isdigit():
            self.emit("version", line, {"component": "NVIDIA driver", "value": cells["driver_version"]})


def _column(name: str) -> str:
    return _ALIASES.get(name, name.replace("clocks_throttle_reasons", "clocks_event_reasons"))


def _reasons(mask: str) -> list[tuple[str, str]]:
    """The reasons behind the bits of a mask, by the words of ``nvidia-smi -q``."""
    if not re.fullmatch("0x[0-9A-Fa-f]+", mask):
        return []
    bits = int(mask, 16)
    return [(name, "Active" if bits >> number & 1 else "Not Active") for number, name in enumerate(_REASONS)]


def _sizes(cells: Cells) -> list[tuple[str, int, int]]:
    found = [(name, size(text)) for name, text in cells.items() if name.startswith("memory.")]
    return [(name, figure.bytes, figure.error) for name, figure in found if figure is not None]


_LITERALS = (
    "pci.bus_id, ",
    ", pci.bus_id",
    "gpu_uuid, ",
    "gpu_bus_id, ",
    "memory.used [MiB]",
    "memory.total [MiB]",
    "memory.free [MiB]",
    "used_gpu_memory [MiB]",
    "utilization.gpu [%]",
    "power.draw [W]",
    "index, name",
    "index, uuid",
)

FORMAT = Format(
    name="nvidia-smi-csv",
    grammar="smi_csv",
    literals=_LITERALS,
    session=SmiCsvSession,
    title="nvidia-smi --query-gpu, CSV",
    command="nvidia-smi --query-gpu=index,name,pci.bus_id,memory.total,memory.used,memory.free --format=csv",
    versions="drivers 384 to 610",
    weak_literals=frozenset(_LITERALS),
)
