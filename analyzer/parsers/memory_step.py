"""Memory figures that training programs print while they run, in the styles of several frameworks.

    train: epoch 1 step 50/400 loss 2.38 ... allocated bytes: 61.2GB (61205381120) reserved 64529367040
    train: peak: allocated bytes: 78.5GB (78499999744) reserved bytes: 82.0GB (81986060288)
    [Rank 0] (after 10 iterations) memory (MB) | allocated: 12345.6 | max allocated: 23456.7 | reserved: 30000.0 | ...
    [utils.py:786:see_memory_usage] MA 12.3 GB         Max_MA 14.1 GB         CA 15.0 GB         Max_CA 15 GB
    communicators ready, driver reports 12868 MiB used, torch reserved 20 MiB
    train: host_memory_stats allocated_bytes.current 4999999488 (pinned) segment.current 96

GB is 10^9 bytes, but 2^30 where DeepSpeed prints it, and MB is 2^20 in the lines of Megatron and of the loggers of
vision trainers. A figure in parentheses that repeats the one before exactly wins. A number without a unit counts as
bytes when it is that large, otherwise not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import Size, integer, size
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_FIGURE = re.compile(r"(.*?)(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)[ \t]*([A-Za-z]+)?[ \t]*(?:\(([0-9]+)\))?")
_LABEL_UNIT = re.compile(r"\(([KMGT]i?B)\)")
_RANKS = re.compile(r"(?=\[Rank [0-9]+\] \(after )")
_DEEPSPEED = re.compile(r"(?:Max_)?(?:MA|CA)\b|CPU Virtual")
_MIB = re.compile(r"max mem\b|GPU Total Peak")
_BINARY = {"KB": "KiB", "MB": "MiB", "GB": "GiB", "TB": "TiB"}
_ELSEWHERE = ("NCCL INFO", "NCCL WARN", "ut of memory")
_SHAPE = re.compile(
    r"\b(?:seq_?len|max_len|q_len|shape|bucket|resolution|length)\s*[:=]\s*(\(?[0-9]+(?:[x, ]{1,2}[0-9]+){0,5}\)?)"
)
_PERCENT = re.compile(r"CPU Virtual Memory:.*percent = ([0-9]{1,3}(?:\.[0-9]+)?)%")
_LONGEST = 4000  # no line of figures is that long, even with eight ranks in it
_LEAST_BYTES = 1 << 20
_ALL_KEPT = 2000
_ALIKE = 0.005
_COLUMNS = {
    "allocated": "allocated_bytes",
    "max_allocated": "max_allocated_bytes",
    "reserved": "reserved_bytes",
    "max_reserved": "max_reserved_bytes",
    "device": "device_used_bytes",
}


class MemorySession(Session):
    """One row for each line; lines of several ranks that ran into one line become several.

    A run of a million steps prints a million figures: after the first thousands only those that differ from the
    last one kept, and the very last, become rows.
    """

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._rows = 0
        self._kept: dict[str, int] = {}
        self._last: tuple[Line, dict[str, object]] | None = None

    def close(self) -> None:
        """Sends the last figures, if they were held back."""
        if self._last is not None:
            self.emit("memory_step", *self._last)
            self._last = None
        super().close()

    def offer(self, line: Line, called: bool) -> Verdict:
        """Separates the ranks of Megatron; texts of errors and NCCL's log speak of other memory."""
        if any(words in line.text for words in _ELSEWHERE):
            return Verdict.LEFT
        if len(line.text) > _LONGEST:
            return Verdict.LEFT
        pieces = [piece for piece in _RANKS.split(line.text) if piece.strip()]
        if len(pieces) < 2:
            return super().offer(line, called)
        verdicts = []
        for piece in pieces:
            part = Line(line.ref, line.stream, piece, line.host, line.rank, line.at, line.boot_s, line.prefix_pid)
            verdicts.append(super().offer(part, called))
        return Verdict.TAKEN if Verdict.TAKEN in verdicts else verdicts[0]

    def on_memory(self, f: Fields, line: Line) -> Verdict | None:
        megatron = "megatron" in f
        values: dict[str, object] = {}
        error = 0
        for field, column in _COLUMNS.items():
            figure = _figure(f[field], megatron) if field in f else None
            if figure is not None:
                values[column] = figure.bytes
                error = max(error, figure.error)
        host = self._host(f, line)
        if not values:
            return None if host else Verdict.UNREAD
        if "peak" in f:
            for kind in ("allocated", "reserved"):
                if f"{kind}_bytes" in values:
                    values.setdefault(f"max_{kind}_bytes", values.pop(f"{kind}_bytes"))
        deepspeed = _DEEPSPEED.match(f.get("allocated", ""))
        values |= {
            "step": integer(f.get("step")),
            "epoch": integer(f.get("epoch")),
            "error_bytes": error,
            "source": "megatron" if megatron else "deepspeed" if deepspeed else "training log",
        }
        if "rank" in f:
            values["rank"] = int(f["rank"])
        shape = _SHAPE.search(line.text)
        if shape:
            values["shape"] = shape.group(1).strip("() ")
        self._thinned(line, values)
        return None

    def _thinned(self, line: Line, values: dict[str, object]) -> None:
        figures = {name: value for name in _COLUMNS.values() if isinstance(value := values.get(name), int)}
        alike = all(abs(value - self._kept.get(name, 0)) <= _ALIKE * value for name, value in figures.items())
        if self._rows >= _ALL_KEPT and alike:
            self._last = (line, values)
            return
        self._rows += 1
        self._kept, self._last = figures, None
        self.emit("memory_step", line, values)

    def _host(self, f: Fields, line: Line) -> bool:
        """Figures of the host's memory; whether there were any."""
        found = False
        for field, what in (("pinned", "pinned"), ("host_used", "used")):
            figure = _figure(f[field], False) if field in f else None
            if figure is not None:
                pid = line.prefix_pid if what == "pinned" else None
                self.emit("host_memory", line, {"what": what, "bytes": figure.bytes, "pid": pid})
                found = True
                self._total(figure, what, line)
        return found

    def _total(self, used: Size, what: str, line: Line) -> None:
        """DeepSpeed prints use and its share of the host: their quotient is the host's memory, to a percent or so."""
        percent = _PERCENT.search(line.text) if what == "used" else None
        if percent and float(percent.group(1)) >= 1:
            total = round(used.bytes * 100 / float(percent.group(1)))
            self.emit("host_memory", line, {"what": "total", "bytes": total})


