"""Memory of XLA's programs: JAX 0.2 to 0.8, TensorFlow 1.4 to 2.18.

    XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 34912723376 bytes.
    JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 20.00GiB with allocator GPU_0_bfc on device 0.
    RESOURCE_EXHAUSTED: Failed to allocate request for 154.06GiB (165425291480B) on device ordinal 0
    Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.97GiB (rounded to 2110783744) requested by op fusion
    OOM when allocating tensor with shape[64,512,28,28] and type float on /job:localhost/.../device:GPU:0 by allocator GPU_0_bfc
    Created device /job:localhost/replica:0/task:0/device:GPU:0 with 14206 MB memory:  -> device: 0, name: Tesla T4, pci bus id: 0000:00:1e.0

with the plan of the program behind ``BufferAssignment stats:`` and the figures of the allocator behind ``Stats:``.
The pool of the allocator is what XLA took from the card, or may take; its own MB are 2^20 bytes.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import Size, bus_id
from analyzer.parsers.xla_size import xla_size
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_GPU = re.compile(r"(?:device(?: ordinal)? |GPU[:_]|GPU_)([0-9]{1,3})")
_ALLOCATOR = re.compile(r"(GPU_[0-9]+_\w+|\w*_bfc)")
_OP = re.compile(r"requested by op (\S+)")
_TENSOR = re.compile(r"\[([0-9, ]*)\] and type (\w+)")
_CREATED = re.compile(r"GPU:([0-9]+) with ([0-9]+) MB memory.*?pci bus id: ([0-9a-fA-F:.]+)")
_USAGE = re.compile(r"([0-9]+) bytes free, ([0-9]+) bytes total")
_BACKEND = re.compile(r"([0-9]+) bytes on device ([0-9]+)")
_TYPE_BYTES = {"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int32": 4, "int64": 8, "bool": 1, "complex64": 8}
_PLANS = {
    "parameter allocation": "parameter",
    "constant allocation": "constant",
    "maybe_live_out allocation": "output",
    "preallocated temp allocation": "temp",
    "total allocation": "total",
    "total fragmentation": "fragmentation",
}
_STATS = {
    "Limit": "limit",
    "InUse": "in_use",
    "MaxInUse": "max_in_use",
    "Reserved": "reserved",
    "LargestFreeBlock": "largest_free",
}
_MOST_BUFFERS = 3
_TEXT_CAP = 300
_HARMLESS = "not a failure"


class XlaSession(Session):
    """Errors become events; the figures that follow one complete it."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._told: set[tuple[object, ...]] = set()
        self._event: tuple[Line, dict[str, object]] | None = None
        self._stats: dict[str, int] = {}
        self._buffers = 0
        self._framework = "jax"

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        """Lines of the dump that carry no figure, and other programs' lines, leave the block open."""
        return Verdict.LEFT

    def close(self) -> None:
        """Sends the event that waited for the allocator's figures."""
        self._send()
        self._buffers = 0
        super().close()

    def _send(self) -> None:
        if self._event is not None:
            line, values = self._event
            if {"limit", "in_use"} <= self._stats.keys():
                values["capacity_bytes"] = self._stats["limit"]
                values["allocated_bytes"] = self._stats["in_use"]
                values["free_bytes"] = max(self._stats["limit"] - self._stats["in_use"], 0)
            self.emit("oom_event", line, values)
        self._event, self._stats = None, {}

    def on_fact(self, f: Fields, line: Line) -> Verdict | None:
        phrase, rest = f["phrase"], f.get("rest", "")
        if phrase.startswith("Allocator ("):
            return self._ran_out(rest, line)
        if phrase.startswith("Created"):
            return self._created(rest, line)
        if phrase.startswith("XLA backend"):
            return self._backend(phrase, rest, line)
        if phrase == "Memory usage:":
            return self._usage(rest, line)
        if phrase in ("BufferAssignment stats:", "Stats:", "Peak buffers:"):
            self.open = True
            return None
        if phrase == "OOM when allocating tensor with shape":
            return self._tensor(rest, line)
        if phrase == "failed to allocate":
            return self._stat("request_refused", xla_size(rest), line, {})
        if phrase in ("total_region_allocated_bytes_", "Allocator memory summary"):
            return None
        return self._error(xla_size(rest), rest, line, phrase)

    def _error(self, figure: Size | None, rest: str, line: Line, phrase: str) -> Verdict | None:
        if figure is None:
            return Verdict.LEFT
        text = line.text[line.text.find(phrase) :][:_TEXT_CAP]
        self._oom(figure, rest, line, text)
        return None

    def _oom(self, figure: Size, rest: str, line: Line, text: str) -> None:
        gpu = _GPU.search(rest)
        number = int(gpu.group(1)) if gpu else None
        values: dict[str, object] = {
            "framework": self._framework,
            "gpu": number,
            "requested_bytes": figure.bytes,
            "error_bytes": figure.error,
            "text": text,
        }
        key = (figure.bytes // max(2 * figure.error, 1 << 20), number)
        if key in self._told:
            return
        self._told.add(key)
        self._send()
        self._event, self.open = (line, values), True

    def _ran_out(self, rest: str, line: Line) -> Verdict | None:
        amount = rest.partition("trying to allocate")[2]
        figure = xla_size(amount)
        if figure is None or _HARMLESS in rest:
            return None
        operation = _OP.search(rest)
        allocator = _ALLOCATOR.search(rest)
        self._oom(figure, rest, line, line.text[line.text.find("Allocator (") :][:_TEXT_CAP])
        if operation and allocator and self._event is not None:
            self._event[1].setdefault("text", operation.group(1))
        return None

    def _tensor(self, rest: str, line: Line) -> Verdict | None:
        match = _TENSOR.search(rest)
        if match is None:
            return Verdict.LEFT
        self._framework = "tensorflow"
        amount = _TYPE_BYTES.get(match.group(2), 4)
        for part in match.group(1).split(","):
            amount *= int(part) if part.strip().isdigit() else 1
        if "GPU" not in rest:
            return None
        self._oom(Size(min(amount, 1 << 62), 0), rest, line, line.text[line.text.find("OOM when") :][:_TEXT_CAP])
        return None

    def _created(self, rest: str, line: Line) -> Verdict | None:
        match = _CREATED.search(rest)
        if match is None:
            return Verdict.LEFT
        self._framework = "tensorflow"
        figure = Size(int(match.group(2)) << 20, 1 << 20)
        place = {"gpu": int(match.group(1)), "bus_id": bus_id(match.group(3).rstrip(".")), "allocator": "bfc"}
        return self._stat("pool", figure, line, place)

    def _backend(self, phrase: str, rest: str, line: Line) -> Verdict | None:
        match = _BACKEND.search(rest)
        if match is None:
            return Verdict.LEFT
        metric = "pool" if phrase.endswith("allocating") else "pool_limit"
        return self._stat(metric, Size(int(match.group(1)), 0), line, {"gpu": int(match.group(2))})

    def _usage(self, rest: str, line: Line) -> Verdict | None:
        match = _USAGE.search(rest)
        if match is None:
            return Verdict.LEFT
        self._stat("device_free", Size(int(match.group(1)), 0), line, {})
        return self._stat("device_total", Size(int(match.group(2)), 0), line, {})

    def _stat(self, metric: str, figure: Size | None, line: Line, more: Mapping[str, object]) -> Verdict | None:
        if figure is None:
            return Verdict.LEFT
        values = {"framework": self._framework, "metric": metric, "bytes": figure.bytes, "error_bytes": figure.error}
        self.emit("allocator_stat", line, {**values, **more, "pid": line.prefix_pid})
        return None

    def on_plan(self, f: Fields, line: Line) -> Verdict | None:
        metric = _PLANS.get(f["plan"])
        if not self.open:
            return Verdict.LEFT
        return self._stat(metric, xla_size(f["figure"]), line, {}) if metric else None

    def on_stat(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        metric = _STATS.get(f["stat"])
        if metric:
            self._stats[metric] = int(f["number"])
            self._stat(metric, Size(int(f["number"]), 0), line, {})
        if f["stat"] == "LargestFreeBlock":
            self.close()
        return None

    def on_buffer(self, f: Fields, line: Line) -> Verdict | None:
        self._buffers += self.open
        return None if self.open else Verdict.LEFT

    def on_size(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        if 0 < self._buffers <= _MOST_BUFFERS:
            self._stat("peak_buffer", xla_size(f["figure"]), line, {})
        return None

    def on_operator(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_rest(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT


_STRONG = (
    "Out of memory while trying to allocate",
    "Failed to allocate request for",
    "ran out of memory trying to allocate",
    "OOM when allocating tensor with shape",
    "BufferAssignment stats:",
)
_WEAK = (
    "Out of memory allocating ",
    " from device: CUDA_ERROR_OUT_OF_MEMORY",
    " MB memory:  -> device: ",
    "XLA backend allocating",
    "XLA backend will use up to",
    "Memory usage: ",
    "] Stats: ",
    "Peak buffers:",
    "] Limit: ",
)
FORMAT = Format(
    name="xla-memory",
    grammar="xla_memory",
    literals=(*_STRONG, *_WEAK),
    session=XlaSession,
    title="memory of JAX and TensorFlow",
    command="the output of the program (TF_CPP_MIN_LOG_LEVEL=0 shows the allocator's lines)",
    versions="JAX 0.2 to 0.8, TensorFlow 1.4 to 2.18",
    weak_literals=frozenset(_WEAK),
)
