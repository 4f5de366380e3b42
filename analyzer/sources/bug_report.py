"""``nvidia-bug-report.log``: its sections, so that no block of one reaches into the next and no dump is read as text.

    ____________________________________________

    /usr/bin/nvidia-smi --query

    ==============NVSMI LOG==============
    ...
    ____________________________________________

    Scanning kernel log files for NVIDIA kernel messages:

      journalctl -b -1:

A line of underscores, a command in a line of its own, ``*** /path`` and the name of a log start a section. The header
names the host. Base64 (nvidia-debugdump, acpidump and other binary files) is left out and said so; the kernel's
messages of earlier boots are marked. Seen: nvidia-bug-report.sh of drivers 470 to 580.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.sources.text import Block

_HEAD = b"Start of NVIDIA bug report log file"
_END = b"End of NVIDIA bug report log file"
_HEAD_BYTES = 8192
_TAIL_BYTES = 4096
_UNAME = re.compile(rb"^uname: Linux ([\w.-]{1,100}) ", re.MULTILINE)
_BORDER = re.compile(
    rb"^(?:(?P<rule>_{40,})|(?P<file>\*\*\* /[^\n]{1,300})"
    rb"|(?P<command>/(?:usr/)?(?:local/)?s?bin/[\w.-]+(?: [^\n]{1,300})?)|(?P<base64>base64 \"[^\n]{1,300})"
    rb"|  (?:journalctl -b -?(?P<boot>\d{1,4})[^\n]{0,80}|(?P<log>/var/log/[^\n]{1,200}))"
    rb"|(?P<dmesg>dmesg:))[ \t\r]*$",
    re.MULTILINE,
)
_DUMP = re.compile(rb"(?:[A-Za-z0-9+/]{60,76}\r?\n){3}")
_SEARCHED = 4096


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a section: its lines, whether it starts one, and the boots since its kernel messages.

    ``title`` is the command or file that the bundle names; ``dump`` is true for base64, which is not to be read.
    """

    block: Block
    starts: bool
    title: str
    dump: bool
    boots_ago: int | None


class BugReport:
    """The sections of one bug report, block by block."""

    def __init__(self, head: bytes) -> None:
        found = _UNAME.search(head[:_HEAD_BYTES])
        self.host = found.group(1).decode().partition(".")[0] if found else None
        self.complete = False
        self._title = ""
        self._dump = False
        self._boots_ago: int | None = None

    @staticmethod
    def accepts(head: bytes) -> bool:
        """Whether the first bytes of an input are those of a bug report."""
        return _HEAD in head[:_HEAD_BYTES]

    def sections(self, block: Block) -> Iterator[Section]:
        """The pieces of a block in order; together they are the block."""
        data, start, line = block.data, 0, block.first_line
        starts = False
        for border in _BORDER.finditer(data):
            if border.start() > start:
                yield self._piece(data[start : border.start()], line, starts)
                line += data.count(b"\n", start, border.start())
                start = border.start()
            starts = self._enter(border) or (starts and start == border.start())
        yield self._piece(data[start:], line, starts)
        self.complete = self.complete or _END in data[-_TAIL_BYTES:]

    def _enter(self, border: re.Match[bytes]) -> bool:
        """Takes the facts of a border; inside a dump only a line of underscores is one."""
        kind = border.lastgroup
        if kind == "rule":
            self._title, self._dump, self._boots_ago = "", False, None
            return True
        if self._dump:
            return False
        self._title = border.group().decode("utf-8", "replace").strip(" *:\r")
        self._dump = kind == "base64"
        boot = border.group("boot")
        self._boots_ago = int(boot) if boot else 0 if kind == "dmesg" else None
        return True

    def _piece(self, data: bytes, line: int, starts: bool) -> Section:
        self._dump = self._dump or _DUMP.search(data[:_SEARCHED]) is not None
        return Section(Block(data, line), starts, self._title, self._dump, self._boots_ago)


def about_dump(title: str) -> str:
    """What the report says of a dump that was left out."""
    if "debugdump" in title:
        return f"{title}: internal state of the driver that only NVIDIA can read, left out"
    return f"{title or 'binary file'}: base64, left out"
