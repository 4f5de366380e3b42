"""Out-of-memory texts of PyTorch, 1.0 to 2.10, wherever a program prints them.

    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 38.77 GiB is free. Process 748 has ...
    RuntimeError: CUDA out of memory. Tried to allocate 14.00 MiB (GPU 0; 11.91 GiB total capacity; 11.38 GiB already allocated; 9.12 MiB free; ...

and of its cudaMallocAsync backend, over several lines:

    torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)
    Currently allocated     : 21.35 GiB

From 2.1 on the text states allocated memory (free blocks of private pools included) and the rest of what the allocator
holds; ``reserved_bytes`` is their sum, so ``private_pool_bytes`` is part of ``allocated_bytes`` (as printed). Before,
it states reserved memory itself.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import Size, size
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_SIZE = re.compile(r"[0-9]+(?:\.[0-9]+)? (?:bytes|[KMGTPE]iB)")
_NUMBER = re.compile(r"[0-9]+")
_HOLDER = re.compile(r"Process ([0-9]+) has ([0-9.]+ \w+)")
_START = re.compile(r"(?=(?:CUDA|HIP) out of memory)")
_ADVICE = re.compile(r" *(?:If reserved|See documentation)")
_TEXT_CAP = 600
_HUGE = 1 << 60  # "more than 1EB"
_NO_VALUE = 1 << 60  # NVML's "not available" and "no limit", printed as a size

_FIELDS = {
    "requested": "requested_bytes",
    "capacity": "capacity_bytes",
    "free": "free_bytes",
    "own": "own_bytes",
    "allowed": "allowed_bytes",
    "allocated": "allocated_bytes",
    "private": "private_pool_bytes",
    "unallocated": "unallocated_bytes",
    "reserved": "reserved_bytes",
}


class OomSession(Session):
    """One row for each message; the lines of the cudaMallocAsync backend become one row."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._line: Line | None = None
        self._values: dict[str, object] = {}
        self._bounded = False

    def offer(self, line: Line, called: bool) -> Verdict:
        """Splits a line in which several messages are glued together."""
        pieces = [piece for piece in _START.split(line.text) if piece.strip()]
        messages = sum(_START.match(piece) is not None for piece in pieces)
        if messages < 2:
            return super().offer(line, called)
        verdicts = [
            super(OomSession, self).offer(_part(line, piece), called) for piece in pieces if _START.match(piece)
        ]
        return Verdict.TAKEN if Verdict.TAKEN in verdicts else verdicts[0]

    def unread(self, line: Line) -> Verdict:
        """Words about running out of memory are no message."""
        return Verdict.UNREAD if "Tried to allocate" in line.text else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        """Only blank lines may stand inside the lines of the cudaMallocAsync backend."""
        return Verdict.ENDED if line.text.strip() else Verdict.LEFT

    def close(self) -> None:
        """Sends the message that waited for its last lines."""
        if self._line is not None:
            self.emit("oom_event", self._line, self._values)
        self._line, self._values, self._bounded = None, {}, False
        super().close()

    def on_oom(self, f: Fields, line: Line) -> Verdict | None:
        values = _figures(f)
        if "huge" in f:
            values["requested_bytes"] = _HUGE
        if not values:
            return Verdict.ENDED if self.open else Verdict.LEFT
        if self.open:
            self.close()
        gpu = _NUMBER.search(f.get("gpu", ""))
        message = _START.split(line.text, maxsplit=1)[-1]
        values |= {
            "framework": "pytorch",
            "gpu": int(gpu.group()) if gpu else None,
            "text": _ADVICE.split(message, maxsplit=1)[0][:_TEXT_CAP],
        }
        if "unallocated_bytes" in values and "reserved_bytes" not in values and "allocated_bytes" in values:
            values["reserved_bytes"] = _int(values["allocated_bytes"]) + _int(values["unallocated_bytes"])
        self.emit("oom_event", line, values)
        self._holders(f.get("others", ""), line, values["gpu"])
        return None

    def _holders(self, text: str, line: Line, gpu: object) -> None:
        for pid, amount in _HOLDER.findall(text):
            used = _known(size(amount))
            self.emit(
                "oom_holder",
                line,
                {
                    "event_ref": line.ref,
                    "gpu": gpu,
                    "pid": int(pid),
                    "used_bytes": used.bytes if used else None,
                    "error_bytes": used.error if used else None,
                },
            )

    def on_over(self, f: Fields, line: Line) -> None:
        if self.open:
            self.close()
        self._line, self.open = line, True
        gpu = f.get("gpu_number")
        text = line.text[line.text.find("Allocation on device") :][:_TEXT_CAP]
        self._values = {"framework": "pytorch", "gpu": int(gpu) if gpu else None, "text": text}

    def on_current(self, f: Fields, line: Line) -> Verdict | None:
        return self._figure("allocated_bytes", f)

    def on_requested(self, f: Fields, line: Line) -> Verdict | None:
        return self._figure("requested_bytes", f)

    def on_limit(self, f: Fields, line: Line) -> Verdict | None:
        return self._figure("capacity_bytes", f)

    def on_free(self, f: Fields, line: Line) -> Verdict | None:
        return self._figure("free_bytes", f)

    def on_fraction(self, f: Fields, line: Line) -> Verdict | None:
        self._bounded = True
        return None if self.open else Verdict.LEFT

    def on_bound(self, f: Fields, line: Line) -> Verdict | None:
        if not (self.open and self._bounded):
            return self.foreign(line) if self.open else Verdict.LEFT
        self._figure("allowed_bytes", f)
        self.close()
        return None

    def _figure(self, column: str, f: Fields) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        figure = _known(size(f["size"]))
        if figure is not None:
            self._values[column] = figure.bytes
            self._values["error_bytes"] = max(figure.error, _int(self._values.get("error_bytes", 0)))
        return None


def _part(line: Line, text: str) -> Line:
    return Line(line.ref, line.stream, text, line.host, line.rank, line.at, line.boot_s, line.prefix_pid)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _known(figure: Size | None) -> Size | None:
    """The size, or None where the number stands for no value."""
    return figure if figure is not None and figure.bytes < _NO_VALUE else None


def _figures(f: Fields) -> dict[str, object]:
    """The columns of the clauses that were read, and half of the last digit of the coarsest figure."""
    values: dict[str, object] = {}
    error = 0
    for field, column in _FIELDS.items():
        found = _SIZE.search(f.get(field, ""))
        figure = _known(size(found.group())) if found else None
        if figure is not None:
            values[column] = figure.bytes
            error = max(error, figure.error)
    return values | {"error_bytes": error} if values else values


FORMAT = Format(
    name="torch-oom",
    grammar="torch_oom",
    literals=(
        "out of memory. Tried to allocate",
        "CUDA out of memory",
        "HIP out of memory",
        "would exceed allowed memory",
    ),
    session=OomSession,
    title="PyTorch out-of-memory error",
    command="the output of the training program",
    versions="PyTorch 1.0 to 2.10",
    weak_literals=frozenset({"CUDA out of memory", "HIP out of memory"}),
)
