"""Dump of ``nvidia-smi -q``, drivers 384 to 610, and the error lines with which nvidia-smi gives up.

    ==============NVSMI LOG==============

    Timestamp                                              : Tue Jul 14 09:00:27 2026
    Driver Version                                         : 580.159.04
    CUDA Version                                           : 13.0

    Attached GPUs                                          : 1
    GPU 00000000:17:00.0
        Product Name                                       : NVIDIA H200
        FB Memory Usage
            Total                                          : 143771 MiB
            Reserved                                       : 616 MiB

    Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error

The indentation gives the nesting; a field may have a value and children. A dump may be cut anywhere, restricted by
``-d`` or ``-i``, repeated (``-l``), pasted with an indentation of its own, and interrupted by other lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.smi_dump import Dump, Gpu
from analyzer.parsers.smi_fields import part
from analyzer.parsers.values import bus_id, integer
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import named_seconds

Fields = Mapping[str, str]

TOOL = "nvidia-smi"
# What opens a dump whose beginning is missing, by its name in a path.
_HEADLESS = {
    "fb_memory_usage": "FB Memory Usage",
    "gpu_link_info": "GPU Link Info",
    "clocks_event_reasons": "Clocks Event Reasons",
    "clocks_throttle_reasons": "Clocks Throttle Reasons",
    "fabric": "    Fabric",
    "ecc_errors": "    ECC Errors",
    "remapped_rows": "    Remapped Rows",
    "retired_pages": "    Retired Pages",
    "bank_remap_availability_histogram": "Bank Remap Availability Histogram",
    "gpu_recovery_action": "GPU Recovery Action",
}
_ERRORS = (
    "Unable to determine the device handle for",
    "Failed to initialize NVML",
    "NVML library version:",
    "NVIDIA-SMI has failed because",
    "No devices were found",
    "infoROM is corrupted at",
)
_ERROR = re.compile(r"(?:^|[\]:>|] |\")(?=(?:WARNING: )?(?:" + "|".join(_ERRORS) + "))")
_PROMPT = re.compile(r"\s{0,8}(?:\(\S{1,40}\) ?)?(?:\[?[\w.-]{1,64}@[\w.-]{1,64}[^#$]{0,64})?[#$>] \S")
_ONE = re.compile(r"(?:-i|--id=?)\s*([0-9]+)(?:\s|$)")
_HEADER_LINES = 14  # between the banner and the first GPU
_LATE_LINES = 8  # foreign lines after the last process list


class SmiQuerySession(Session):
    """Collects a dump and sends it when the next one begins or the block ends."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._dump = Dump()
        self._asked: tuple[int, int | None] = (0, None)
        self._stack: list[tuple[int, str]] = []
        self._base = 0
        self._start = 0
        self._late = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        if called:
            error = _ERROR.search(line.text)
            if error is not None and error.end():
                line = replace(line, text=line.text[error.end() :])
        elif not line.text.strip():
            return Verdict.LEFT
        return super().offer(line, called)

    def foreign(self, line: Line) -> Verdict:
        self._late += self._dump.complete()
        return Verdict.ENDED if self._late > _LATE_LINES or _PROMPT.match(line.text) else Verdict.LEFT

    def close(self) -> None:
        """Sends the dump."""
        self._dump.send(self.emit)
        self._dump = Dump()
        super().close()

    def _begin(self, line: Line) -> None:
        """A new snapshot, unless only the header of one has been seen."""
        if self._dump.gpus:
            self._dump.send(self.emit)
            self._dump = Dump()
        self._stack.clear()
        self._start = line.ref
        self._late = 0
        self.open = True

    def _ask(self, line: Line) -> None:
        at, which = self._asked
        if 0 < line.ref - at <= 12:
            self._dump.asked = which

    def on_banner(self, f: Fields, line: Line) -> None:
        lost = self._dump.lost if not self._dump.gpus else {}
        self._begin(line)
        self._dump = Dump(lost=lost)
        self._base = _width(f)
        self._ask(line)

    def on_stamp(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open or _width(f) != self._base:
            return Verdict.LEFT
        self._begin(line)
        self._dump.at = named_seconds(f["text"])[0]
        return None

    def on_driver(self, f: Fields, line: Line) -> Verdict | None:
        return self._version("NVIDIA driver", f, line)

    def on_cuda(self, f: Fields, line: Line) -> Verdict | None:
        return self._version("CUDA runtime", f, line)

    def _version(self, component: str, f: Fields, line: Line) -> Verdict | None:
        if not self.open or _width(f) != self._base:
            return Verdict.LEFT
        value = f["text"].split(" [")[0].strip()
        if value[:1].isdigit() and component not in self._dump.versions:
            self._dump.versions.add(component)
            values: dict[str, object] = {"component": component, "value": value}
            self.emit("version", line, values if self._dump.at is None else values | {"at": self._dump.at})
        return None

    def on_attached(self, f: Fields, line: Line) -> None:
        self._begin(line)
        self._base = _width(f)
        self._dump.attached = int(f["count"])
        self._ask(line)

    def on_command(self, f: Fields, line: Line) -> Verdict:
        """A command line: not output, but it may tell which GPU the next dump is about."""
        found = _ONE.search(f.get("options", ""))
        self._asked = (line.ref, int(found.group(1)) if found else None)
        return Verdict.ENDED if self.open else Verdict.LEFT

    def on_gpu(self, f: Fields, line: Line) -> None:
        bus = bus_id(f["bus"])
        if not self.open or self._dump.has(bus):
            self._begin(line)
            self._ask(line)
        self._base = _width(f)
        self._stack.clear()
        self._dump.gpus.append(Gpu(line, bus))

    def on_section(self, f: Fields, line: Line) -> Verdict | None:
        name = part(f["title"])
        if not self._headless(name, line):
            return Verdict.LEFT
        return self._enter(f, name) if self._dump.gpus else self._header(line)

    def on_pair(self, f: Fields, line: Line) -> Verdict | None:
        name = part(f["key"])
        if not self._headless(name, line):
            return Verdict.LEFT
        if not self._dump.gpus:
            return self._header(line)
        verdict = self._enter(f, name)
        if verdict is None:
            path = tuple(name for _, name in self._stack)
            self._dump.gpus[-1].take(path, f.get("text", "").strip(), line)
        return verdict

    def _headless(self, name: str, line: Line) -> bool:
        """True inside a dump; a section that only a dump has begins one whose head is missing."""
        if not self.open and name in _HEADLESS:
            self._begin(line)
            self._base = -1
            self._dump.gpus.append(Gpu(line, None, headed=False))
        return self.open

    def _header(self, line: Line) -> Verdict | None:
        """Lines between the banner and the first GPU: known, of no use."""
        return None if self.open and line.ref - self._start <= _HEADER_LINES else Verdict.LEFT

    def _enter(self, f: Fields, name: str) -> Verdict | None:
        """Puts a section or field in its place of the tree; what stands left of the tree is foreign."""
        width = _width(f)
        if width <= self._base:
            return Verdict.LEFT
        while self._stack and self._stack[-1][0] >= width:
            self._stack.pop()
        self._stack.append((width, name))
        self._base = max(self._base, 0)
        return None

    def on_handle(self, f: Fields, line: Line) -> None:
        bus, index = bus_id(f.get("bus")), integer(f.get("index"))
        self._fault(line, line.text, {"gpu": index, "bus_id": bus})
        if bus is not None:
            self._dump.lost[bus] = index

    def on_nvml(self, f: Fields, line: Line) -> None:
        self._fault(line, f"Failed to initialize NVML: {f['text'].strip()}", {})

    def on_library(self, f: Fields, line: Line) -> None:
        self.emit("version", line, {"component": "NVML", "value": f["text"].strip()})

    def on_whole(self, f: Fields, line: Line) -> None:
        self._fault(line, " ".join(filter(None, (f["whole"], f.get("text", "").strip().strip(".")))), {})

    def on_inforom(self, f: Fields, line: Line) -> None:
        self._fault(line, "infoROM is corrupted", {"bus_id": bus_id(f["bus"])})

    def _fault(self, line: Line, text: str, where: dict[str, object]) -> None:
        self.emit("device_fault", line, {**where, "text": text.strip(), "tool": TOOL})


def _width(f: Fields) -> int:
    """Columns in front of the line; a tab stands for the four blanks of one step."""
    return len(f.get("indent", "").replace("\t", "    "))


FORMAT = Format(
    name="nvidia-smi-q",
    grammar="smi_query",
    literals=("NVSMI LOG==", "Attached GPUs  ", "GPU 0000", "nvidia-smi -q", *_HEADLESS.values(), *_ERRORS),
    session=SmiQuerySession,
    title="nvidia-smi -q",
    command="nvidia-smi -q",
    versions="drivers 384 to 610",
    weak_literals=frozenset(
        {
            "GPU 0000",
            "nvidia-smi -q",
            "Failed to initialize NVML",
            "NVML library version:",
            "No devices were found",
            *_HEADLESS.values(),
        }
    ),
)
