"""The readable streams of a job: a plain file is one, an archive has one per file in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING

from analyzer.model import Problem
from analyzer.sources.discover import STDIN, Job
from analyzer.sources.inflate import GzipInflater, ZstdInflater
from analyzer.sources.journal import JournalLines, is_journal
from analyzer.sources.limits import Budget, LimitReached, Limits, StreamFault
from analyzer.sources.magic import container_of
from analyzer.sources.member import Member
from analyzer.sources.names import displayable
from analyzer.sources.repeats import Repeats

if TYPE_CHECKING:
    from analyzer.sources.archive import Entry

# Formats that are zip archives underneath, and hold no logs: checkpoints of PyTorch, arrays, packages, documents.
_ZIP_OF_ANOTHER_KIND = (".pt", ".pth", ".ckpt", ".npz", ".whl", ".jar", ".egg", ".docx", ".xlsx", ".pptx")

_INFLATERS = {"gzip": GzipInflater, "zstd": ZstdInflater}


def members(job: Job, problem: Callable[[Problem], None], limits: Limits | None = None) -> Iterator[Member]:
    """The streams of ``job``; what cannot be opened or read is given to ``problem``, nothing is raised.

    Read a member to its end, or leave it, before asking for the next one.
    """
    try:
        file = _open(job)
    except OSError as error:
        problem(Problem(job.name, 0, f"cannot be read: {(error.strerror or str(error)).lower()}"))
        return
    repeats = Repeats(problem)
    try:
        yield from _Walk(job, file, Budget(limits or Limits()), repeats).start()
    finally:
        repeats.close()
        if job.path != STDIN:
            file.close()


def _open(job: Job) -> IO[bytes]:
    if job.path == STDIN:
        return sys.stdin.buffer
    # O_NONBLOCK: a file may have become a pipe since it was found, and opening that one would wait for ever.
    descriptor = os.open(job.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
    return open(descriptor, "rb", 0)


class _Walk:
    """Opens what is packed, down to the allowed depth."""

    def __init__(self, job: Job, file: IO[bytes], budget: Budget, repeats: Repeats) -> None:
        self._job = job
        self._file = file
        self._budget = budget
        self._repeats = repeats
        self._seekable = job.path != STDIN and file.seekable()

    def start(self) -> Iterator[Member]:
        """The members of the job itself."""
        raw = _Raw(self._file, self._budget)
        size = self._job.size if self._job.path != STDIN else None
        return self._unpack(Member(self._job.name, raw, size, self._fault), 0)

    def _unpack(self, outer: Member, depth: int) -> Iterator[Member]:
        kind = container_of(outer.peek())
        if kind is None:
            yield self._as_text(outer)
        elif kind == "zip" and outer.name.lower().endswith(_ZIP_OF_ANOTHER_KIND):
            self._report(outer.name, "binary file (zip with a format of its own), not read")
        elif depth >= self._budget.limits.depth:
            self._report(outer.name, f"is nested more than {self._budget.limits.depth} archives deep, not read")
        elif kind in ("gzip", "zstd"):
            inner = self._inflated(outer, kind)
            if inner is not None and container_of(inner.peek()) == "tar":
                yield from self._archive(inner, "tar", depth)
            elif inner is not None:
                yield from self._unpack(inner, depth + 1)
        else:
            yield from self._archive(outer, kind, depth)

    def _as_text(self, outer: Member) -> Member:
        """The journal in a machine form becomes text; everything else stays."""
        if not is_journal(outer.peek()):
            return outer
        return Member(outer.name, JournalLines(outer), outer.size, self._fault)

    def _inflated(self, outer: Member, kind: str) -> Member | None:
        try:
            return Member(outer.name, _INFLATERS[kind](outer, self._budget), None, self._fault)
        except StreamFault as fault:
            self._fault(outer.name, fault)
            return None

    def _archive(self, outer: Member, kind: str, depth: int) -> Iterator[Member]:
        try:
            for entry in self._entries(outer, kind, depth):
                name = f"{outer.name}!{displayable(entry.name.removeprefix('./'))}"
                if self._budget.reported:
                    return
                if entry.stream is None:
                    self._report(name, entry.skipped)
                else:
                    yield from self._unpack(Member(name, entry.stream, entry.size, self._fault), depth + 1)
        except (StreamFault, OSError) as fault:
            # When the stream below broke off, it has said so itself, and the archive only echoes it.
            if not outer.failed:
                self._fault(outer.name, fault)

    def _entries(self, outer: Member, kind: str, depth: int) -> Iterator[Entry]:
        from analyzer.sources import archive

        if kind == "tar":
            return archive.tar_entries(outer, self._budget)
        if depth == 0 and self._seekable:
            at = self._file.tell()
            listed = archive.open_zip(self._file)
            if listed is not None:
                self._budget.take_raw(self._job.size)
                return archive.zip_entries(listed, self._budget)
            self._file.seek(at)
            self._report(outer.name, "zip archive without a readable directory (truncated?), read from its start")
        from analyzer.sources.zipstream import forward_zip_entries

        return forward_zip_entries(outer, self._budget)

    def _fault(self, name: str, fault: Exception) -> None:
        if isinstance(fault, LimitReached):
            if self._budget.reported:
                return
            self._budget.reported = True
        text = fault.strerror or str(fault) if isinstance(fault, OSError) else str(fault)
        self._report(name, text if isinstance(fault, StreamFault) else f"cannot be read on: {text.lower()}")

    def _report(self, name: str, what: str) -> None:
        self._repeats.add(Problem(name, 0, what))


class _Raw:
    """The bytes of the file as they lie on disk, counted."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file = file
        self._budget = budget

    def read(self, n: int, /) -> bytes:
        part = self._file.read(n)
        self._budget.take_raw(len(part))
        return part
