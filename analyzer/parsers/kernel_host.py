"""Lines of the kernel log that are not the NVIDIA driver's: PCIe, IOMMU, network cards, machine checks, tasks.

    pcieport 0000:20:01.1: AER: Correctable error message received from 0000:21:00.0
    DMAR: [DMA Write] Request device [3b:00.0] fault addr 7f3a4000 [fault reason 05] PTE Write access is not set
    INFO: task python3:123 blocked for more than 120 seconds.
    pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp ... error 4 in libnccl.so.2[...]

Seen: kernels 3.10 to 6.12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Line, Session
from analyzer.parsers.kernel_texts import NIC_TEXTS, kind_of
from analyzer.parsers.values import bus_id

Fields = Mapping[str, str]

_FAULT_DEVICE = re.compile(r"[Dd]evice[ =]\[?([0-9a-fA-F:]+\.[0-7])")
_DOMAIN = re.compile(r"Default domain type: *(\w+)")
_TRANSLATES = (
    "IOMMU enabled",
    "Intel(R) Virtualization Technology for Directed I/O",
    "Lazy IO/TLB flushing enabled",
    "IO/TLB flush on unmap enabled",
    "AMD IOMMUv2 loaded",
)
_RECOVERY = re.compile(r"reset failed|recovery failed|can't recover")
_CHECKED = re.compile(r"Machine Check|APEI|event severity: (\w+)")
_MEMORY_ERROR = re.compile(r"[0-9]+ ([CU]E) ")


class HostEvents(Session):
    """Each of these lines is an event by itself."""

    def event(self, line: Line, kind: str, device: str | None, **values: object) -> None:
        """Sends a row of ``kernel_event``."""
        common = {"boot_s": line.boot_s, "kind": kind, "device": device, "text": line.text}
        self.emit("kernel_event", line, common | values)

    def on_aer_received(self, f: Fields, line: Line) -> None:
        severity = f["severity"].removeprefix("Multiple ")
        self.event(line, "aer", _source(f["source"], f["device"]), severity=severity)

    def on_bus_error(self, f: Fields, line: Line) -> None:
        self.event(line, "aer", bus_id(f["device"]), severity=f["severity"])

    def on_aer_text(self, f: Fields, line: Line) -> None:
        if _RECOVERY.search(f["text"]):
            self.event(line, "aer", bus_id(f["device"]))

    def on_aer_mask(self, f: Fields, line: Line) -> None:
        """Known: registers of the error that the line before names."""

    def on_hotplug(self, f: Fields, line: Line) -> None:
        if "Link Down" in f["text"] or "Card not present" in f["text"]:
            self.event(line, "link_down", bus_id(f["device"]))

    on_hotplug_old = on_hotplug

    def on_dpc(self, f: Fields, line: Line) -> None:
        self.event(line, "dpc", bus_id(f["device"]))

    def on_amd_fault(self, f: Fields, line: Line) -> None:
        if "Event logged" in f["text"]:
            self.event(line, "iommu_fault", bus_id(f["device"]))

    def on_link_limited(self, f: Fields, line: Line) -> None:
        self.event(line, "pcie_limited", bus_id(f["device"]))

    def on_device_text(self, f: Fields, line: Line) -> None:
        """Known: another line of a PCI driver."""

    def on_nic(self, f: Fields, line: Line) -> None:
        kind = kind_of(f["text"], NIC_TEXTS)
        if kind:
            self.event(line, kind, bus_id(f["device"]))

    def on_iommu_line(self, f: Fields, line: Line) -> None:
        text = f["text"]
        device = _FAULT_DEVICE.search(text)
        if device or "Event logged" in text or "DRHD: handling fault" in text:
            if device:
                self.event(line, "iommu_fault", bus_id(device.group(1)))
        elif domain := _DOMAIN.match(text):
            self.event(line, "iommu", None, severity=domain.group(1))
        elif text.startswith(_TRANSLATES):
            self.event(line, "iommu", None, severity="enabled")
        elif "Passthrough Mode" in text:
            self.event(line, "iommu", None, severity="Passthrough")

    def on_hardware_error(self, f: Fields, line: Line) -> None:
        found = _CHECKED.search(f["text"])
        if found:
            self.event(line, "mce", None, severity=found.group(1))

    def on_edac(self, f: Fields, line: Line) -> None:
        found = _MEMORY_ERROR.search(f["text"])
        if found:
            self.event(line, "mce", None, severity="Corrected" if found.group(1) == "CE" else "Uncorrected")

    def on_mce(self, f: Fields, line: Line) -> None:
        """Known: set-up and temperature of processors."""

    def on_hung_task(self, f: Fields, line: Line) -> None:
        self.event(line, "hung_task", f["task"], pid=int(f["pid"]))

    def on_lockup(self, f: Fields, line: Line) -> None:
        self.event(line, "soft_lockup", f["task"], pid=int(f["pid"]))

    def on_segfault(self, f: Fields, line: Line) -> None:
        self.event(line, "segfault", f["task"], pid=int(f["pid"]))

    on_trap = on_segfault

    def on_panic(self, f: Fields, line: Line) -> None:
        self.event(line, "panic", None)

    def on_linux(self, f: Fields, line: Line) -> None:
        self.emit("version", line, {"component": "kernel", "value": f["value"]})
        self.event(line, "boot", None)

    def on_boot_mark(self, f: Fields, line: Line) -> None:
        self.event(line, "boot_mark", None)


def _source(text: str, port: str) -> str | None:
    """The device that reported an error: its bus id, or (older kernels) bus, device and function as one number."""
    if not text.startswith("id="):
        return bus_id(text)
    number = int(text[3:], 16)
    domain = port.partition(":")[0]
    return bus_id(f"{domain}:{number >> 8 & 0xFF:02x}:{number >> 3 & 0x1F:02x}.{number & 7}")
