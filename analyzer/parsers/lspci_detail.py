r"""``lspci -vvv``: link, access control and error state of PCI devices; also plain ``lspci`` and lines cut out of it.

    3a:00.0 PCI bridge: PLX Technology, Inc. PEX 8796 PCI Express Gen 3 (8.0 GT/s) Switch (rev ab)
        Bus: primary=39, secondary=3b, subordinate=3b, sec-latency=0
                ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
    3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)
                LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM not supported
                LnkSta:	Speed 2.5GT/s (downgraded), Width x8 (downgraded)

Seen: pciutils 3.2 to 3.13, with ``-D`` and ``-nn``; the notes ``(ok)`` and ``(downgraded)`` came with 3.6. ``grep``
often leaves only the lines with ACSCtl or LnkSta: they are kept without a device, or under the ``-s`` of the command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import bus_id
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

TOOL = "lspci"
_SPEED = re.compile(r"Speed ([0-9.]+) ?GT/s(?: \((\w+)\))?")
_WIDTH = re.compile(r"Width x([0-9]+)(?: \((\w+)\))?")
_SLOT = re.compile(r"-s ?(\S+)")
_BUSES = re.compile(r"primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
_REVISION = re.compile(r" \((?:rev|prog-if) .*")
_SET = re.compile(r"(\w+)\+")
_HARMLESS = frozenset({"UnsupReq", "AuxPwr", "TransPend", "AdvNonFatalErr"})
_LINES = 400  # lines of one device, at most


class LspciSession(Session):
    """Holds one device until the next one begins; the tree goes out at the end of the list."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._values: dict[str, object] = {}
        self._line: Line | None = None
        self._proof: Line | None = None
        self._lines = 0
        self._asked: str | None = None
        self._devices: dict[str, tuple[Line, str | None]] = {}
        self._bridges: dict[tuple[str, str], str] = {}

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        indented = not line.text.strip() or line.text[:1].isspace()
        return Verdict.LEFT if indented or not self.open else Verdict.ENDED

    def close(self) -> None:
        """Sends the last device and the bridge above each device."""
        self._send()
        for device, (line, name) in self._devices.items():
            domain, bus, _ = device.split(":")
            parent = self._bridges.get((domain, bus))
            if parent is not None:
                self.emit("pci_tree", line, {"bus_id": device, "parent": parent, "name": name})
        self._devices.clear()
        self._bridges.clear()
        self._asked = None
        super().close()

    def _send(self) -> None:
        if self._line is not None and self._values:
            self.emit("pci_link", self._proof or self._line, self._values | {"tool": TOOL})
        self._values, self._line, self._proof = {}, None, None
        self._lines = 0

    def on_command(self, f: Fields, line: Line) -> Verdict | None:
        """Known: the command; it may say which device the lines below are about."""
        self.close()
        slot = _SLOT.search(f.get("text", ""))
        self._asked = bus_id(slot.group(1)) if slot else None
        return None if slot else Verdict.LEFT

    def on_device(self, f: Fields, line: Line) -> Verdict | None:
        bus = bus_id(line.text.split()[0])
        if bus is None:
            return Verdict.LEFT
        self._send()
        kind, _, name = f["title"].partition(": ")
        self._line = line
        lost = "(rev ff)" in name
        self._values = {"bus_id": bus, "kind": kind.partition(" [")[0], "name": _REVISION.sub("", name), "lost": lost}
        self._devices[bus] = (line, _REVISION.sub("", name))
        self.open = True
        return None

    def _field(self, line: Line, name: str) -> bool:
        """Makes room for a field; one that stands twice belongs to a device whose head was left out."""
        if self._line is None or name in self._values:
            self._send()
            self._line = line
            if self._asked is not None:
                self._values["bus_id"] = self._asked
        return True

    def on_acs_control(self, f: Fields, line: Line) -> None:
        self._field(line, "acs")
        flags = set(_SET.findall(f["text"]))
        redirects = bool(flags & {"ReqRedir", "CmpltRedir"}) or ("Redir" not in f["text"] and "SrcValid" in flags)
        self._values["acs"], self._values["acs_redirect"] = f["text"].strip(), redirects
        if redirects:
            self._proof = line
        self._loose()

    def on_link_cap(self, f: Fields, line: Line) -> None:
        self._field(line, "max_width")
        speed, width = _SPEED.search(f["text"]), _WIDTH.search(f["text"])
        self._values["max_speed_gts"] = float(speed.group(1)) if speed else None
        self._values["max_width"] = int(width.group(1)) if width else None
        self._loose()

    def on_link_state(self, f: Fields, line: Line) -> None:
        self._field(line, "width")
        speed, width = _SPEED.search(f["text"]), _WIDTH.search(f["text"])
        self._values["speed_gts"] = float(speed.group(1)) if speed else None
        self._values["width"] = int(width.group(1)) if width else None
        self._values["downgraded"] = bool(width and width.group(2) == "downgraded")
        self._proof = self._proof or line
        self._loose()

    def _loose(self) -> None:
        """A field without a device above it is followed like one, so that the next such line begins anew."""
        self.open = True

    def on_device_state(self, f: Fields, line: Line) -> Verdict | None:
        return self._errors(f)

    on_uncorrected = on_device_state
    on_corrected = on_device_state

    def _errors(self, f: Fields) -> Verdict | None:
        if self._line is None:
            return Verdict.LEFT
        found = [name for name in _SET.findall(f["text"]) if name not in _HARMLESS]
        if found:
            known = str(self._values.get("errors") or "").split()
            self._values["errors"] = " ".join(dict.fromkeys([*known, *found]))
        return None

    def on_driver(self, f: Fields, line: Line) -> Verdict | None:
        return self._set("driver", f["text"].strip())

    def on_numa(self, f: Fields, line: Line) -> Verdict | None:
        return self._set("numa", int(f["node"]))

    def _set(self, name: str, value: object) -> Verdict | None:
        if self._line is None:
            return Verdict.LEFT
        self._values[name] = value
        return None

    def on_buses(self, f: Fields, line: Line) -> Verdict | None:
        bus = self._values.get("bus_id")
        found = _BUSES.search(f["text"])
        if self._line is None or bus is None or not found:
            return Verdict.LEFT
        self._bridges[str(bus).partition(":")[0], found.group(2)] = str(bus)
        return None

    def on_dead(self, f: Fields, line: Line) -> Verdict | None:
        return self._set("lost", True) if "header type" in f["text"] else self.on_more(f, line)

    def on_more(self, f: Fields, line: Line) -> Verdict | None:
        """Known: another line of the device above it."""
        if not self.open:
            return Verdict.LEFT
        self._lines += 1
        return None if line.text[:1].isspace() and self._lines < _LINES else Verdict.ENDED


FORMAT = Format(
    name="lspci",
    grammar="lspci",
    literals=(
        "LnkSta:",
        "LnkCap:",
        "ACSCtl:",
        "lspci -",
        "controller: NVIDIA",
        "]: NVIDIA Corp",
        "VGA compatible controller",
        "3D controller",
        "PCI bridge",
        "Infiniband controller",
        "Ethernet controller",
        "Host bridge",
    ),
    session=LspciSession,
    title="PCI devices (lspci -vvv)",
    command="sudo lspci -vvv",
    versions="pciutils 3.2 to 3.13",
    weak_literals=frozenset(
        {"lspci -", "3D controller", "PCI bridge", "Infiniband controller", "Ethernet controller", "Host bridge"}
        | {"VGA compatible controller", "controller: NVIDIA", "]: NVIDIA Corp"}
    ),
)
