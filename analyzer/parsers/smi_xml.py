"""Dump of ``nvidia-smi -q -x``, document types 7 to 13 (drivers 352 to 610): the same fields as the text dump.

    <nvidia_smi_log>
        <timestamp>Sat Feb 27 02:47:26 2021</timestamp>
        <attached_gpus>2</attached_gpus>
        <gpu id="00000000:01:00.0">
                <product_name>NVIDIA A100-SXM4-80GB</product_name>
                <fb_memory_usage>
                        <total>81920 MiB</total>

An error text such as ``GPU is lost`` may stand in any place, also for a whole section.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format
from analyzer.parsers.smi_dump import Dump, Gpu
from analyzer.parsers.smi_xml_names import text_path
from analyzer.parsers.values import bus_id, integer
from analyzer.parsers.xml_session import XmlSession
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import named_seconds

_VERSIONS = {"driver_version": "NVIDIA driver", "cuda_version": "CUDA runtime"}


class SmiXmlSession(XmlSession):
    """Fills the blocks of the text dump from the elements of the document."""

    ROOTS = ("nvidia_smi_log",)

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._dump = Dump()

    def begin(self) -> None:
        self._dump = Dump()

    def finish(self) -> None:
        self._dump.send(self.emit)
        self._dump = Dump()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "gpu" and len(self.path) == 2:
            self._dump.gpus.append(Gpu(self.line, bus_id(attributes.get("id"))))

    def end(self, name: str, text: str | None) -> None:
        if text is None:
            return
        if len(self.path) == 2:
            self._header(name, text)
        elif len(self.path) > 2 and self.path[1] == "gpu" and self._dump.gpus:
            self._dump.gpus[-1].take(text_path(self.path[2:]), text, self.line)

    def _header(self, name: str, text: str) -> None:
        if name == "timestamp":
            self._dump.at = named_seconds(text)[0]
        elif name == "attached_gpus":
            self._dump.attached = integer(text)
        elif name in _VERSIONS and text[:1].isdigit():
            values: dict[str, object] = {"component": _VERSIONS[name], "value": text}
            self.emit("version", self.line, values if self._dump.at is None else values | {"at": self._dump.at})


FORMAT = Format(
    name="nvidia-smi-xml",
    grammar="xml_root",
    literals=("<nvidia_smi_log",),
    session=SmiXmlSession,
    title="nvidia-smi -q -x",
    command="nvidia-smi -q -x",
    versions="document types 7 to 13, drivers 352 to 610",
)
