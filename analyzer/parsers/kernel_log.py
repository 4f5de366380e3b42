"""Kernel log (``dmesg``, ``journalctl -k``, syslog): the NVIDIA driver, PCIe, IOMMU, machine checks, stuck tasks.

    NVRM: Xid (PCI:0000:cb:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
    NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x40:2393)
    nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up
    pcieport 0000:20:01.1: AER: Correctable error message received from 0000:21:00.0
    DMAR: [DMA Write] Request device [3b:00.0] fault addr 7f3a4000 [fault reason 05] PTE Write access is not set

Seen: drivers 340 to 595, kernels 3.10 to 6.12. The out-of-memory killer has a parser of its own (``kernel_oom``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.kernel_texts import DRIVER_TEXTS, NIC_TEXTS, PROBE_TEXTS, kind_of
from analyzer.parsers.values import bus_id, integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_INSIDE = re.compile(r"kernel: (?:\[ *([0-9]+\.[0-9]+)\] *)?|\[ *([0-9]+\.[0-9]+)\] *|(?=NVRM: |nvidia-nvswitch)")
_FAULT_DEVICE = re.compile(r"[Dd]evice[ =]\[?([0-9a-fA-F:]+\.[0-7])")
_DOMAIN = re.compile(r"Default domain type: *(\w+)")
_RECOVERY = re.compile(r"reset failed|recovery failed|can't recover")
_CHECKED = re.compile(r"Machine Check|APEI|event severity: (\w+)")
_MEMORY_ERROR = re.compile(r"[0-9]+ ([CU]E) ")


class KernelLogSession(Session):
    """Reads line by line; only the driver's messages of several lines wait for the next one."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._probed: tuple[Line, str | None] | None = None
        self._mismatch: Line | None = None
        self._failed: set[str | None] = set()

    def unread(self, line: Line) -> Verdict:
        """Looks for a kernel line inside one of another program that quotes it, but not in quotation marks."""
        inside = _INSIDE.search(line.text)
        if not inside or not line.text[inside.end() :] or not inside.end():
            return Verdict.UNREAD
        if line.text[inside.start() - 1 : inside.start()] in ("'", '"', "`"):
            return Verdict.LEFT
        seconds = inside.group(1) or inside.group(2)
        boot_s = line.boot_s if seconds is None else float(seconds)
        match = self.grammar.parse(line.text[inside.end() :])
        if match is None:
            return Verdict.UNREAD
        part = replace(line, text=line.text[inside.end() :], boot_s=boot_s)
        return self.offer(part, True)

    def close(self) -> None:
        """Sends a mismatch whose second line is missing."""
        self._end_mismatch("")
        super().close()

    def on_xid(self, f: Fields, line: Line) -> None:
        name = f.get("name", "").strip()
        self.emit(
            "xid",
            line,
            {
                "boot_s": line.boot_s,
                "bus_id": bus_id(f["device"]),
                "code": int(f["code"]),
                "pid": integer(f.get("pid", "").strip("'")),
                "process": None if name.startswith("<") else name or None,
                "text": f.get("text"),
            },
        )

    def _event(self, line: Line, kind: str, device: str | None, **values: object) -> None:
        common = {"boot_s": line.boot_s, "kind": kind, "device": device, "text": line.text}
        self.emit("kernel_event", line, common | values)

    def on_loading(self, f: Fields, line: Line) -> None:
        self.emit("version", line, {"component": "NVIDIA driver", "value": f["value"]})
        self._event(line, "driver_loaded", None)
        self._failed.clear()

    def on_gpu_uuid(self, f: Fields, line: Line) -> None:
        if not f["text"].startswith("GPU-"):
            self._driver(line, bus_id(f["device"]), f["text"])

    def on_gpu_text(self, f: Fields, line: Line) -> None:
        self._driver(line, bus_id(f["device"]), f["text"])

    def on_gpu_probe(self, f: Fields, line: Line) -> None:
        self._probed = (line, bus_id(f["device"]))

    def on_driver_text(self, f: Fields, line: Line) -> None:
        text = f["text"]
        if text.startswith("API mismatch"):
            self._end_mismatch("")
            self._mismatch = line
        elif text.startswith("this kernel module has the version"):
            self._end_mismatch(f" {text}")
        else:
            self._driver(line, None, text)

    def _end_mismatch(self, more: str) -> None:
        line, self._mismatch = self._mismatch, None
        if line is not None:
            self._event(line, "api_mismatch", None, text=line.text + more)

    def _driver(self, line: Line, device: str | None, text: str) -> None:
        probe = kind_of(text, PROBE_TEXTS)
        if probe and self._probed:
            first, device = self._probed
            self._probed = None
            self._event(line, probe, device, text=f"{first.text} {text}")
            return
        kind = kind_of(text, DRIVER_TEXTS)
        if kind is None or (text.startswith("rm_init_adapter") and device in self._failed):
            return
        if kind == "rm_init_failed":
            self._failed.add(device)
        self._event(line, kind, device)

    def on_sxid(self, f: Fields, line: Line) -> None:
        severity = f["text"].partition(",")[0].strip()
        if severity in ("Fatal", "Non-fatal"):
            self._event(line, "sxid", bus_id(f["device"]), severity=severity)

    def on_switch(self, f: Fields, line: Line) -> None:
        """Known: state of an NVSwitch driver."""

    def on_module(self, f: Fields, line: Line) -> None:
        kind = kind_of(f["text"], DRIVER_TEXTS)
        if kind:
            name = f["module"].strip(":").replace("_", "-").removeprefix("nvidia-")
            self._event(line, "probe_failed" if kind == "probe_failed" else name, None)

    def on_aer_received(self, f: Fields, line: Line) -> None:
        severity = f["severity"].removeprefix("Multiple ")
        self._event(line, "aer", _source(f["source"], f["device"]), severity=severity)

    def on_bus_error(self, f: Fields, line: Line) -> None:
        self._event(line, "aer", bus_id(f["device"]), severity=f["severity"])

    def on_aer_text(self, f: Fields, line: Line) -> None:
        if _RECOVERY.search(f["text"]):
            self._event(line, "aer", bus_id(f["device"]))

    def on_aer_mask(self, f: Fields, line: Line) -> None:
        """Known: registers of the error that the line before names."""

    def on_hotplug(self, f: Fields, line: Line) -> None:
        if "Link Down" in f["text"] or "Card not present" in f["text"]:
            self._event(line, "link_down", bus_id(f["device"]))

    on_hotplug_old = on_hotplug

    def on_dpc(self, f: Fields, line: Line) -> None:
        self._event(line, "dpc", bus_id(f["device"]))

    def on_amd_fault(self, f: Fields, line: Line) -> None:
        if "Event logged" in f["text"]:
            self._event(line, "iommu_fault", bus_id(f["device"]))

    def on_link_limited(self, f: Fields, line: Line) -> None:
        self._event(line, "pcie_limited", bus_id(f["device"]))

    def on_device_text(self, f: Fields, line: Line) -> None:
        """Known: another line of a PCI driver."""

    def on_nic(self, f: Fields, line: Line) -> None:
        kind = kind_of(f["text"], NIC_TEXTS)
        if kind:
            self._event(line, kind, bus_id(f["device"]))

    def on_iommu_line(self, f: Fields, line: Line) -> None:
        text = f["text"]
        device = _FAULT_DEVICE.search(text)
        if device or "Event logged" in text or "DRHD: handling fault" in text:
            if device:
                self._event(line, "iommu_fault", bus_id(device.group(1)))
        elif domain := _DOMAIN.match(text):
            self._event(line, "iommu", None, severity=domain.group(1))
        elif text == "IOMMU enabled":
            self._event(line, "iommu", None, severity="enabled")

    def on_hardware_error(self, f: Fields, line: Line) -> None:
        found = _CHECKED.search(f["text"])
        if found:
            self._event(line, "mce", None, severity=found.group(1))

    def on_edac(self, f: Fields, line: Line) -> None:
        found = _MEMORY_ERROR.search(f["text"])
        if found:
            self._event(line, "mce", None, severity="Corrected" if found.group(1) == "CE" else "Uncorrected")

    def on_mce(self, f: Fields, line: Line) -> None:
        """Known: set-up and temperature of processors."""

    def on_hung_task(self, f: Fields, line: Line) -> None:
        self._event(line, "hung_task", f["task"], pid=int(f["pid"]))

    def on_lockup(self, f: Fields, line: Line) -> None:
        self._event(line, "soft_lockup", f["task"], pid=int(f["pid"]))

    def on_segfault(self, f: Fields, line: Line) -> None:
        self._event(line, "segfault", f["task"], pid=int(f["pid"]))

    on_trap = on_segfault

    def on_panic(self, f: Fields, line: Line) -> None:
        self._event(line, "panic", None)

    def on_linux(self, f: Fields, line: Line) -> None:
        self.emit("version", line, {"component": "kernel", "value": f["value"]})
        self._event(line, "boot", None)
        self._failed.clear()

    def on_boot_mark(self, f: Fields, line: Line) -> None:
        self._event(line, "boot_mark", None)


