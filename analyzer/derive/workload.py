"""What kind of live memory did not fit: weights, captured graphs, a growth, a restored state, an evaluation, a save.

Asked only where the job's own tensors fill the card; the phase of the failure and the figures before it decide.
"""

from __future__ import annotations

from typing import Any

from analyzer.evidence import Evidence
from analyzer.model import split_ref

Row = dict[str, Any]

_FITS = 0.6
_LEAST_BYTES = 256 << 20
_KEPT = ("cat", "stack", "nested_concat", "append", "pad_across")


class Workload:
    """The tables that tell what the job's own memory was for."""

    def __init__(self, evidence: Evidence) -> None:
        self._sizes = evidence.rows("model_size")
        self._shards = max((row["shards"] or 1 for row in self._sizes), default=1)
        self._engine = evidence.rows("engine_memory")
        self._steps = evidence.rows("memory_step")
        self._phases = evidence.rows("run_phase")
        self._errors = evidence.rows("exception")

    def weights(self) -> tuple[int | None, int | None]:
        """Bytes of the weights on one card as configuration or log state them, and the line that does."""
        best: tuple[int, int, int] | None = None
        width = next((row["dtype_bytes"] for row in self._sizes if row["dtype_bytes"]), None)
        for row in self._sizes:
            each = row["dtype_bytes"] or width
            size = row["total_bytes"] or (round(row["parameters"] * each) if row["parameters"] and each else None)
            order = ("index", "config", "log", "name").index(row["source"] or "name")
            if size is not None and size >= _LEAST_BYTES and (best is None or order < best[0]):
                best = (order, size // self._shards, row["ref"])
        return (best[1], best[2]) if best else (None, None)

    def kind(self, failure: Row, growth: int | None, capacity: int) -> str:
        """The kind, ``workload`` where nothing tells."""
        phase, ref = failure.get("phase"), failure.get("ref") or 0
        if phase == "load":
            size, _ = self.weights()
            return "weights" if size is None or size >= _FITS * capacity else "workload"
        if phase == "capture":
            return "graphs"
        if growth is not None:
            return "growth"
        if phase == "save":
            return "save"
        if phase == "evaluate" and (self._trained_before(ref) or self._keeps(failure)):
            return "evaluation"
        if phase == "resume" and self._resumed(failure):
            return "resume"
        return "workload"

    def _resumed(self, failure: Row) -> bool:
        """Whether the state of a run was loaded, not only the weights of a model."""
        text = next((r["text"] for r in self._phases if r["ref"] == failure.get("phase_ref")), "optimizer").lower()
        return any(word in text for word in ("resum", "optim", "iteration", "step"))

    def _trained_before(self, ref: int) -> bool:
        number = split_ref(ref)[0]
        rows = [*self._steps, *(row for row in self._phases if row["phase"] == "train")]
        return any(split_ref(row["ref"])[0] == number and row["ref"] < ref for row in rows)

    def _keeps(self, failure: Row) -> bool:
        """The failing line collects what was computed."""
        told = {int(ref) for ref in (failure.get("refs") or "").split(",") if ref}
        texts = [f"{r['frames'] or ''} {r.get('code') or ''}" for r in self._errors if r["ref"] in told]
        return any(word in text for text in texts for word in _KEPT)
