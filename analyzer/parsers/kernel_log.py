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

from analyzer.parsers.base import Emit, Format, Line, Verdict
from analyzer.parsers.kernel_host import HostEvents
from analyzer.parsers.kernel_texts import DRIVER_TEXTS, PROBE_TEXTS, kind_of
from analyzer.parsers.values import bus_id, integer
from analyzer.parsers.xid_text import sxid_details, xid_details
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_INSIDE = re.compile(r"kernel: (?:\[ *([0-9]+\.[0-9]+)\] *)?|\[ *([0-9]+\.[0-9]+)\] *|(?=NVRM: |nvidia-nvswitch)")


class KernelLogSession(HostEvents):
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
        cut = "name" not in f and "text" not in f
        self.emit(
            "xid",
            line,
            {
                "boot_s": line.boot_s,
                "bus_id": bus_id(f["device"]),
                "code": int(f["code"]),
                "pid": None if cut else integer(f.get("pid", "").strip("'")),
                "process": None if name.startswith("<") else name or None,
                "text": f.get("text"),
                **xid_details(int(f["code"]), f.get("text", "")),
            },
        )

    def on_loading(self, f: Fields, line: Line) -> None:
        self.emit("version", line, {"component": "NVIDIA driver", "value": f["value"]})
        self.event(line, "driver_loaded", None)
        self._failed.clear()

    def on_linux(self, f: Fields, line: Line) -> None:
        super().on_linux(f, line)
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
            self.event(line, "api_mismatch", None, text=line.text + more)

    def _driver(self, line: Line, device: str | None, text: str) -> None:
        probe = kind_of(text, PROBE_TEXTS)
        if probe and self._probed:
            first, device = self._probed
            self._probed = None
            self.event(first, probe, device, text=f"{first.text} {text}")
            return
        kind = kind_of(text, DRIVER_TEXTS)
        if kind is None or (text.startswith("rm_init_adapter") and device in self._failed):
            return
        if kind == "rm_init_failed":
            self._failed.add(device)
        self.event(line, kind, device)

    def on_sxid(self, f: Fields, line: Line) -> None:
        details = sxid_details(f["text"])
        if details is not None:
            common = {"boot_s": line.boot_s, "bus_id": bus_id(f["device"]), "code": int(f["code"])}
            self.emit("sxid", line, {**common, "switch": int(f["switch"]), **details})

    def on_switch(self, f: Fields, line: Line) -> None:
        """Known: state of an NVSwitch driver."""

    def on_module(self, f: Fields, line: Line) -> None:
        kind = kind_of(f["text"], DRIVER_TEXTS)
        if kind:
            name = f["module"].strip(":").replace("_", "-").removeprefix("nvidia-")
            self.event(line, "probe_failed" if kind == "probe_failed" else name, None)


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
            "nvidia-uvm: ",
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
