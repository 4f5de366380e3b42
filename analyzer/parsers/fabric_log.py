"""Log of NVIDIA's fabric manager (``/var/log/fabricmanager.log``), versions 450 to 580.

    [Feb 25 2025 14:01:18] [INFO] [tid 1808] multicast group 0 is allocated.
    [Feb 25 2025 14:01:18] [INFO] [tid 1803] Received an inband message:  Message header details: magic Id:adbc ...
    Message payload details:Team setup request: Allocation Size:60000000 Flags:0 Number of GPUs:8 ...

The lines of a record that follow its first one carry no prefix; only errors are read to their end.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.fabric_texts import fabric_message
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_MORE_LINES = 4


class FabricLogSession(Session):
    """Reads record by record; a record of several lines is open until a blank line or the next record."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._record: tuple[Line, str, list[str]] | None = None

    def close(self) -> None:
        """Sends the record that is open."""
        record, self._record = self._record, None
        if record is not None:
            line, level, texts = record
            values = fabric_message(" ".join(texts), level)
            if values is not None:
                self.emit("fabric_message", line, values)
        super().close()

    def on_record(self, f: Fields, line: Line) -> None:
        self.close()
        self._record = (line, f["level"], [f.get("text", "").strip()])
        self.open = True

    def on_rest(self, f: Fields, line: Line) -> Verdict | None:
        if self._record is None:
            return Verdict.LEFT
        texts = self._record[2]
        if len(texts) > _MORE_LINES or not line.text.strip():
            return Verdict.ENDED
        texts.append(line.text.strip())
        return None

    def foreign(self, line: Line) -> Verdict:
        return Verdict.ENDED


FORMAT = Format(
    name="fabric-manager",
    grammar="fabric_log",
    literals=("] [tid ",),
    session=FabricLogSession,
    title="log of the NVLink fabric manager",
    command="/var/log/fabricmanager.log",
    versions="fabric manager 450 to 580",
    weak_literals=frozenset({"] [tid "}),
)
