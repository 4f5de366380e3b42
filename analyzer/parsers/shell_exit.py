"""How a program ended, as the shell or the container launcher around it says it.

    ./run.sh: line 29: 2976792 Killed                  python train.py
    [1]+  Segmentation fault      (core dumped) python train.py
    Killed
    command terminated with exit code 137

Seen: bash 4 and 5, dash, kubectl, docker compose. Shells print 128 plus the signal as exit code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict
from analyzer.parsers.values import integer

Fields = Mapping[str, str]

_SIGNALS = (
    ("Killed", 9),
    ("Aborted", 6),
    ("Segmentation fault", 11),
    ("Bus error", 7),
    ("Terminated", 15),
    ("Illegal instruction", 4),
    ("Floating point exception", 8),
)
_PROGRAM = re.compile(r"\S+\.(?:py|sh)\b|\S+")


class ShellSession(Session):
    """Each line is a statement by itself."""

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def _send(self, line: Line, f: Fields) -> None:
        signal = next(number for words, number in _SIGNALS if f["end"].startswith(words))
        command = f.get("command", "")
        program = re.search(r"\S+\.py\b", command) or _PROGRAM.search(command)
        values = {"pid": integer(f.get("pid")), "code": -signal, "signal": signal, "says": "shell"}
        self.emit("exit_status", line, values | {"program": program.group() if program else None})

    def on_script(self, f: Fields, line: Line) -> None:
        self._send(line, f)

    def on_job(self, f: Fields, line: Line) -> None:
        self._send(line, f)

    def on_bare(self, f: Fields, line: Line) -> None:
        self._send(line, f)

    def on_code(self, f: Fields, line: Line) -> None:
        code = int(f["code"])
        self.emit("exit_status", line, {"code": code, "signal": code - 128, "says": "shell"})


_WIDE = (
    "Killed         ",
    "Aborted        ",
    "Segmentation fault  ",
    "Bus error      ",
    "Terminated     ",
)
FORMAT = Format(
    name="shell-exit",
    grammar="shell_exit",
    literals=(
        *_WIDE,
        "Killed",
        "Aborted (core dumped)",
        "Segmentation fault (core dumped)",
        "Bus error (core dumped)",
        "terminated with exit code 1",
        "exited with code 1",
    ),
    session=ShellSession,
    title="how a program ended, as its shell says it",
    command="the terminal or job output around the program",
    versions="bash 4 and 5, dash, kubectl, docker compose",
    weak_literals=frozenset(
        {
            *_WIDE,
            "Killed",
            "Aborted (core dumped)",
            "Segmentation fault (core dumped)",
            "Bus error (core dumped)",
            "terminated with exit code 1",
            "exited with code 1",
        }
    ),
    blocks=False,
)