def _figure(text: str, megatron: bool) -> Size | None:
    """A label with its figure, in bytes with half of its last digit; None where the unit is not known."""
    found = _FIGURE.fullmatch(text.strip())
    if found is None:
        return None
    label, number, unit, exact = found.groups()
    inside = _LABEL_UNIT.search(label)
    unit = unit or (inside.group(1) if inside else None)
    if megatron or _MIB.match(label) or (unit == "MB" and label.strip(" :=") == "mem"):
        unit = "MiB"
    elif unit is None and label.startswith("peak_memory_"):
        unit = "GiB"
    elif unit in _BINARY and _DEEPSPEED.match(label):
        unit = _BINARY[unit]
    if unit is None:
        amount = round(float(number))
        return Size(amount, 0) if "." not in number and (amount >= _LEAST_BYTES or amount == 0) else None
    rounded = size(f"{number} {unit}")
    if rounded is not None and exact is not None and abs(int(exact) - rounded.bytes) <= 2 * rounded.error + 1:
        return Size(int(exact), 0)
    return rounded


_STRONG = ("allocated bytes: ", "memory (MB) | allocated", " Max_MA ", "host_memory_stats allocated_bytes")
_WEAK = (
    "CPU Virtual Memory:",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "emory allocated",
    "emory Allocated",
    "emory reserved",
    "mem_alloc",
    "mem_usage",
    "max_mem: ",
    "max mem: ",
    "peak_mem",
    "eak memory",
    "eak Memory",
    "memory: ",
    " alloc ",
    "alloc=",
    " allocated ",
    " allocated: ",
    "torch reserved ",
    "reserved bytes: ",
    "\tmem ",
)
FORMAT = Format(
    name="memory-step",
    grammar="memory_step",
    literals=(*_STRONG, *_WEAK),
    session=MemorySession,
    title="memory figures of a training log",
    command="the output of the training program",
    versions="PyTorch scripts, Megatron-LM, DeepSpeed, torchvision, torchtitan, torchtune",
    weak_literals=frozenset(_WEAK),
    blocks=False,
)
