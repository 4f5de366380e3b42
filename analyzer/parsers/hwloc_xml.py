"""Topology of a host from hwloc: ``lstopo topo.xml``, hwloc 1.11 to 2.11; only its PCI devices are read.

<topology version="2.0">
  <object type="Bridge" bridge_type="1-1" pci_busid="0000:16:02.0" pci_link_speed="31.507692">
    <object type="PCIDev" pci_busid="0000:17:00.0" pci_type="0302 [10de:20b2]" pci_link_speed="31.507692">
      <info name="PCIDevice" value="GA100 [A100 SXM4 80GB]"/>
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format
from analyzer.parsers.values import bus_id
from analyzer.parsers.xml_session import XmlSession
from analyzer.shapes import LineGrammar

_NAMES = ("PCIVendor", "PCIDevice")


class HwlocXmlSession(XmlSession):
    """Fills the tree of PCI devices."""

    ROOTS = ("topology",)

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self.begin()

    def begin(self) -> None:
        self._objects: list[dict[str, object]] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "object":
            self._object(attributes)
        elif name == "info" and attributes.get("name") in _NAMES and self._objects:
            words = [str(self._objects[-1].get("name") or ""), attributes.get("value", "")]
            self._objects[-1]["name"] = " ".join(filter(None, words))

    def _object(self, attributes: Mapping[str, str]) -> None:
        kind = attributes.get("type")
        bus = bus_id(attributes.get("pci_busid")) if kind in ("Bridge", "PCIDev") else None
        parent = next((known["bus_id"] for known in reversed(self._objects) if known["bus_id"]), None)
        self._objects.append({"bus_id": bus, "parent": parent})

    def end(self, name: str, text: str | None) -> None:
        if name == "object" and self._objects:
            found = self._objects.pop()
            if found["bus_id"]:
                values = {key: found.get(key) for key in ("bus_id", "parent", "name")}
                self.emit("pci_tree", self.line, values)


FORMAT = Format(
    name="hwloc-xml",
    grammar="xml_root",
    literals=("<topology",),
    session=HwlocXmlSession,
    title="topology of a host (lstopo)",
    command="lstopo topo.xml",
    versions="hwloc 1.11 to 2.11",
    weak_literals=frozenset({"<topology"}),
)
