r"""``lspci -tv``: which bridge each PCI device hangs under.

    -+-[0000:20]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex
     |           \-01.1-[21-26]----00.0-[22-26]--+-00.0-[23]----00.0  NVIDIA Corporation GA100 [A100 SXM4 80GB]
     |                                           \-04.0-[24]----00.0  NVIDIA Corporation GA100 [A100 SXM4 80GB]
     \-[0000:00]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex

Seen: pciutils 3.5 to 3.13. A branch belongs to the fork that stands in its column further up; a line whose fork
was cut off is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import bus_id
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 3
_PIECE = re.compile(
    r"(?P<fork>[+\\])|\[(?P<domain>[0-9a-f]+):(?P<root>[0-9a-f]+)(?:-[0-9a-f]+)?\]"
    r"|\[(?P<bus>[0-9a-f]+)(?:-[0-9a-f]+)?\]|(?P<device>[0-9a-f]+\.[0-9a-f]+)",
    re.IGNORECASE,
)


class _Place(NamedTuple):
    """Where devices hang: a bus and the bridge above it."""

    domain: str
    bus: str
    bridge: str | None


_TOP = _Place("", "", None)


class LspciTreeSession(Session):
    """Open from the first root to the first lines that are no part of the drawing."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._forks: dict[int, _Place] = {}
        self._foreign = 0

    def foreign(self, line: Line) -> Verdict:
        self._foreign += 1
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Forgets the forks."""
        self._forks.clear()
        super().close()

    def on_branch(self, f: Fields, line: Line) -> Verdict | None:
        text = line.text
        drawn = text.rstrip()
        name = f.get("name", "").rstrip()
        drawn = drawn[: len(drawn) - len(name)]
        place: _Place | None = None
        if drawn.lstrip().startswith("-"):
            self._forks.clear()
            place = _TOP
        if not self._walk(line, drawn, place, name):
            return Verdict.UNREAD
        self._foreign = 0
        self.open = True
        return None

    def _walk(self, line: Line, drawn: str, place: _Place | None, name: str) -> bool:
        """Follows one line from left to right; false where nothing says what it hangs under."""
        found: list[tuple[str, str | None]] = []
        device: str | None = None
        for piece in _PIECE.finditer(drawn):
            column = piece.start()
            if piece.lastgroup == "fork":
                if place is None:
                    place = self._forks.get(column)
                else:
                    self._forks[column] = place
            elif piece.lastgroup == "root":
                place = _Place(piece["domain"], piece["root"], None)
            elif place is None:
                return False
            elif piece.lastgroup == "bus":
                place = _Place(place.domain, piece["bus"], device)
            else:
                device = bus_id(f"{place.domain}:{place.bus}:{piece['device']}")
                if device is None:
                    return False
                found.append((device, place.bridge))
        for number, (bus, bridge) in enumerate(found):
            last = number == len(found) - 1
            self.emit("pci_tree", line, {"bus_id": bus, "parent": bridge, "name": (name or None) if last else None})
        return place is not None


FORMAT = Format(
    name="lspci-tree",
    grammar="lspci_tree",
    literals=("-[0000:", "-+-["),
    session=LspciTreeSession,
    title="tree of PCI devices (lspci -tv)",
    command="lspci -tv",
    versions="pciutils 3.5 to 3.13",
    weak_literals=frozenset({"-[0000:", "-+-["}),
)
