"""Power supplies of the host: ``dmidecode -t 39`` and the event log of the BMC (``ipmitool sel elist``).

    Handle 0x0030, DMI type 39, System Power Supply
            Max Power Capacity: 490 W
            Status: Present, OK
       3 | 08/20/2026 | 21:14:03 | Power Supply PS1 Status | Power Supply AC lost | Asserted

Of the event log only what tells of power, temperature and processors becomes rows of ``health_check``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import iso_seconds

Fields = Mapping[str, str]

_WATTS = re.compile(r"([0-9]{1,6}) ?W")
_STAMP = re.compile(r"([0-9]{2})/([0-9]{2})/([0-9]{4})")
_SENSORS = re.compile(r"Power (?:Supply|Unit)|PSU|PS[0-9]|Temperature|Temp|Processor|CPU|OEM|Thermal", re.IGNORECASE)
_FOREIGN_LINES = 6


class PowerSession(Session):
    """Collects the fields of one supply; events are complete in one line."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._supply: tuple[Line, dict[str, object]] | None = None
        self._strange = 0

    def close(self) -> None:
        """Sends the supply that is open."""
        supply, self._supply = self._supply, None
        if supply is not None and "watts" in supply[1]:
            self.emit("power_rating", supply[0], supply[1])
        self._strange = 0
        super().close()

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        if not self.open:
            return Verdict.LEFT
        self._strange += 1
        return Verdict.ENDED if not line.text.strip() or self._strange > _FOREIGN_LINES else Verdict.LEFT

    def on_handle(self, f: Fields, line: Line) -> Verdict | None:
        if "Power Supply" not in line.text and "type 39" not in line.text:
            return Verdict.ENDED if self.open else Verdict.LEFT
        if "DMI type 39" in line.text or self._supply is None:
            self.close()
            self._supply = (line, {"kind": "supply"})
            self.open = True
        return None

    def on_field(self, f: Fields, line: Line) -> Verdict | None:
        if self._supply is None:
            return self.foreign(line)
        values, text = self._supply[1], f.get("value", "").strip()
        if f["name"] == "Max Power Capacity" and (watts := _WATTS.match(text)):
            values["watts"] = float(watts.group(1))
            self._supply = (line, values)
        elif f["name"] in ("Name", "Location"):
            values.setdefault("name", text)
        elif f["name"] == "Status":
            values["status"] = text
        return None

    def on_cpu(self, f: Fields, line: Line) -> Verdict:
        """A processor's name alone says nothing of its power."""
        return Verdict.LEFT

    def on_tdp(self, f: Fields, line: Line) -> None:
        self.emit("power_rating", line, {"kind": "cpu", "watts": float(f["watts"])})

    def on_event(self, f: Fields, line: Line) -> Verdict | None:
        cells = [cell.strip() for cell in line.text.split("|")]
        if len(cells) < 5 or not (date := _STAMP.fullmatch(cells[1])):
            return self.foreign(line)
        if not _SENSORS.search(cells[3]):
            return None
        month, day, year = date.groups()
        values: dict[str, object] = {"tool": "ipmitool sel", "category": cells[3].partition(" #")[0], "name": cells[3]}
        result = cells[5].lower() if len(cells) > 5 else "asserted"
        values |= {"result": result, "detail": cells[4]}
        at = iso_seconds(f"{year}-{month}-{day} {cells[2][:8]}")
        self.emit("health_check", line, values if at is None else {**values, "at": at})
        return None


FORMAT = Format(
    name="power-supply",
    grammar="power_supply",
    literals=("System Power Supply", "DMI type 39", "| Power Supply", "| Power Unit", "# TDP "),
    session=PowerSession,
    title="power supplies and the event log of the BMC",
    command="sudo dmidecode -t 39; sudo ipmitool sel elist",
    versions="dmidecode 2.12 to 3.6, ipmitool 1.8",
    weak_literals=frozenset({"System Power Supply", "| Power Supply", "| Power Unit", "# TDP "}),
)
