"""Parts of one large plain text file, so that several processes can read it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO

from analyzer.model import Problem
from analyzer.sources.discover import STDIN, Job
from analyzer.sources.encoding import encoding_of
from analyzer.sources.journal import is_journal
from analyzer.sources.limits import MIB, StreamFault
from analyzer.sources.magic import HEAD, binary_kind, container_of
from analyzer.sources.member import Member

_WINDOW = MIB
_TRIES = 16


def cut_points(job: Job, count: int, quiet: Callable[[bytes], bool]) -> list[int]:
    """Offsets that start the second to the last part: at line starts, in stretches that ``quiet`` approves of.

    ``quiet`` sees about 1 MiB around a point and says whether nothing there needs its neighbours. Empty for files
    that are packed, binary, in another encoding than UTF-8, or without a quiet place near the cut.
    """
    if job.path == STDIN or count < 2:
        return []
    points: list[int] = []
    try:
        with open(job.path, "rb", 0) as file:
            head = file.read(HEAD)
            encoding, mark = encoding_of(head)
            if container_of(head) or encoding or mark or binary_kind(head) or is_journal(head):
                return []
            for number in range(1, count):
                point = _near(file, job.size * number // count, quiet)
                if point is None or (points and point <= points[-1]):
                    return []
                points.append(point)
    except OSError:
        return []
    return points


def _near(file: IO[bytes], offset: int, quiet: Callable[[bytes], bool]) -> int | None:
    for attempt in range(_TRIES):
        start = offset + attempt * _WINDOW
        file.seek(start - _WINDOW // 2)
        data = file.read(_WINDOW)
        line_start = data.find(b"\n", _WINDOW // 2) + 1
        if line_start and quiet(data):
            return start - _WINDOW // 2 + line_start
    return None


def part_of(job: Job, start: int, end: int, problem: Callable[[Problem], None]) -> Member:
    """The bytes from ``start`` to ``end`` as a member; its line numbers start at 1. Raises OSError."""
    file = open(job.path, "rb", 0)  # noqa: SIM115 - closed by the range when it is read to its end
    file.seek(start)

    def on_fault(name: str, fault: Exception) -> None:
        problem(Problem(name, 0, f"cannot be read on: {fault}"))

    return Member(job.name, _Range(file, end - start), end - start, on_fault)


class _Range:
    """At most ``left`` bytes of a file."""

    def __init__(self, file: IO[bytes], left: int) -> None:
        self._file = file
        self._left = left

    def read(self, n: int, /) -> bytes:
        if self._left <= 0:
            self._file.close()
            return b""
        try:
            part = os.read(self._file.fileno(), min(n, self._left))
        except OSError as error:
            self._file.close()
            raise StreamFault(str(error.strerror or error).lower()) from error
        self._left -= len(part)
        if not part or self._left <= 0:
            self._left = 0
        return part
