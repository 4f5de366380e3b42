"""Takes off what launchers, log collectors and the kernel put before a line, and keeps it as facts.

Seen: srun -l, mpirun and horovodrun tags, torchrun, Ray and vLLM, pdsh and DeepSpeed, docker compose, kubectl and
containerd, syslog and journald, dmesg in all its formats, /dev/kmsg, and time stamps of loggers. Shown here:

    0: [rank0]:[E314 03:12:11.482113907 ProcessGroupNCCL.cpp:616] ...   rank 0, text from "[E314" on
    Feb 01 14:25:31 gpu7 kernel: [82659.755847] NVRM: Xid ...           host gpu7, boot_s 82659.755847
    [1,3]<stdout>:node-a:25:25 [0] NCCL INFO ...                        rank 3

What each looks like stands in ``prefix_form``, what its label says in ``prefix_label``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from analyzer.sources.prefix_form import GATES
from analyzer.sources.prefix_label import Facts, label_facts, word_facts, writer_facts
from analyzer.sources.stamp import iso_seconds, named_seconds

_MOST = 8  # prefixes in a row; the longest seen in logs is four
_NOTHING_KNOWN = Facts()
_CALLER = re.compile(r"\[ {0,8}[TC]\d{1,10}\] ").match
_WRITER = re.compile(r"([\w.-]{1,100}) (?:kernel|[\w./@()-]{1,60}(?:\[(\d{1,10})\])?): ").match
_SURE_WRITER = re.compile(r"([\w.-]{1,100}) (?:kernel|[\w./@()-]{1,60}\[(\d{1,10})\]): ").match
_NO_HOST = frozenset("INFO WARN WARNING ERROR DEBUG CRITICAL FATAL TRACE NOTICE E W I D C F".split())
_CONTAINERD = ("stdout F ", "stderr F ", "stdout P ", "stderr P ")
_EPOCH_FROM = 1e9  # no machine has been up for thirty years: a bracketed number this large is a date (UCX)


class Prefixed(NamedTuple):
    """A line without its prefixes, and what they said.

    ``label`` is the launchers' own text without time stamps, the same for all lines of one writer in a file.
    ``at`` is in seconds since the epoch (UTC); when ``year_known`` is false it lies in 1970. ``boot_s`` is the
    kernel's clock in seconds since boot.
    """

    text: str
    label: str = ""
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    at: float | None = None
    boot_s: float | None = None
    year_known: bool = True


_NOTHING = tuple(Prefixed(""))[1:]
_plain = tuple.__new__  # what the constructor of a named tuple does, without its keyword handling


def split_prefix(text: str) -> Prefixed:
    """Takes all prefixes off ``text``; what is left is always an end piece of it, indentation included."""
    gate = GATES.get(text[:1])
    found = gate(text, 0) if gate is not None else None
    if found is None:
        return _plain(Prefixed, (text, *_NOTHING))
    state = _State(text)
    for _ in range(_MOST):
        kind = found.lastgroup
        assert kind is not None  # every branch is named
        if not _TAKE[kind](state, found):
            break
        gate = GATES.get(text[state.end : state.end + 1])
        found = gate(text, state.end) if gate is not None else None
        if found is None:
            break
    return state.result()


class _State:
    """The facts of one line while its prefixes come off."""

    __slots__ = ("_at", "_boot_s", "_facts", "_inner", "_label", "_text", "_year_known", "end")

    def __init__(self, text: str) -> None:
        self._text = text
        self.end = 0
        self._label = ""
        self._facts = _NOTHING_KNOWN
        self._inner = False  # past the label of a process: what follows is its own text
        self._at: float | None = None
        self._boot_s: float | None = None
        self._year_known = True

    def result(self) -> Prefixed:
        """What was found."""
        facts = self._facts
        text = self._text[self.end :] if self.end else self._text
        named = (facts.rank, facts.local_rank, facts.host, facts.pid)
        return _plain(Prefixed, (text, self._label, *named, self._at, self._boot_s, self._year_known))

    def iso(self, found: re.Match[str]) -> bool:
        """``2025-07-29T15:39:27.815Z ``, with host and program (journald) or stream (containerd) behind it."""
        stamp = found.group()
        self.end = found.end()
        self._date(iso_seconds(stamp.rstrip(": \t")), True)
        if stamp[10] == "T":
            if self._text.startswith(_CONTAINERD, self.end):
                self.end += len(_CONTAINERD[0])
            else:
                self._host_and_program(_SURE_WRITER(self._text, self.end))
        return True

    def bracket(self, found: re.Match[str]) -> bool:
        """A date in brackets (NCCL, slurmd, dmesg -T, fabric manager)."""
        stamp = found.group()
        self.end = found.end()
        if stamp[1].isdigit():
            self._date(iso_seconds(stamp.strip("[] ")), True)
        else:
            self._date(*named_seconds(stamp[1:]))
        self._skip_caller()
        return True

    def boot(self, found: re.Match[str]) -> bool:
        """``[  130.456250] ``: seconds since boot."""
        stamp = found.group()
        seconds = float(stamp[stamp.index("[") + 1 : -2])
        self.end = found.end()
        if seconds >= _EPOCH_FROM:
            self._date(seconds, True)
        elif self._boot_s is None:
            self._boot_s = seconds
        self._skip_caller()
        return True

    def kmsg(self, found: re.Match[str]) -> bool:
        """``6,3964,206764307,-;`` of /dev/kmsg: microseconds since boot."""
        self._boot_s = int(found.group().split(",", 3)[2]) / 1e6
        self.end = found.end()
        return True

    def syslog(self, found: re.Match[str]) -> bool:
        """``Feb 01 14:25:31 host kernel: ``: no year, no zone."""
        stamp = found.group()
        self.end = found.end()
        self._date(*named_seconds(stamp))
        self._host_and_program(_WRITER(self._text, self.end))
        return True

    def horovod(self, found: re.Match[str]) -> bool:
        """``Thu Jun 18 14:28:58 2020`` right before a tag of mpirun."""
        self.end = found.end()
        self._date(*named_seconds(found.group()))
        return True

    def level(self, found: re.Match[str]) -> bool:
        """``kern  :err   : `` and ``<4>``: facility and level of the kernel log."""
        self.end = found.end()
        return True

    def task(self, found: re.Match[str]) -> bool:
        """``12: `` of srun -l; only the outermost label can be one."""
        return not self._inner and self.label(found)

    def label(self, found: re.Match[str]) -> bool:
        """The label of a launcher."""
        head = found.group()
        self._add(label_facts(head), head)
        self._inner = self._inner or not head.startswith("[pod/")
        self.end = found.end()
        return True

    def word(self, found: re.Match[str]) -> bool:
        """``worker-0: `` of pdsh, ``trainer-1  | `` of docker compose; most words with a colon are neither."""
        if self._inner:
            return False
        facts = word_facts(found.group(), self._text, found.end())
        if facts is None:
            return False
        self._add(facts, found.group())
        self.end = found.end()
        return True

    def _add(self, facts: Facts, head: str) -> None:
        printed = head.strip()
        if self._label:
            self._label = f"{self._label} {printed}"
            self._facts = self._facts.with_inner(facts)
        else:
            self._label, self._facts = printed, facts

    def _date(self, at: float | None, year_known: bool) -> None:
        """The outermost stamp counts (collectors print the zone), unless it lacks the year."""
        if at is not None and (self._at is None or (year_known and not self._year_known)):
            self._at, self._year_known = at, year_known

    def _host_and_program(self, found: re.Match[str] | None) -> None:
        if found is None or found.group(1) in _NO_HOST:
            return
        self._add(writer_facts(*found.group(1, 2)), found.group())
        self._inner = True
        self.end = found.end()

    def _skip_caller(self) -> None:
        caller = _CALLER(self._text, self.end)
        if caller is not None:
            self.end = caller.end()


_TAKE: Final = {
    kind: getattr(_State, kind)
    for kind in ("iso", "task", "kmsg", "bracket", "boot", "label", "syslog", "horovod", "level", "word")
}
