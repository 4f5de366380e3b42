"""Joins what the watchdog of one rank says in several lines into one row of ``collective_timeout``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from analyzer.parsers.base import Line

Values = dict[str, object]


@dataclass(slots=True)
class _Rank:
    """Rows of one rank that wait for their other half, and the time-outs it has told."""

    timeout: tuple[Line, Values] | None = None
    status: tuple[Line, Values] | None = None
    dump: tuple[Line, Values] | None = None
    seen: set[tuple[object, object]] = field(default_factory=set)
    failed: bool = False


class Watchdogs:
    """The watchdogs of all ranks that print into one stream.

    A time-out and the status of the same work are one row, whichever comes first. A status alone becomes a row where
    no other fault than a time-out was told of that rank; so does the state that a rank prints before its dump.
    """

    def __init__(self, send: Callable[[Line, Values], None]) -> None:
        self._send = send
        self._ranks: dict[object, _Rank] = {}

    def timeout(self, line: Line, values: Values) -> None:
        """A work that timed out; told again (by the exception that ends the process) it adds nothing."""
        state = self._state(line, values)
        key = (values["seq"], values["operation"])
        if key in state.seen:
            return
        state.seen.add(key)
        if state.timeout is not None:
            self._send(*state.timeout)
        state.timeout = (line, values)
        self._join(state)

    def status(self, line: Line, values: Values) -> None:
        """What the rank had enqueued and completed when a work failed."""
        state = self._state(line, values)
        if state.timeout is not None or all(seq != values["seq"] for seq, _ in state.seen):
            state.status = (line, values)
            self._join(state)

    def dump(self, line: Line, values: Values) -> None:
        """What the rank had enqueued and completed when another rank asked for a dump."""
        self._state(line, values).dump = (line, values)

    def failed(self, line: Line, values: Values) -> None:
        """The watchdog of this rank ended by another fault than a time-out."""
        self._state(line, values).failed = True

    def close(self) -> None:
        """Sends what has not found its other half."""
        for state in self._ranks.values():
            if state.timeout is not None:
                line, values = state.timeout
                self._send(line, values | (state.dump[1] if state.dump else {}))
            elif state.status is not None and not state.failed:
                self._send(*state.status)
            elif state.dump is not None and not state.seen and not state.failed:
                self._send(*state.dump)
        self._ranks.clear()

    def _state(self, line: Line, values: Values) -> _Rank:
        return self._ranks.setdefault(values.get("rank", line.rank), _Rank())

    def _join(self, state: _Rank) -> None:
        if state.timeout is None or state.status is None:
            return
        (line, values), (_, status) = state.timeout, state.status
        if values["seq"] is None or values["seq"] == status["seq"]:
            known = {name: value for name, value in values.items() if value is not None}
            self._send(line, status | known)
            state.timeout = state.status = None
