"""Limits of processes and control groups, and how much of them is used; how long a command took.

    $ ulimit -n
    1024
    open files                      (-n) 1024
    Max open files            1024                 524288               files
    $ ls /proc/311/fd | wc -l
    $ cat /sys/fs/cgroup/cpu.stat
    nr_throttled 101932
    c 195:* rw
    real	0m31.402s

Seen: bash 4 and 5, kernels 3.10 to 6.12, control groups 1 and 2. Memory comes in KiB from ulimit and in bytes from
/proc; both become bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 2
_LETTERS = {"n": "nofile", "l": "memlock", "u": "nproc", "s": "stack", "c": "core", "v": "as", "d": "data", "m": "rss"}
_NAMES = {
    **{"open files": "nofile", "max locked memory": "memlock", "locked memory": "memlock", "stack size": "stack"},
    **{"max user processes": "nproc", "processes": "nproc", "core file size": "core", "virtual memory": "as"},
    **{"address space": "as", "data seg size": "data", "data size": "data"},
}
_KIB = frozenset({"memlock", "stack", "as", "data", "rss"})
_QUOTA = {
    "cpu.max": ("cpu.max", ("quota", "period")),
    "cpu.cfs_quota_us": ("cpu.max", ("quota",)),
    "cpu.cfs_period_us": ("cpu.max", ("period",)),
}
_OPTION = re.compile(r"-([HS]*)([nlsucvdm])\b")


class HostLimitsSession(Session):
    """A bare number belongs to the command before it; rows that name themselves need no command."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._wants: tuple[str, str, int | None] | None = None
        self._pid: int | None = None
        self._file = ""
        self._command: str | None = None
        self._times: dict[str, float] = {}
        self._foreign = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.UNREAD

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE and not self._command else Verdict.LEFT

    def close(self) -> None:
        """Forgets the command."""
        self._wants, self._pid, self._file, self._command, self._times = None, None, "", None, {}
        super().close()

    def _begin(self) -> None:
        self.close()
        self._foreign = 0
        self.open = True

    def _limit(self, line: Line, name: str, soft: str, hard: str | None = None, *, kib: bool) -> None:
        scale = 1024 if kib and name in _KIB else 1
        given = [None if text is None else integer(text) for text in (soft, hard)]
        low, high = (None if value is None else value * scale for value in given)
        self.emit("limit_value", line, {"name": name, "soft": low, "hard": high, "pid": self._pid})

    def on_ulimit_command(self, f: Fields, line: Line) -> None:
        self._begin()
        option = _OPTION.search(f.get("options", "-f"))
        if option and option.group(2) in _LETTERS:
            self._wants = ("hard" if "H" in option.group(1) else "limit", _LETTERS[option.group(2)], None)

    def on_ulimit_row(self, f: Fields, line: Line) -> None:
        name = _NAMES.get(line.text.partition("(")[0].strip())
        if name:
            self._limit(line, name, f["value"], kib=True)
        self._foreign = 0

    def on_proc_limits_command(self, f: Fields, line: Line) -> None:
        self._begin()
        self._pid = int(f["pid"])

    def on_proc_limit(self, f: Fields, line: Line) -> None:
        words = line.text.strip().removeprefix("Max").split(f["soft"])[0].strip()
        name = _NAMES.get(words)
        if name:
            self._limit(line, name, f["soft"], f["hard"], kib=False)
        self._foreign = 0

    def on_count_command(self, f: Fields, line: Line) -> None:
        self._begin()
        self._wants = ("used", "nofile", int(f["pid"]))

    def on_cat_command(self, f: Fields, line: Line) -> None:
        self._begin()
        self._file = f["path"].rpartition("/")[2]

    def on_number(self, f: Fields, line: Line) -> Verdict | None:
        return self._answer(f["number"], line)

    def on_words(self, f: Fields, line: Line) -> Verdict | None:
        return self._answer(f["words"].strip(), line)

    def _answer(self, text: str, line: Line) -> Verdict | None:
        wants, self._wants = self._wants, None
        if wants is not None:
            what, name, pid = wants
            if what == "used":
                self.emit("limit_value", line, {"name": name, "used": integer(text), "pid": pid})
            elif what == "limit":
                self._limit(line, name, text, kib=True)
            return None
        if not self._file:
            return self.foreign(line) if self.open else Verdict.LEFT
        self._file_figures(line, "cpu.max" if len(text.split()) == 2 else self._file, text)
        return None

    def _file_figures(self, line: Line, file: str, text: str) -> None:
        """The content of a file that holds figures without names; the first control groups split cpu.max in two."""
        file, names = _QUOTA.get(file, (file, (file,)))
        for name, word in zip(names, text.split(), strict=False):
            self._figure(line, file, name, word)

    def on_inline(self, f: Fields, line: Line) -> None:
        self._file_figures(line, line.text.partition(":")[0].rpartition("/")[2], f["words"].strip())

    def on_metric(self, f: Fields, line: Line) -> None:
        self._figure(line, "cpu.stat", "nr_throttled" if "throttled" in line.text[:40] else "nr_periods", f["number"])

    def _figure(self, line: Line, file: str, name: str, text: str) -> None:
        value = integer(text)
        self._foreign = 0
        row = {"file": file, "name": name, "value": None if value is None else float(value), "text": text}
        self.emit("cgroup_value", line, row)

    def on_cgroup_pair(self, f: Fields, line: Line) -> Verdict | None:
        name, number = f["counter"], f["number"]
        throttle = name.startswith(("nr_", "throttled"))
        if not throttle and self._file not in (
            "memory.events",
            "memory.oom_control",
            "memory.events.local",
            "cpu.stat",
        ):
            return self.foreign(line) if self.open else Verdict.LEFT
        if name == "throttled_time":
            name, number = "throttled_usec", str(int(number) // 1000)
        self._figure(line, "cpu.stat" if throttle else self._file, name, number)
        return None

    def on_device_rule(self, f: Fields, line: Line) -> None:
        self._foreign = 0
        row = {"file": "devices.list", "name": line.text.rpartition(" ")[0].strip() if "access" in f else line.text}
        self.emit("cgroup_value", line, row | {"text": f.get("access")})

    def on_time_command(self, f: Fields, line: Line) -> None:
        self._begin()
        self._command = f["rest"].strip()

    def on_time(self, f: Fields, line: Line) -> None:
        word = line.text.split()[0]
        if word == "real":
            self._times = {}
        self._times[word] = int(f["minutes"]) * 60 + float(f["seconds"])
        if word == "sys" and "real" in self._times:
            times = {f"{name}_s": seconds for name, seconds in self._times.items()}
            self.emit("command_time", line, times | {"command": self._command})
            self.close()

    def on_gnu_time(self, f: Fields, line: Line) -> Verdict | None:
        found = re.search(r"([0-9.]+)user ([0-9.]+)system (?:([0-9]+):)?([0-9.]+)elapsed", line.text)
        if found is None:
            return Verdict.LEFT
        user, system, minutes, seconds = found.groups()
        real = 60 * int(minutes or 0) + float(seconds)
        times = {"real_s": real, "user_s": float(user), "sys_s": float(system)}
        self.emit("command_time", line, times | {"command": self._command})
        self.close()
        return None

    def on_prompt(self, f: Fields, line: Line) -> Verdict:
        return Verdict.ENDED if self.open else Verdict.LEFT


_LITERALS = (
    "$ ulimit",
    "# ulimit",
    "open files ",
    "max locked memory ",
    "max user processes ",
    "Max open files",
    "Max locked memory",
    "Max processes",
    "/fd | wc -l",
    "/fd/ | wc -l",
    "cat /proc/",
    "/sys/fs/cgroup",
    "cat cpu.",
    "cat memory.",
    "container_cpu_cfs_",
    "nr_periods ",
    "nr_throttled ",
    "throttled_usec ",
    "throttled_time ",
    "c 195:",
    "$ time ",
    "# time ",
    "real\t",
    "user\t",
    "sys\t",
    "%CPU (",
)
FORMAT = Format(
    name="host-limits",
    grammar="host_limits",
    literals=_LITERALS,
    session=HostLimitsSession,
    title="limits of processes and control groups",
    command="ulimit -a; cat /proc/PID/limits; cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/memory.events",
    versions="bash 4 and 5, kernels 3.10 to 6.12",
    weak_literals=frozenset(_LITERALS),
)
