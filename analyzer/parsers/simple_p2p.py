"""simpleP2P (cuda-samples 8 to 13): copies data between two GPUs and compares it.

    > Peer access from GeForce GTX 1080 Ti (GPU0) -> GeForce GTX 1080 Ti (GPU1) : Yes
    Enabling peer access between GPU0 and GPU1...
    Verification error @ element 1: val = nan, ref = 4.000000

A right copy prints nothing; the first wrong element of a run makes a row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

TOOL = "simpleP2P"
_ACCESS = re.compile(r"\(GPU([0-9]+)\) -> .*\(GPU([0-9]+)\) : (Yes|No)")


class SimpleP2pSession(Session):
    """Remembers between which cards the run copies."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._pair: tuple[int, int] | None = None
        self._told = False

    def on_peers(self, f: Fields, line: Line) -> None:
        self._pair = (int(f["a"]), int(f["b"]))
        self._told = False

    def on_access(self, f: Fields, line: Line) -> Verdict | None:
        found = _ACCESS.search(f["text"])
        if found is None:
            return Verdict.UNREAD
        a, b = int(found.group(1)), int(found.group(2))
        value = float(found.group(3) == "Yes")
        self.emit("pair_measure", line, {"a": a, "b": b, "metric": "connectivity", "value": value, "tool": TOOL})
        return None

    def on_wrong(self, f: Fields, line: Line) -> None:
        if not self._told:
            self._told = True
            a, b = self._pair or (None, None)
            self.emit("data_check", line, {"tool": TOOL, "ok": False, "a": a, "b": b, "text": line.text})


FORMAT = Format(
    name="simple-p2p",
    grammar="simple_p2p",
    literals=("Enabling peer access between GPU", "> Peer access from", "Verification error @ element"),
    session=SimpleP2pSession,
    title="copy check between two GPUs (simpleP2P)",
    command="simpleP2P (from cuda-samples)",
    versions="cuda-samples 8 to 13",
    blocks=False,
)
