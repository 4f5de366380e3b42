"""The last plain lines of an input: they tell whether a writer was done, at work, or silent when others waited."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator

from analyzer.sources import Block, Prefixed, clean, split_prefix

_BYTES = 64 << 10
_LINES = 400
_KEPT = 3
_WIDTH = 200
_SURE_LABELS = ("[rank", "(", "[default")
_NOISE = re.compile(
    r"\[[EWFI][0-9 ]|[EWI][0-9]{4} |NCCL (?:INFO|WARN)|Traceback|\s*File \"|\s*raise |\s*at |what\(\)|terminate called|"
    r"frame #|[\w.]*(?:Error|Exception)\b|WARNING|\s*(?:frame|time|host|rank|exitcode|error_file|traceback) +:|"
    r"[=*~^-]{4,}|\s*[\^~]+$|srun: |slurmstepd: "
)


def last_lines(block: Block) -> Iterator[tuple[int, Prefixed]]:
    """The last lines of each label of the last block that are no error lines, with their numbers, oldest first."""
    data = block.data
    start = max(0, len(data) - _BYTES)
    if start:
        start = data.find(b"\n", start) + 1
    number = block.first_line + data.count(b"\n", 0, start)
    lines = data[start:].split(b"\n")
    skipped = max(0, len(lines) - _LINES)
    found: dict[str, deque[tuple[int, Prefixed]]] = defaultdict(lambda: deque(maxlen=_KEPT))
    for place, raw in enumerate(lines[skipped:], number + skipped):
        for text in clean(raw):
            prefixed = split_prefix(text)
            if _is_plain(prefixed.text):
                found[prefixed.label].append((place, prefixed))
    for entries in found.values():
        yield from entries


def _is_plain(text: str) -> bool:
    """Whether a line is no error, no line of a traceback (indented) and no line of NCCL."""
    if not text.strip() or text.startswith(("    ", "\t")):
        return False
    return not _NOISE.match(text) and "NCCL " not in text[:120]


def sure_rank(prefixed: Prefixed) -> int | None:
    """The rank that a label states, where its form alone makes it a rank and no list number."""
    sure = prefixed.label.startswith(_SURE_LABELS) or "]<std" in prefixed.label
    return prefixed.rank if sure else None


def shortened(text: str) -> str:
    """A line as the evidence keeps it."""
    return text.strip()[:_WIDTH]
