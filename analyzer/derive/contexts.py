"""Whether the other processes on a card are ranks of the same job that only opened a context on it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_LARGEST = 2 << 30
_ALIKE = 0.1
_LEAST_UNPROVEN = 3


class JobPids:
    """Processes of the job by what NCCL and the tools say of them, and what each holds on each card."""

    def __init__(self, evidence: Evidence) -> None:
        self.ranks: dict[int, set[int]] = defaultdict(set)
        for row in evidence.rows("process"):
            if row["gpu"] is not None and row["nranks"]:
                self.ranks[row["pid"]].add(row["gpu"])
        self.used: dict[int, dict[int, int]] = defaultdict(dict)
        for row in evidence.rows("gpu_process"):
            if row["used_bytes"] is not None and row["gpu"] is not None and row["pid"] is not None:
                self.used[row["pid"]][row["gpu"]] = row["used_bytes"]
        for row in evidence.rows("oom_holder"):
            if row["used_bytes"] is not None and row["gpu"] is not None:
                self.used[row["pid"]].setdefault(row["gpu"], row["used_bytes"])

    def belongs_elsewhere(self, pid: int, gpu: int | None) -> bool:
        """Whether the process is a rank whose own card is another one."""
        if pid in self.ranks:
            return gpu not in self.ranks[pid]
        here = self.used[pid].get(gpu if gpu is not None else -1, 0)
        return any(other != gpu and amount >= here for other, amount in self.used[pid].items())


def are_contexts(row: Row, others: list[int], jobs: JobPids) -> bool:
    """Small holders that are ranks of the job; without proof of that, three and more of equal size."""
    sizes = [jobs.used[pid].get(row["gpu"], 0) for pid in others]
    if not others or max(sizes) > _LARGEST:
        return False
    proven = sum(jobs.belongs_elsewhere(pid, row["gpu"]) for pid in others)
    if proven * 2 > len(others):
        return True
    alike = min(sizes) > 0 and max(sizes) - min(sizes) <= _ALIKE * max(sizes)
    return proven == 0 and len(others) >= _LEAST_UNPROVEN and alike
