"""gpu-burn: progress with error counts, and its verdict for each GPU.

    45.0%  proc'd: 5346 (13437 Gflop/s) - 5346 (13441 Gflop/s)   errors: 0 - 128 (WARNING!)   temps: 55 C - 60 C
    Tested 2 GPUs:
            GPU 0: OK
            GPU 1: FAULTY

Progress lines overwrite each other; only the first one with errors of a GPU becomes a row, the verdict always does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

TOOL = "gpu-burn"
_ERRORS = re.compile(r"errors: (.*?)(?:temps:|$)")
_COUNT = re.compile(r"(-?[0-9]+)(?: +\((WARNING|DIED)!\))?")


class GpuBurnSession(Session):
    """Remembers what was told of each GPU."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._told: set[int] = set()

    def foreign(self, line: Line) -> Verdict:
        return Verdict.ENDED if line.text.strip() else Verdict.LEFT

    def _row(self, line: Line, gpu: int, outcome: str, detail: str | None) -> None:
        self.emit("health_check", line, {"tool": TOOL, "name": "burn", "gpu": gpu, "result": outcome, "detail": detail})

    def on_progress(self, f: Fields, line: Line) -> None:
        errors = _ERRORS.search(f["text"])
        for gpu, (count, word) in enumerate(_COUNT.findall(errors.group(1)) if errors else ()):
            if (word or int(count) != 0) and gpu not in self._told:
                self._told.add(gpu)
                self._row(line, gpu, "fail", "died" if word == "DIED" else f"{count} wrong results")

    def on_tested(self, f: Fields, line: Line) -> None:
        self._told.clear()
        self.open = True

    def on_result(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        faulty = f["verdict"] == "FAULTY"
        self._row(line, int(f["gpu"]), "fail" if faulty else "pass", "wrong results" if faulty else None)
        return None


FORMAT = Format(
    name="gpu-burn",
    grammar="gpu_burn",
    literals=("proc'd: ", "Tested 1 GPU", "Tested 2 GPU", "Tested 3 GPU", "Tested 4 GPU", "Tested 8 GPU"),
    session=GpuBurnSession,
    title="gpu-burn",
    command="gpu_burn 120",
    versions="gpu-burn 0.9 to 1.1",
    weak_literals=frozenset({"Tested 1 GPU", "Tested 2 GPU", "Tested 3 GPU", "Tested 4 GPU", "Tested 8 GPU"}),
)
