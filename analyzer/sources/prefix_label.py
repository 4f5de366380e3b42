"""What one launcher label says about its writer: rank, local rank, host, process id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from analyzer.sources.names import HOST_WORD

_NUMBER = re.compile(r"(\d+)\]")
_PID = re.compile(r"pid=(\d+)")
_IP = re.compile(r"ip=([^)]+)")

_HOST = re.compile(HOST_WORD + r"(?:\.[\w.-]{1,80})?").fullmatch
_COMPOSE = re.compile(r"[a-z0-9][a-z0-9_.-]*[-_]\d{1,5}").fullmatch
_NODE = re.compile(r"[a-z]*(?:node|host|hgx|dgx)(?:-?\d{1,6})+").fullmatch
_PLAUSIBLE = re.compile(r"[a-z](?=[a-z0-9.]*[-\d])[a-z0-9.-]*|localhost").fullmatch

# What may stand behind a host name that has no telling form: another launcher's label, a date or an NCCL header.
_KNOWN_NEXT = re.compile(
    r"\[(?:rank|default|host)?\d{1,7}\]:|\[[\w.@-]{1,80},\d{1,7}\]<|\((?:[^()\[\]]{1,100} )?pid=\d"
    r"|\d{1,7}: |\[?\d{4}-\d\d-\d\d[T ]\d\d:|[\w.-]{1,80}:\d{1,10}:\d{1,10} \["
).match
_KERNEL_NEXT = re.compile(
    r"\[ {0,12}\d{1,12}\.\d{6}\] |NVRM: |nvidia|pcieport |mlx5_|mce: |EDAC |Out of memory|oom"
).match
# nccl-tests prints the host itself: "vm-2: Test NCCL failure common.cu:499 ..." belongs to its parser.
_OWN_HOST = ("Test NCCL failure", "Test CUDA failure")


@dataclass(frozen=True, slots=True)
class Facts:
    """Who wrote a line, as far as labels say."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None

    def with_inner(self, inner: Facts) -> Facts:
        """These facts and those of a label further in, which is nearer to the process and wins.

        A local rank takes the outer rank away: ``0: [default3]:`` is task 0 of srun, which started eight ranks.
        """
        return Facts(
            rank=inner.rank if inner.rank is not None else None if inner.local_rank is not None else self.rank,
            local_rank=inner.local_rank if inner.local_rank is not None else self.local_rank,
            host=inner.host if inner.host is not None else self.host,
            pid=inner.pid if inner.pid is not None else self.pid,
        )


@lru_cache(maxsize=4096)
def label_facts(label: str) -> Facts:
    """The facts of a label that is one by its form."""
    if label.startswith("[pod/"):
        return Facts(host=label.split("/", 2)[1].rstrip("] "))
    if label.startswith("("):
        pid, ip = _PID.search(label), _IP.search(label)
        return Facts(pid=int(pid.group(1)) if pid else None, host=ip.group(1) if ip else None)
    if not label.startswith("["):
        return Facts(rank=int(label.strip(" :")))
    found = _NUMBER.search(label)
    number = int(found.group(1)) if found else None
    if label.startswith("[rank") or "]<" in label:
        return Facts(rank=number)
    return Facts(local_rank=number)


@lru_cache(maxsize=4096)
def writer_facts(host: str, pid: str | None) -> Facts:
    """The facts of ``host python3[123]: ``, as syslog writes it."""
    return Facts(host=host, pid=int(pid) if pid else None)


def word_facts(word: str, text: str, end: int) -> Facts | None:
    """The facts of ``node-a: `` or ``trainer-1  | ``, or None where the word is part of the text.

    ``end`` is where the word ends in ``text``: a name of no telling form counts only before something known.
    """
    facts, certain = _word_facts(word)
    if facts is None or text.startswith(_OWN_HOST, end):
        return None
    if certain:
        return facts
    follows = _KERNEL_NEXT if word == "kernel: " else _KNOWN_NEXT
    return facts if follows(text, end) else None


@lru_cache(maxsize=4096)
def _word_facts(word: str) -> tuple[Facts | None, bool]:
    """What a word could say, and whether its form alone settles it."""
    if word.endswith("| "):
        name = word[:-2].rstrip()
        if not _COMPOSE(name):
            return None, True
        return Facts(host=name if _NODE(name) else None), True
    name = word[:-2]
    if name == "kernel":
        return Facts(), False
    if _HOST(name):
        return Facts(host=name), True
    return (Facts(host=name), False) if _PLAUSIBLE(name) else (None, True)
