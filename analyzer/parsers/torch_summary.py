"""The table of ``torch.cuda.memory_summary()``, PyTorch 1.4 to 2.10.

    |                  PyTorch CUDA memory summary, device ID 0                 |
    |            CUDA OOMs: 1            |        cudaMalloc retries: 1         |
    | Allocated memory      |  82720 MiB | 137600 MiB | 151200 MiB |  68480 MiB |
    |       from large pool |  82720 MiB | 137600 MiB | 151200 MiB |  68480 MiB |

Older versions print KB and MB for the same powers of two. Figures are rounded down, so the half width of their
rounding is taken as a whole unit.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_METRICS = {
    "Allocated memory": "allocated",
    "Active memory": "active",
    "Requested memory": "requested",
    "GPU reserved memory": "reserved",
    "Non-releasable memory": "non_releasable",
    "Allocations": "allocations",
    "Active allocs": "active_allocs",
    "GPU reserved segments": "reserved_segments",
    "Non-releasable allocs": "non_releasable_allocs",
    "Oversize allocations": "oversize_allocations",
    "Oversize GPU segments": "oversize_segments",
}
_POOLS = {"from large pool": "large", "from small pool": "small"}
_COUNTS = {"": 1, "K": 1000, "M": 1000**2}
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}


class SummarySession(Session):
    """Reads the table from its title to its last frame; a table cut at its top lacks the device."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._gpu: int | None = None
        self._metric: str | None = None
        self._rows = 0

    def unread(self, line: Line) -> Verdict:
        """The words of the table inside other text are none of it."""
        return Verdict.UNREAD if line.text.lstrip().startswith("|") else Verdict.LEFT

    def close(self) -> None:
        """Forgets the device."""
        self._gpu, self._metric, self._rows = None, None, 0
        super().close()

    def on_title(self, f: Fields, line: Line) -> None:
        self.close()
        self.open, self._gpu = True, int(f["gpu"])

    def on_faults(self, f: Fields, line: Line) -> None:
        self.open = True
        for field in ("ooms", "retries"):
            self._emit(line, {"metric": field, "pool": "all", "current": int(f[field])})

    def on_header(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_frame(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        if self._rows and "=" in line.text:
            self.close()
        return None

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        name = f["metric"]
        pool = _POOLS.get(name)
        if pool is None:
            self._metric = _METRICS.get(name)
        if self._metric is None:
            return Verdict.LEFT  # a metric of a newer version
        self._rows += 1
        current, error = _figure(f["current"])
        peak, peak_error = _figure(f["peak"])
        self._emit(
            line,
            {
                "metric": self._metric,
                "pool": pool or "all",
                "current": current,
                "peak": peak,
                "error_bytes": max(error, peak_error),
            },
        )
        return None

    def _emit(self, line: Line, values: dict[str, object]) -> None:
        self.emit("memory_summary", line, values | {"gpu": self._gpu})


def _figure(text: str) -> tuple[int, int]:
    """``82720 MiB`` in bytes or ``148`` as a count, and what rounding down may have taken off."""
    digits = text.rstrip("KMGTPiB \t")
    unit = text[len(digits) :].strip()
    scale = _BYTES[unit.replace("i", "")] if unit.endswith("B") else _COUNTS[unit]
    return int(digits) * scale, scale if scale > 1 else 0


FORMAT = Format(
    name="torch-memory-summary",
    grammar="torch_summary",
    literals=("CUDA memory summary, device ID", "CUDA OOMs:"),
    session=SummarySession,
    title="memory summary of PyTorch",
    command="print(torch.cuda.memory_summary())",
    versions="PyTorch 1.4 to 2.10",
)
