"""One dump of ``nvidia-smi -q`` while it is read: its GPUs, their waiting rows, and the index of each GPU."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.parsers.base import Emit, Line
from analyzer.parsers.smi_fields import absent, fault, field_name, reading
from analyzer.parsers.values import bus_id, integer, size

TOOL = "nvidia-smi -q"
Path = tuple[str, ...]

_DEVICE = {
    ("product_name",): "name",
    ("gpu_uuid",): "uuid",
    ("mig_mode", "current"): "mig_mode",
    ("compute_mode",): "compute_mode",
}
_MEMORY = {"total": "total_bytes", "reserved": "reserved_bytes", "used": "used_bytes", "free": "free_bytes"}
_SLICE: dict[Path, str] = {("gpu_instance_id",): "gpu_instance", ("compute_instance_id",): "compute_instance"}
_PROCESS = {"type": "kind", "name": "name", "used_gpu_memory": "used_bytes"}


@dataclass(slots=True)
class Gpu:
    """One GPU block: what it said so far. ``headed`` is false for the rest of a block whose head was cut off."""

    line: Line
    bus: str | None
    headed: bool = True
    device: dict[str, object] = field(default_factory=dict)
    memory: dict[str, object] = field(default_factory=dict)
    memory_line: Line | None = None
    processes: list[tuple[Line, dict[str, object]]] = field(default_factory=list)
    rows: list[tuple[str, Line, dict[str, object]]] = field(default_factory=list)
    slices: list[tuple[Line, dict[str, object]]] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)
    complete: bool = False

    def take(self, path: Path, text: str, line: Line) -> None:
        """Files one value under its path."""
        broken = fault(text)
        if broken is not None:
            if broken not in self.faults:
                self.faults.add(broken)
                self.rows.append(("device_fault", line, {"text": broken, "tool": TOOL}))
            return
        if path[0] == "processes":
            self._process(path, text, line)
            return
        if path[0] == "mig_device":
            self._slice(path, text, line)
            return
        if absent(text):
            return
        self._device(path, text, line)
        name = field_name(path)
        if name is not None:
            self.rows.append(("gpu_health", line, {"field": name, "text": text, "value": reading(text)}))

    def _device(self, path: Path, text: str, line: Line) -> None:
        if path in _DEVICE:
            self.device[_DEVICE[path]] = text
        elif path == ("minor_number",):
            self.device["minor"] = integer(text)
        elif path == ("pci", "bus_id"):
            self.bus = self.bus or bus_id(text)
        elif path[0] == "fb_memory_usage" and len(path) == 2 and path[1] in _MEMORY:
            figure = size(text)
            if figure is None:
                return
            if path[1] in ("total", "reserved"):
                self.device[_MEMORY[path[1]]] = figure.bytes
            else:
                self.memory[_MEMORY[path[1]]] = figure.bytes
                self.memory["error_bytes"] = figure.error
                self.memory_line = self.memory_line or line

    def _slice(self, path: Path, text: str, line: Line) -> None:
        """One field of a MIG device; its memory is called shared where it has compute instances of its own."""
        if path[1:] == ("index",):
            self.slices.append((line, {"slice": integer(text)}))
        elif self.slices and path[1:] in _SLICE:
            self.slices[-1][1][_SLICE[path[1:]]] = integer(text)
        elif self.slices and len(path) == 3 and path[1].endswith("fb_memory_usage") and path[2] in _MEMORY:
            figure = size(text)
            if figure is not None:
                self.slices[-1][1][_MEMORY[path[2]]] = figure.bytes

    def _process(self, path: Path, text: str, line: Line) -> None:
        key = path[-1]
        self.complete = True
        if key == "process_id":
            self.processes.append((line, {"pid": integer(text)}))
        elif self.processes and key in _PROCESS and not absent(text):
            values = self.processes[-1][1]
            figure = size(text) if key == "used_gpu_memory" else None
            if figure is not None:
                values["used_bytes"], values["error_bytes"] = figure
            elif key != "used_gpu_memory":
                values[_PROCESS[key]] = text

    def send(self, emit: Emit, gpu: int | None, at: float | None) -> None:
        """Sends the rows of this GPU."""
        common: dict[str, object] = {"gpu": gpu, "bus_id": self.bus}
        if at is not None:
            common["at"] = at
        if self.bus is not None:
            emit("gpu_device", self.line, {**common, **self.device, "tool": TOOL})
        if self.memory_line is not None:
            emit("gpu_memory", self.memory_line, {**common, **self.memory, "tool": TOOL})
        for line, values in self.processes:
            emit("gpu_process", line, {**common, **values, "tool": TOOL})
        for line, values in self.slices:
            emit("mig_device", line, {**common, **values, "tool": TOOL})
        for table, line, values in self.rows:
            emit(table, line, {**common, **values})


@dataclass(slots=True)
class Dump:
    """One snapshot. ``asked`` is the index that the command line in front of it restricted it to."""

    at: float | None = None
    attached: int | None = None
    asked: int | None = None
    gpus: list[Gpu] = field(default_factory=list)
    lost: dict[str, int | None] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)

    def has(self, bus: str | None) -> bool:
        """True where the dump holds this GPU already."""
        return any(gpu.bus == bus and gpu.headed for gpu in self.gpus)

    def complete(self) -> bool:
        """True where the process list of the last GPU has been seen."""
        return bool(self.gpus) and self.gpus[-1].complete and len(self.gpus) >= (self.attached or 1)

    def send(self, emit: Emit) -> None:
        """Sends all rows, each GPU under its index where that is sure."""
        for gpu, index in zip(self.gpus, self.indices(), strict=True):
            gpu.send(emit, index, self.at)

    def indices(self) -> list[int | None]:
        """The index of each GPU: its place in the dump, moved up by GPUs that could not be opened.

        A dump without its beginning, or of one GPU out of several, does not tell it.
        """
        count = len(self.gpus)
        if not all(gpu.headed for gpu in self.gpus):
            return [None] * count
        if count == 1 and self.asked is not None:
            return [self.asked]
        if count == 1 and (self.attached or 1) > 1 and not self.lost and not self._cut():
            return [None]
        return self._moved()

    def _cut(self) -> bool:
        """True where the only block of a full dump broke off: it was the first one, not one asked for."""
        gpu = self.gpus[0]
        full = any(name in ("persistence_mode", "vbios_version") for name in _fields(gpu)) and "name" in gpu.device
        return full and not gpu.complete

    def _moved(self) -> list[int | None]:
        present = [gpu.bus or "" for gpu in self.gpus]
        missing = {bus: index for bus, index in self.lost.items() if bus not in present}
        known = {index for index in missing.values() if index is not None}
        unplaced = sorted(bus for bus, index in missing.items() if index is None)
        if unplaced and present != sorted(present):
            return [None] * len(present)
        found: list[int | None] = []
        at = 0
        for bus in present:
            while at in known or (unplaced and unplaced[0] < bus):
                if at not in known:
                    unplaced.pop(0)
                at += 1
            found.append(at)
            at += 1
        return found


def _fields(gpu: Gpu) -> set[object]:
    return {values.get("field") for table, _, values in gpu.rows if table == "gpu_health"}
