"""Which files a run reads: paths of the user become jobs, one per file on disk (or standard input)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analyzer.model import Problem
from analyzer.sources.names import displayable

STDIN = "-"
STDIN_NAME = "stdin"

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
# A shell hands `<(command)` over as a pipe below these; opening it cannot wait for a writer that never comes.
_OPEN_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


@dataclass(frozen=True, slots=True)
class Job:
    """One file on disk, or standard input (path ``-``). ``name`` is what the report shows, ``size`` is in bytes."""

    path: str
    name: str
    size: int


def expand(paths: Sequence[str]) -> tuple[list[Job], list[Problem]]:
    """Turns files, folders (recursive, hidden entries left out) and ``-`` into jobs, each file once.

    The order is that of ``paths``, inside a folder by name. What cannot be read becomes a problem.
    """
    search = _Search()
    for path in paths:
        search.add(path)
    return search.jobs, search.problems


class _Search:
    """One expansion: the files and folders seen so far, so that no file is read twice and no loop is followed."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.problems: list[Problem] = []
        self._seen: set[tuple[int, int]] = set()
        self._stdin = False

    def add(self, path: str) -> None:
        """Takes one path as the user gave it."""
        if path == STDIN:
            if not self._stdin:
                self.jobs.append(Job(STDIN, STDIN_NAME, 0))
            self._stdin = True
            return
        stack = [(path, True)]
        while stack:
            current, given = stack.pop()
            stack.extend((child, False) for child in reversed(list(self._visit(current, given))))

    def _visit(self, path: str, given: bool) -> Iterator[str]:
        """Records a file, or yields what a folder holds."""
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            self._report(path, _why(path, error))
            return
        if stat.S_ISDIR(status.st_mode):
            if self._first_time(status):
                yield from self._children(path)
        elif stat.S_ISREG(status.st_mode) or (given and path.startswith(_OPEN_DESCRIPTORS)):
            self._file(path, status)
        else:
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
            self._report(path, f"is {kind}, not read")

    def _file(self, path: str, status: os.stat_result) -> None:
        if not self._first_time(status):
            return
        if os.access(path, os.R_OK):
            self.jobs.append(Job(path, displayable(path), status.st_size))
        else:
            self._report(path, "cannot be read: permission denied")

    def _children(self, folder: str) -> list[str]:
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            self._report(folder, _why(folder, error))
            return []
        return [os.path.join(folder, name) for name in names if not name.startswith(".")]

    def _first_time(self, status: os.stat_result) -> bool:
        """False for a file or folder met before, also under another name (link, folder inside a folder)."""
        if status.st_ino == 0:  # file systems without inode numbers cannot tell
            return True
        key = (status.st_dev, status.st_ino)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _report(self, path: str, what: str) -> None:
        self.problems.append(Problem(displayable(path), 0, what))


def _why(path: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "is a link to nothing, not read" if os.path.islink(path) else "does not exist"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return f"cannot be read: {error}"