def _source(text: str, port: str) -> str | None:
    """The device that reported an error: its bus id, or (older kernels) bus, device and function as one number."""
    if not text.startswith("id="):
        return bus_id(text)
    number = int(text[3:], 16)
    domain = port.partition(":")[0]
    return bus_id(f"{domain}:{number >> 8 & 0xFF:02x}:{number >> 3 & 0x1F:02x}.{number & 7}")


FORMAT = Format(
    name="kernel-log",
    grammar="kernel_log",
    literals=(
        "NVRM: ",
        "nvidia-nvswitch",
        "nvidia-uvm: ",
        "nvidia-peermem ",
        "nvidia: probe of",
        ": AER: ",
        "PCIe Bus Error: severity=",
        "pciehp",
        ": DPC: ",
        "PCIe bandwidth, limited by",
        "DMAR: ",
        "AMD-Vi: ",
        "iommu: Default domain",
        "mlx5_core ",
        "[Hardware Error]:",
        "EDAC MC",
        " blocked for more than ",
        "BUG: soft lockup",
        "]: segfault at ",
        "traps: ",
        "Kernel panic - not syncing",
        "Linux version ",
        "-- Boot ",
        "-- Reboot --",
    ),
    session=KernelLogSession,
    title="kernel log (dmesg, journal, syslog)",
    command="sudo dmesg -T (or journalctl -k -b -o short-iso)",
    versions="drivers 340 to 595, kernels 3.10 to 6.12",
    weak_literals=frozenset(
        {
            "nvidia-nvswitch",
            "nvidia-peermem ",
            "pciehp",
            ": AER: ",
            ": DPC: ",
            "DMAR: ",
            "AMD-Vi: ",
            "mlx5_core ",
            "[Hardware Error]:",
            "EDAC MC",
            " blocked for more than ",
            "traps: ",
            "Linux version ",
            "-- Boot ",
        }
    ),
)
