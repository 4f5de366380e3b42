"""Processes that hold the device files of the NVIDIA driver: ``fuser -v /dev/nvidia*`` and ``lsof /dev/nvidia*``.

                         USER        PID ACCESS COMMAND
    /dev/nvidia0:        alice     20714 F...m python
                         alice     20719 F...m python
    python    20714 alice  mem    CHR  195,0           1016 /dev/nvidia0

fuser (psmisc 22 to 23) names a device once and lists its processes below it; each process is listed for each device.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_FOREIGN_LINES = 3


class DeviceSession(Session):
    """Reads the processes below each device."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._device = ""
        self._strange = 0
        self._seen: set[tuple[str, int]] = set()

    def unread(self, line: Line) -> Verdict:
        """The same paths stand in other programs' lines."""
        return Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        if not line.text.strip():
            return Verdict.LEFT
        self._strange += 1
        return Verdict.ENDED if self._strange > _FOREIGN_LINES else Verdict.LEFT

    def close(self) -> None:
        """Forgets the device."""
        self._device, self._strange = "", 0
        super().close()

    def on_title(self, f: Fields, line: Line) -> None:
        self.open, self._strange = True, 0

    def on_first(self, f: Fields, line: Line) -> None:
        self._device, self.open, self._strange = f["device"], True, 0
        if "pid" in f:
            self._holder(f, line, "fuser")

    def on_more(self, f: Fields, line: Line) -> Verdict | None:
        if not self._device:
            return Verdict.LEFT
        self._strange = 0
        self._holder(f, line, "fuser")
        return None

    def on_lsof(self, f: Fields, line: Line) -> None:
        self._device = f["device"]
        self._holder({**f, "name": f["user"], "user": f["owner"]}, line, "lsof")

    def _holder(self, f: Fields, line: Line, tool: str) -> None:
        pid = int(f["pid"])
        if (self._device, pid) in self._seen:
            return
        self._seen.add((self._device, pid))
        number = self._device.removeprefix("/dev/nvidia")
        self.emit(
            "device_holder",
            line,
            {
                "device": self._device,
                "gpu": int(number) if number.isdigit() else None,
                "pid": pid,
                "name": f["name"].strip(),
                "user": f["user"],
                "tool": tool,
            },
        )


FORMAT = Format(
    name="device-holder",
    grammar="device_holder",
    literals=("USER        PID ACCESS", "PID ACCESS COMMAND", "/dev/nvidia"),
    session=DeviceSession,
    title="holders of the device files",
    command="sudo fuser -v /dev/nvidia*",
    versions="psmisc 22 to 23, lsof 4",
    weak_literals=frozenset({"/dev/nvidia"}),
)
