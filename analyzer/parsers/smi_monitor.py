"""``nvidia-smi dmon`` and ``nvidia-smi pmon``: one line per GPU (or process) and second.

    # gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk
    # Idx     W     C     C     %     %     %     %   MHz   MHz
        0   114    71     -    90    61     0     0  7000  1755
    #Date       Time        gpu    pwr  gtemp
     20240611   12:33:17      0    114     71
    # gpu         pid   type     sm    mem    enc    dec    command
        0       41780      C     90     61      -      -    python

Which columns there are depends on ``-s`` and on the driver (384 to 610); the names of the first header line tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import integer, number
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import iso_seconds

Fields = Mapping[str, str]

_FIELDS = {
    "pwr": "gpu_power_readings.average_power_draw",
    "gtemp": "temperature.gpu_current_temp",
    "temp": "temperature.gpu_current_temp",
    "mtemp": "temperature.memory_current_temp",
    "sm": "utilization.gpu",
    "mem": "utilization.memory",
    "mclk": "clocks.memory",
    "pclk": "clocks.sm",
    "pviol": "dmon.power_violation",
    "tviol": "dmon.thermal_violation",
    "sbecc": "ecc_errors.aggregate.corrected_total",
    "dbecc": "ecc_errors.aggregate.uncorrected_total",
    "pci": "pci.replays_since_reset",
    "rxpci": "dmon.pcie_rx",
    "txpci": "dmon.pcie_tx",
}
_UNITS = {"pwr": "W", "gtemp": "C", "temp": "C", "mtemp": "C", "sm": "%", "mem": "%", "mclk": "MHz", "pclk": "MHz"}
_MIB = 1 << 20
_FOREIGN_LINES = 8
_DATE = re.compile(r"(20[0-9]{2})([0-9]{2})([0-9]{2})")
_SURE = frozenset({"pwr", "gtemp", "sm", "mclk", "pviol", "fb", "pid", "sbecc", "rxpci"})


class MonitorSession(Session):
    """Reads the rows below a header; the header is repeated every few rows."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._names: list[str] = []
        self._strange = 0

    def close(self) -> None:
        """Forgets the header."""
        self._names, self._strange = [], 0
        super().close()

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line)

    def foreign(self, line: Line) -> Verdict:
        if not self.open:
            return Verdict.LEFT
        self._strange += bool(line.text.strip())
        return Verdict.ENDED if self._strange > _FOREIGN_LINES else Verdict.LEFT

    def on_head(self, f: Fields, line: Line) -> Verdict | None:
        names = f["names"].replace(",", " ").lower().split()
        if "gpu" in names and _SURE.intersection(names):
            self._names = names
            self._strange = 0
            self.open = True
            return None
        return None if self._names and "idx" in names else self.foreign(line)

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        cells = f["cells"].replace(",", " ").split()
        names = self._names
        if not names or len(cells) < len(names) or (len(cells) > len(names) and names[-1] != "command"):
            return self.foreign(line)
        row = dict(zip(names, cells, strict=False))
        gpu = integer(row["gpu"])
        if gpu is None or not all(_sound(name, text) for name, text in row.items()):
            return self.foreign(line)
        self._strange = 0
        common: dict[str, object] = {"gpu": gpu}
        at = _time(row)
        if at is not None:
            common["at"] = at
        if "pid" in row:
            self._process(row, common, line)
        else:
            self._device(row, common, line)
        return None

    def _process(self, row: Mapping[str, str], common: dict[str, object], line: Line) -> None:
        pid = integer(row["pid"])
        if pid is None:
            return
        values: dict[str, object] = {"pid": pid, "name": row.get("command"), "tool": "nvidia-smi pmon"}
        if row.get("type", "-") != "-":
            values["kind"] = row["type"]
        used = integer(row.get("fb"))
        if used is not None:
            values |= {"used_bytes": used * _MIB, "error_bytes": _MIB // 2}
        self.emit("gpu_process", line, {**common, **values})

    def _device(self, row: Mapping[str, str], common: dict[str, object], line: Line) -> None:
        for name, field in _FIELDS.items():
            value = number(row.get(name))
            if value is not None:
                text = f"{row[name]} {_UNITS[name]}" if name in _UNITS else row[name]
                self.emit("gpu_health", line, {**common, "field": field, "text": text, "value": value})
        used = integer(row.get("fb"))
        if used is not None:
            memory = {"used_bytes": used * _MIB, "error_bytes": _MIB // 2, "tool": "nvidia-smi dmon"}
            self.emit("gpu_memory", line, {**common, **memory})


def _sound(name: str, text: str) -> bool:
    """Whether a cell can stand in its column: all but a few columns hold a number or a dash."""
    if name in ("command", "type", "time"):
        return True
    return text == "-" or number(text) is not None


def _time(row: Mapping[str, str]) -> float | None:
    date = _DATE.fullmatch(row.get("date", ""))
    return iso_seconds("-".join(date.groups()) + " " + row.get("time", "")) if date else None


FORMAT = Format(
    name="nvidia-smi-monitor",
    grammar="smi_monitor",
    literals=("# gpu ", "#gpu", "#Date  ", "# Date "),
    session=MonitorSession,
    title="nvidia-smi dmon, nvidia-smi pmon",
    command="nvidia-smi dmon -s pucvmet -o DT",
    versions="drivers 384 to 610",
    weak_literals=frozenset({"# gpu ", "#gpu", "#Date  ", "# Date "}),
)
