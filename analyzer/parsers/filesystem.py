"""Mounted file systems: ``df`` with any of its units, ``mount`` and ``findmnt``-like lines.

    $ df -h /dev/shm
    Filesystem      Size  Used Avail Use% Mounted on
    shm              64M   64M     0 100% /dev/shm
    tmpfs on /dev/shm type tmpfs (rw,nosuid,nodev,noexec,relatime,size=65536k)

Seen: coreutils 8 and 9, busybox. Figures without a unit count in the blocks that the header names (1K-blocks).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import number
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 2
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_FIGURE = re.compile(r"([0-9][0-9.,]*)([KMGTP]?)(?:i?B)?")
_BLOCKS = re.compile(r"([0-9]+)([KMG]?)-blocks")
_SIZE = re.compile(r"size=([0-9]+)([kKmMgG%]?)")


class FilesystemSession(Session):
    """Open from the header of df to the first lines that are no row."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._block = 1
        self._foreign = 0

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.UNREAD

    def on_head(self, f: Fields, line: Line) -> None:
        blocks = _BLOCKS.search(line.text)
        self._block = int(blocks.group(1)) * _UNITS.get(blocks.group(2), 1) if blocks else 1
        self._foreign = 0
        self.open = True

    def on_inode_head(self, f: Fields, line: Line) -> Verdict:
        return Verdict.ENDED if self.open else Verdict.LEFT

    def on_row(self, f: Fields, line: Line) -> Verdict | None:
        if "mount" not in f or (not self.open and not f["mount"].startswith("/dev/shm")):
            return self.foreign(line) if self.open else Verdict.LEFT
        sizes = [self._bytes(cell) for cell in f["figures"].split()[-4:-1]]
        self._foreign = 0
        row = {"device": f["device"], "mount": f["mount"]}
        names = ("size_bytes", "used_bytes", "free_bytes")
        self.emit("filesystem", line, row | dict(zip(names, sizes, strict=True)))
        return None

    def _bytes(self, cell: str) -> int | None:
        found = _FIGURE.fullmatch(cell)
        value = number(found.group(1).replace(",", ".")) if found else None
        if found is None or value is None:
            return None
        unit = _UNITS.get(found.group(2))
        return round(value * (unit if unit else self._block if self.open else 1024))

    def on_mount(self, f: Fields, line: Line) -> Verdict | None:
        options = f.get("options", "").strip("()")
        found = _SIZE.search(options)
        size = None
        if found and found.group(2) != "%":
            size = int(found.group(1)) * _UNITS.get(found.group(2).upper(), 1)
        row = {"device": f["device"], "mount": f["mount"], "size_bytes": size, "options": options or None}
        self.emit("filesystem", line, row)
        return None


_LITERALS = ("Mounted on", "/dev/shm", " type tmpfs ")
FORMAT = Format(
    name="filesystem",
    grammar="filesystem",
    literals=_LITERALS,
    session=FilesystemSession,
    title="mounted file systems (df, mount)",
    command="df -h; df -h /dev/shm; mount",
    versions="coreutils 8 and 9",
    weak_literals=frozenset(_LITERALS),
)
