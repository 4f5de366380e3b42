"""Plain table of ``nvidia-smi``, drivers 384 to 610, in all its widths, and ``nvidia-smi --version``.

    Tue Dec  1 12:16:22 2026
    +-----------------------------------------------------------------------------------------+
    | NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
    +-----------------------------------------+------------------------+----------------------+
    |   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |
    | N/A   38C    P0            121W /  700W |       0MiB / 143771MiB |      0%      Default |
    |                                         |                        |             Disabled |
    +-----------------------------------------+------------------------+----------------------+
    |    0   N/A  N/A            2201      C   python                              79500MiB |

Long names are cut by the tool ("NVIDIA A100-SXM..."). A value that it could not read is ``ERR!``; one that does not
fit its cell ends in dots and counts as not printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.smi_fields import absent
from analyzer.parsers.values import bus_id, integer, size
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import named_seconds

Fields = Mapping[str, str]

TOOL = "nvidia-smi"
_MODELS = ("WDDM", "TCC", "MCDM")  # Windows prints the driver model where Linux has the persistence mode
_FAULT = re.compile(r"ERR!|GPU is lost|Unknown Error|GPU requires reset")
_USE = re.compile(r"(?:\s([0-9]{1,3})C)(?:\s+(P[0-9]{1,2}))?(?:\s+([0-9]{1,4})W\s*/\s*([0-9]{1,4})W)?")
_MODES = {"E. Process": "Exclusive_Process", "E. Thread": "Exclusive_Thread"}
_PERSISTENCE = {"On": "Enabled", "Off": "Disabled"}
_DATE_LINES = 3  # between the date and the head of the table
_YEARS = tuple(f" {year}       " for year in range(2016, 2036))  # the date line is padded with blanks


class SmiTableSession(Session):
    """Puts the two or three lines of each GPU together; processes are complete in one line."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._date: tuple[int, float | None] = (0, None)
        self._begin(None)

    def _begin(self, at: float | None) -> None:
        self._at: dict[str, object] = {} if at is None else {"at": at}
        self._gpu: tuple[Line, dict[str, object]] | None = None
        self._where: dict[str, object] = {}
        self._bus: dict[int, str | None] = {}
        self._faults: set[str] = set()
        self._listed = False
        self._versions = False

    def offer(self, line: Line, called: bool) -> Verdict:
        return super().offer(line, called) if line.text.strip() else Verdict.LEFT

    def close(self) -> None:
        """Sends the last GPU."""
        self._flush()
        self._begin(None)
        super().close()

    def _flush(self) -> None:
        if self._gpu is not None:
            line, values = self._gpu
            self.emit("gpu_device", line, {**self._at, **self._where, **values, "tool": TOOL})
            self._gpu = None

    def on_date(self, f: Fields, line: Line) -> Verdict:
        self._date = (line.ref, named_seconds(line.text.strip())[0])
        return Verdict.LEFT

    def on_head(self, f: Fields, line: Line) -> None:
        self._flush()
        ref, at = self._date
        self._begin(at if 0 < line.ref - ref <= _DATE_LINES else None)
        self.open = True
        self._version("NVIDIA driver", f["driver"], line)
        self._version("CUDA runtime", f.get("cuda", ""), line)

    def _version(self, component: str, value: str, line: Line) -> None:
        if value[:1].isdigit():
            self.emit("version", line, {**self._at, "component": component, "value": value.split(" [")[0].strip()})

    def on_gpu(self, f: Fields, line: Line) -> None:
        self._flush()
        self.open = True
        self._listed = False
        gpu, bus = int(f["gpu"]), bus_id(f["bus"])
        self._bus[gpu] = bus
        self._where = {"gpu": gpu, "bus_id": bus}
        self._faults = set()
        name = f.get("card", "").rpartition(" ")[0].strip()
        self._gpu = (line, {} if not name or _FAULT.search(name) else {"name": name})
        mode = _PERSISTENCE.get(f.get("card", "").rpartition(" ")[2])
        if mode:
            self.emit("gpu_health", line, {**self._at, **self._where, "field": "persistence_mode", "text": mode})
        model = f.get("card", "").rpartition(" ")[2]
        if model in _MODELS:
            values = {**self._where, "field": "driver_model.current", "text": model}
            self.emit("gpu_health", line, {**self._at, **values})
        self._fault(line)

    def on_use(self, f: Fields, line: Line) -> Verdict | None:
        if self._gpu is None:
            return Verdict.LEFT
        values = self._gpu[1]
        used, total = size(f.get("used")), size(f.get("total"))
        if total is not None:
            values["total_bytes"] = total.bytes
        mode = f.get("right", "").partition(" ")[2].strip()
        if mode and not absent(mode) and not _FAULT.search(mode):
            values["compute_mode"] = _MODES.get(mode, mode)
        if used is not None:
            memory = {"used_bytes": used.bytes, "error_bytes": used.error, "tool": TOOL}
            self.emit("gpu_memory", line, {**self._at, **self._where, **memory})
        self._health(f["left"], line)
        self._fault(line)
        return None

    def _health(self, text: str, line: Line) -> None:
        """Temperature, performance state, power and its limit."""
        found = _USE.search(f" {text}")
        if found is None:
            return
        degrees, state, draw, limit = found.groups()
        self._reading(line, "temperature.gpu_current_temp", f"{degrees} C", degrees)
        if state:
            self._reading(line, "performance_state", state, None)
        if draw:
            self._reading(line, "gpu_power_readings.average_power_draw", f"{draw} W", draw)
            self._reading(line, "gpu_power_readings.current_power_limit", f"{limit} W", limit)

    def _reading(self, line: Line, field: str, text: str, value: str | None) -> None:
        values = {"field": field, "text": text, "value": float(value) if value else None}
        self.emit("gpu_health", line, {**self._at, **self._where, **values})

    def on_mig(self, f: Fields, line: Line) -> Verdict | None:
        if self._gpu is None:
            return self._known()
        if f["mig"].rstrip("*") in ("Enabled", "Disabled"):
            self._gpu[1]["mig_mode"] = f["mig"].rstrip("*")
        self._fault(line)
        return None

    def _fault(self, line: Line) -> None:
        for text in _FAULT.findall(line.text):
            if text not in self._faults:
                self._faults.add(text)
                self.emit("device_fault", line, {**self._at, **self._where, "text": text, "tool": TOOL})

    def on_process(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._flush()
        self._listed = True
        gpu = int(f["process_gpu"])
        values: dict[str, object] = {"gpu": gpu, "bus_id": self._bus.get(gpu), "pid": integer(f["pid"])}
        values |= {"kind": f["kind"], "tool": TOOL}
        if not absent(f.get("program", "")):
            values["name"] = f["program"]
        used = size(f["memory"])
        if used is not None:
            values |= {"used_bytes": used.bytes, "error_bytes": used.error}
        self.emit("gpu_process", line, {**self._at, **values})
        return None

    def on_idle(self, f: Fields, line: Line) -> Verdict | None:
        self._listed = True
        return self._known()

    def on_rule(self, f: Fields, line: Line) -> Verdict | None:
        if self.open and self._listed:
            self.close()
            return None
        self._flush()
        return self._known()

    def _known(self) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_titles(self, f: Fields, line: Line) -> Verdict | None:
        return self._known()

    def on_processes(self, f: Fields, line: Line) -> Verdict | None:
        return self._known()

    def on_blank(self, f: Fields, line: Line) -> Verdict | None:
        return self._known()

    def on_mig_device(self, f: Fields, line: Line) -> Verdict | None:
        """A slice of a card: card, GPU instance, compute instance, number; its memory is part of the card's."""
        if not self.open:
            return Verdict.LEFT
        gpu, instance, compute, number = (int(part) for part in f["mig_ids"].split())
        values: dict[str, object] = {"gpu": gpu, "bus_id": self._bus.get(gpu), "slice": number, "tool": TOOL}
        values |= {"gpu_instance": instance, "compute_instance": compute}
        used, total = size(f["used"]), size(f["total"])
        values["used_bytes"] = used.bytes if used else None
        values["total_bytes"] = total.bytes if total else None
        values["free_bytes"] = total.bytes - used.bytes if used and total else None
        self.emit("mig_device", line, {**self._at, **values})
        return None

    def on_mig_rest(self, f: Fields, line: Line) -> Verdict | None:
        return self._known()

    def on_program(self, f: Fields, line: Line) -> None:
        self.close()
        self.open = True
        self._versions = True

    def on_library(self, f: Fields, line: Line) -> Verdict | None:
        return self._printed("NVML", f, line)

    def on_driver(self, f: Fields, line: Line) -> Verdict | None:
        return self._printed("NVIDIA driver", f, line)

    def on_cuda(self, f: Fields, line: Line) -> Verdict | None:
        verdict = self._printed("CUDA runtime", f, line)
        if verdict is None and f["value"][:1].isdigit():
            self.close()
        return verdict

    def _printed(self, component: str, f: Fields, line: Line) -> Verdict | None:
        if not self._versions:
            return Verdict.LEFT
        self._version(component, f["value"].strip(), line)
        return None


FORMAT = Format(
    name="nvidia-smi",
    grammar="smi_table",
    literals=("| NVIDIA-SMI ", "NVIDIA-SMI version", "| 00000000:", "|   00000000:", *_YEARS),
    session=SmiTableSession,
    title="nvidia-smi table",
    command="nvidia-smi",
    versions="drivers 384 to 610",
    weak_literals=frozenset({"NVIDIA-SMI version", "| 00000000:", "|   00000000:", *_YEARS}),
)
