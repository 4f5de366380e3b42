"""Keeps a fault that occurs thousands of times from filling the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from analyzer.model import Problem

Report = Callable[[Problem], None]


class Repeats:
    """Passes the first ``limit`` problems of each wording on and counts the others until ``close``."""

    def __init__(self, report: Report, limit: int = 5) -> None:
        self._report = report
        self._limit = limit
        self._passed: dict[str, int] = {}
        self._held: dict[str, Problem] = {}

    def add(self, problem: Problem) -> None:
        """Passes ``problem`` on or counts it."""
        what = problem.what
        passed = self._passed.get(what, 0)
        if passed < self._limit:
            self._passed[what] = passed + 1
            self._report(problem)
            return
        held = self._held.get(what)
        self._held[what] = replace(held, count=held.count + problem.count) if held else problem

    def close(self) -> None:
        """Reports one summary for each wording that was held back; its place is the first one held."""
        for problem in self._held.values():
            self._report(problem)
        self._held.clear()
