"""Free GPU memory as programs print it, with what they were doing: a graph being captured, a length, a shape.

capture bs=256 free 1893 MiB
prefill chunk q_len=2048 cached_len=20480 free 857.0 MiB
mem_get_info (5368709120, 85899345920)
step 20 seq_len=1536 gpu free memory: 11.2 GiB
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict
from analyzer.parsers.values import Size, size

Fields = Mapping[str, str]

_MAYBE = re.compile(r"(?:[Ff]ree|[Aa]vail|mem_get_info)[\w ()]{0,24}[^\w]{0,6}[0-9]")
_FIGURE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*((?:[KMGT]i?B|bytes|B|M|G))?\s*$")
_NUMBERS = re.compile(r"[0-9]+")
_INSIDE = re.compile(r"\(([KMG]i?B)\)")
_COUNT_NAME = re.compile(r"\w+")
_ELSEWHERE = (
    "is free. ",
    "GiB free;",
    "MiB free;",
    "NCCL ",
    "host mem",
    "CPU",
    "disk",
    "Swap",
    "swap",
    "buff/cache",
    "bytes free,",
    "graph begin",
    "avail mem",
)
_LEAST_BYTES = 1 << 20
_LONGEST = 600
_MOST = 20_000
_MOST_TEXT = 60


class FreeSession(Session):
    """One row for each line; a flood is cut."""

    _rows = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        """Lines of errors, hosts and file systems speak of other memory."""
        text = line.text
        if len(text) > _LONGEST or self._rows >= _MOST or not _MAYBE.search(text):
            return Verdict.LEFT
        if any(words in text for words in _ELSEWHERE):
            return Verdict.LEFT
        return super().offer(line, called)

    def on_free(self, f: Fields, line: Line) -> Verdict | None:
        if "free" not in f:
            return Verdict.LEFT
        free = _figure(f["free"])
        total = _figure(f["total"]) if "total" in f else None
        if free is None or (total is not None and total.bytes < free.bytes):
            return Verdict.LEFT
        sizes = _sizes(line.text)
        kind = "capture" if "capture" in f else "shape" if sizes else "plain"
        self._rows += 1
        self.emit(
            "free_memory",
            line,
            {
                "pid": line.prefix_pid,
                "kind": kind,
                "size": sizes,
                "free_bytes": free.bytes,
                "total_bytes": total.bytes if total else None,
                "error_bytes": free.error,
            },
        )
        return None


_SIZED = re.compile(
    r"\b(bs|batch_size|batch|num_tokens|tokens|cached_len|seq_?len|q_len|kv_len|max_len|length|len|shape|bucket|"
    r"resolution|size)\s*[:=]\s*(\(?[0-9]+(?:[x, ]{1,2}[0-9]+){0,5}\)?)"
)


def _sizes(text: str) -> str | None:
    """The lengths and shapes that a line names, as one text."""
    found = [f"{name}={value.strip('() ')}" for name, value in _SIZED.findall(text)]
    return " ".join(found)[:_MOST_TEXT] or None


def _figure(text: str) -> Size | None:
    """A label with its figure; a bare number counts where it can only be bytes."""
    match = _FIGURE.search(text)
    if match is None:
        return None
    number, unit = match.groups()
    inside = _INSIDE.search(text)
    unit = unit or (inside.group(1) if inside else None)
    if unit is None:
        return Size(int(number), 0) if "." not in number and int(number) >= _LEAST_BYTES else None
    return size(f"{number} {unit}")


_LITERALS = (" free ", " free: ", "free=", "free_mem", "mem_free", "ree memory", "avail_mem", "mem_get_info", "ree mem")
FORMAT = Format(
    name="free-memory",
    grammar="free_memory",
    literals=_LITERALS,
    session=FreeSession,
    title="free GPU memory as a program prints it",
    command="print(torch.cuda.mem_get_info()) in the program",
    versions="programs that print torch.cuda.mem_get_info()",
    weak_literals=frozenset(_LITERALS),
    blocks=False,
)
