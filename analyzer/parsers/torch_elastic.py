"""How processes ended, as launchers say it: torchrun (PyTorch 1.9 to 2.11), DeepSpeed, and workers of DataLoader.

    E0314 03:12:12.616000 41720 site-packages/.../api.py:869] failed (exitcode: -6) local_rank: 1 (pid: 41781) of ...
    W0314 03:12:12.611000 41720 site-packages/.../api.py:897] Sending process 41782 closing signal SIGTERM
    Root Cause (first observed failure):
    [0]:
      time      : 2025-03-14_03:12:12
      host      : node-a
      rank      : 1 (local_rank: 1)
      exitcode  : -6 (pid: 41781)
    [launch.py:320:sigkill_handler] ['python3', '-u', 'train.py', '--local_rank=7'] exits with return code = -9
    RuntimeError: DataLoader worker (pid 71384) is killed by signal: Killed.

``first`` is true for the entry that torchrun calls the root cause, which has a resolution of one second.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from datetime import datetime

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.torch_head import glog_seconds
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_SIGNAL = re.compile(r"Signal ([0-9]+) ")
_ARGUMENT = re.compile(r"'([^']*)'")
_LOCAL_RANK = re.compile(r"--local[_-]rank[= ](?:', ')?([0-9]+)")
_SHELL = frozenset({130, 131, 132, 133, 134, 135, 136, 137, 139, 143})  # 128 and the signal
SIGNALS = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGTRAP": 5,
    "SIGABRT": 6,
    "SIGBUS": 7,
    "SIGFPE": 8,
    "SIGKILL": 9,
    "SIGUSR1": 10,
    "SIGSEGV": 11,
    "SIGUSR2": 12,
    "SIGTERM": 15,
}
_CAUSES = {
    "Killed": 9,
    "Bus error": 7,
    "Segmentation fault": 11,
    "Aborted": 6,
    "Terminated": 15,
    "Illegal instruction": 4,
    "Floating point exception": 8,
}


class ElasticSession(Session):
    """Reads the summary of torchrun entry by entry, and the single lines of launchers."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._entry: tuple[Line, dict[str, object]] | None = None
        self._program: str | None = None
        self._root = False

    def close(self) -> None:
        """Sends the entry that was cut."""
        self._finish()
        self._program, self._root = None, False
        super().close()

    def _finish(self) -> None:
        if self._entry is not None and len(self._entry[1]) > 1:
            line, values = self._entry
            self._send(line, "torchelastic", values | {"program": self._program, "first": self._root})
        self._entry = None

    def _send(self, line: Line, says: str, values: dict[str, object]) -> None:
        code = values.get("code")
        if isinstance(code, int) and values.get("signal") is None:
            values["signal"] = -code if code < 0 else code - 128 if code in _SHELL else None
        if says != "dataloader":
            values.setdefault("rank", None)  # the label of the line is that of the launcher
        self.emit("exit_status", line, values | {"says": says})

    def on_child(self, f: Fields, line: Line) -> None:
        self.close()
        self.open = True

    def on_frame(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._finish()
        if self._root and "=" in line.text:
            self.close()
        return None

    def on_failed(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open or self._program is not None:
            return Verdict.LEFT
        self._program = f["failed_program"].removesuffix(" FAILED")
        return None

    def on_failures(self, f: Fields, line: Line) -> None:
        self.open = True

    def on_root(self, f: Fields, line: Line) -> None:
        self._finish()
        self.open = self._root = True

    def on_none(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_index(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        self._finish()
        self._entry = (line, {})
        return None

    def _add(self, line: Line, values: dict[str, object]) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        if self._entry is None:
            self._entry = (line, {})
        self._entry[1].update(values)
        return None

    def on_time(self, f: Fields, line: Line) -> Verdict | None:
        try:
            at = float(timegm(datetime.strptime(f["text"].strip(), "%Y-%m-%d_%H:%M:%S").timetuple()))
        except ValueError:
            return self._add(line, {})
        return self._add(line, {"at": at})

    def on_host(self, f: Fields, line: Line) -> Verdict | None:
        host = f["text"].strip()
        short = host.split(".", 1)[0]
        return self._add(line, {"host": host if short.isdigit() else short})

    def on_rank(self, f: Fields, line: Line) -> Verdict | None:
        return self._add(line, {"rank": int(f["rank"]), "local_rank": integer(f.get("local_rank"))})

    def on_exitcode(self, f: Fields, line: Line) -> Verdict | None:
        return self._add(line, {"code": int(f["code"]), "pid": integer(f.get("pid"))})

    def on_error_file(self, f: Fields, line: Line) -> Verdict | None:
        return self._add(line, {})

    def on_traceback(self, f: Fields, line: Line) -> Verdict | None:
        signal = _SIGNAL.match(f["text"])
        return self._add(line, {"signal": int(signal.group(1))} if signal else {})

    def on_exit(self, f: Fields, line: Line) -> None:
        values = {"local_rank": int(f["local_rank"]), "pid": int(f["pid"]), "code": int(f["code"])}
        self._send(line, "torchelastic", _at(f, line) | values | {"program": f.get("program")})

    def on_closing(self, f: Fields, line: Line) -> None:
        self._send(line, "torchelastic", _at(f, line) | {"pid": int(f["pid"]), "signal": _number(f["signal"])})

    def on_forced(self, f: Fields, line: Line) -> None:
        self.on_closing(f, line)

    def on_death(self, f: Fields, line: Line) -> None:
        signal = _number(f["signal"]) if "signal" in f else int(f["number"])
        self._send(line, "torchelastic", _at(f, line) | {"pid": integer(f.get("pid")), "signal": signal})

    def on_killing(self, f: Fields, line: Line) -> None:
        self._send(line, "launcher", {"pid": int(f["pid"]), "signal": SIGNALS["SIGTERM"]})

    def on_return(self, f: Fields, line: Line) -> None:
        self._send(line, "launcher", _command(f["command"]) | {"code": int(f["code"])})

    def on_called(self, f: Fields, line: Line) -> Verdict | None:
        if "python" not in f["command"] and ".py" not in f["command"]:
            return Verdict.LEFT
        code = -int(f["number"]) if "signal" in f else int(f["code"])
        self._send(line, "launcher", _command(f["command"]) | {"code": code})
        return None

    def on_worker(self, f: Fields, line: Line) -> None:
        signal = _CAUSES.get(f["cause"].partition(".")[0].strip()) if "cause" in f else None
        for pid in f["pids"].split(","):
            self._send(line, "dataloader", {"pid": int(pid), "signal": signal})

    def on_shm(self, f: Fields, line: Line) -> None:
        self._send(line, "dataloader", {"signal": SIGNALS["SIGBUS"]})


def _number(signal: str) -> int | None:
    return SIGNALS.get(signal.removeprefix("Signals."))


def _at(f: Fields, line: Line) -> dict[str, object]:
    """The time in the head of the launcher's line, where no prefix gave a better one."""
    return {} if line.at is not None or "head" not in f else {"at": glog_seconds(f["head"])}


def _command(text: str) -> dict[str, object]:
    """Program and local rank of a command as Python prints its list."""
    parts = _ARGUMENT.findall(text.strip("'") + "'")
    rank = _LOCAL_RANK.search(text)
    program = next((part for part in parts if part.endswith(".py")), parts[0] if parts else None)
    return {"program": program, "local_rank": int(rank.group(1)) if rank else None}


_WEAK = ("ChildFailedError", "Failures:", "death signal", "got signal: ", "returned non-zero exit", "died with <")
FORMAT = Format(
    name="torch-elastic",
    grammar="torch_elastic",
    literals=(
        "Root Cause (first observed failure)",
        "failed (exitcode: ",
        " closing signal SIG",
        "Unable to shutdown process ",
        "Killing subprocess ",
        "] exits with return code = ",
        "DataLoader worker (pid",
        "Unexpected bus error encountered in worker",
        *_WEAK,
    ),
    session=ElasticSession,
    title="exit codes as launchers report them",
    command="the output of torchrun",
    versions="PyTorch 1.9 to 2.11, DeepSpeed 0.5 to 0.16",
    weak_literals=frozenset(_WEAK),
)
