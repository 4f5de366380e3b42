"""Topology and graph files of NCCL: ``NCCL_TOPO_DUMP_FILE``, ``NCCL_TOPO_FILE``, ``NCCL_GRAPH_DUMP_FILE``, 2.6 to 2.30.

    <system version="1">
      <cpu numaid="0" affinity="00ffffff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
        <pci busid="0000:17:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
          <gpu dev="0" sm="80" rank="0" gdr="1">
            <nvlink target="0000:65:00.0" count="12" tclass="0x030200"/>

    <graphs version="1">
      <graph id="0" pattern="4" nchannels="2" speedintra="12" speedinter="12" typeintra="SYS" typeinter="PIX">
        <channel><gpu dev="0"/><gpu dev="1"/></channel>

Hand-written files leave out much of it. Addresses and identifiers do not count for the shape, so that the files of
hosts of one kind can be compared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line
from analyzer.parsers.values import bus_id, integer, number
from analyzer.parsers.xml_session import XmlSession
from analyzer.shapes import LineGrammar

Attributes = Mapping[str, str]

_NODES = frozenset({"cpu", "pci", "gpu", "nic", "net", "nvlink", "c2c"})
_SHAPE = ("class", "link_speed", "link_width", "numaid", "dev", "sm", "count", "speed", "gdr", "tclass")
_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?GT/s")


class NcclXmlSession(XmlSession):
    """One row for each node of a topology and for each graph, and one for the whole file."""

    ROOTS = ("system", "graphs")

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self.begin()

    def begin(self) -> None:
        self._first: Line | None = None
        self._places: list[str | None] = []
        self._shape: list[str] = []
        self._counts: dict[str, int] = {}
        self._graph: dict[str, object] | None = None
        self._channels: list[list[str]] = []

    def finish(self) -> None:
        if self._first is None:
            return
        kind = "graph" if self._graph is not None or "graph" in self._counts else "topology"
        shape = hashlib.sha256("\n".join(self._shape).encode()).hexdigest()[:12]
        counts = {f"{name}s": self._counts.get(name, 0) for name in ("gpu", "net", "cpu", "graph")}
        self.emit("nccl_document", self._first, {"kind": kind, "shape": shape, **counts})
        self._first = None

    def start(self, name: str, attributes: Attributes) -> None:
        self._first = self._first or self.line
        place = _place(name, attributes)
        parent = next((known for known in reversed(self._places) if known is not None), None)
        self._places.append(place)
        self._shape.append(" ".join([str(len(self.path)), name, *(attributes.get(key, "") for key in _SHAPE)]))
        if name == "graph":
            self._begin_graph(attributes)
        elif self._graph is not None:
            self._in_graph(name, attributes)
        elif name in _NODES:
            self._counts[name] = self._counts.get(name, 0) + 1
            self.emit("nccl_topo_node", self.line, _node(name, attributes) | {"parent": parent})

    def end(self, name: str, text: str | None) -> None:
        if self._places:
            self._places.pop()
        if name == "graph" and self._graph is not None:
            order = "; ".join(" ".join(channel) for channel in self._channels)
            self.emit("nccl_graph", self.line, self._graph | {"order": order})
            self._graph = None

    def _begin_graph(self, attributes: Attributes) -> None:
        self._counts["graph"] = self._counts.get("graph", 0) + 1
        self._channels = []
        get = attributes.get
        self._graph = {
            "graph": integer(get("id")),
            "pattern": integer(get("pattern")),
            "nchannels": integer(get("nchannels")),
            "intra_gbps": number(get("speedintra")),
            "inter_gbps": number(get("speedinter")),
            "intra_path": get("typeintra"),
            "inter_path": get("typeinter"),
        }

    def _in_graph(self, name: str, attributes: Attributes) -> None:
        if name == "channel":
            self._channels.append([])
        elif name in ("gpu", "net") and self._channels:
            self._channels[-1].append(f"{name.upper()}{attributes.get('dev', '?')}")
            self._shape[-1] += attributes.get("dev", "")


def _place(name: str, attributes: Attributes) -> str | None:
    """What its children name as their parent."""
    if name == "cpu":
        return f"NUMA {attributes.get('numaid', '?')}"
    return bus_id(attributes.get("busid")) if name == "pci" else None


def _node(name: str, attributes: Attributes) -> dict[str, object]:
    get = attributes.get
    speed = _SPEED.search(get("link_speed", ""))
    return {
        "kind": name,
        "bus_id": bus_id(get("busid")) or bus_id(get("target")),
        "name": get("name") or get("vendor"),
        "dev": integer(get("dev")),
        "numa": integer(get("numaid")),
        "speed_gts": float(speed.group(1)) if speed else None,
        "width": integer(get("link_width")) or None,
        "links": integer(get("count")),
        "rate_mbps": integer(get("speed")),
        "direct": get("gdr") == "1" if "gdr" in attributes else None,
    }


FORMAT = Format(
    name="nccl-xml",
    grammar="xml_root",
    literals=("<system version=", "<graphs version="),
    session=NcclXmlSession,
    title="topology or graph file of NCCL",
    command="NCCL_TOPO_DUMP_FILE=topo.xml NCCL_GRAPH_DUMP_FILE=graph.xml",
    versions="NCCL 2.6 to 2.30",
)
