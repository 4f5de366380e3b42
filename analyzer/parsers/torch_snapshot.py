"""Memory snapshot of PyTorch 2.0 to 2.11: the pickle of ``torch.cuda.memory._dump_snapshot('snapshot.pickle')``.

A dictionary with ``segments`` (what the allocator got from the driver), each with its ``blocks`` (allocated, waiting
for a free, or inactive) and, where the history was recorded, the frames that allocated each block.

A pickle can run any code while it is read. This one is read as plain containers, texts and numbers only; a pickle that
asks for anything else is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeGuard

from analyzer.parsers.base import Document, DocumentError, Values
from analyzer.parsers.plain_pickle import PickleRefused, load_plain

Emit = Callable[[str, Values], None]

_SITES = 12
_FRAMES = 3
_LIBRARY = ("site-packages/", "dist-packages/", "/lib/python")
_PROTOCOL = 0x80


def accepts(head: bytes) -> bool:
    """Whether the input is a pickle (protocol 2 and later)."""
    return len(head) > 2 and head[0] == _PROTOCOL and 2 <= head[1] <= 5


def read(data: bytes, emit: Emit) -> None:
    """Emits the figures of each card and the largest places in the code."""
    try:
        snapshot = load_plain(data)
    except PickleRefused as error:
        raise DocumentError(str(error)) from error
    segments = snapshot.get("segments") if isinstance(snapshot, dict) else snapshot
    if not _is_segments(segments):
        raise DocumentError("a pickle of plain values, but no memory snapshot")
    by_gpu: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for segment in segments:
        by_gpu[_number(segment.get("device"))].append(segment)
    for gpu, owned in sorted(by_gpu.items()):
        for metric, amount in _totals(owned).items():
            values = {"gpu": gpu, "metric": metric, "pool": "all", "current": amount, "error_bytes": 0}
            emit("memory_summary", values)
        for place, (amount, blocks) in _largest(owned):
            emit("alloc_site", {"gpu": gpu, "bytes": amount, "blocks": blocks, "place": place})


def _is_segments(segments: object) -> TypeGuard[list[dict[str, Any]]]:
    return (
        isinstance(segments, list)
        and all(isinstance(s, dict) and isinstance(s.get("blocks", []), list) for s in segments)
        and (not segments or "total_size" in segments[0])
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else 0


def _totals(segments: list[dict[str, Any]]) -> dict[str, int]:
    """Non-releasable memory lies in segments that are partly in use."""
    totals = dict.fromkeys(("allocated", "active", "reserved", "non_releasable"), 0)
    for segment in segments:
        size, live = _number(segment.get("total_size")), _number(segment.get("allocated_size"))
        totals["reserved"] += size
        totals["allocated"] += live
        active = _number(segment.get("active_size"))
        totals["active"] += active
        totals["non_releasable"] += size - active if 0 < active < size else 0
    return totals | {"reserved_segments": len(segments)}


def _largest(segments: list[dict[str, Any]]) -> list[tuple[str, tuple[int, int]]]:
    sites: dict[str, tuple[int, int]] = {}
    for segment in segments:
        for block in segment.get("blocks", []):
            if isinstance(block, dict) and str(block.get("state", "")).startswith("active_allocated"):
                place = _place(block)
                if place:
                    amount, blocks = sites.get(place, (0, 0))
                    sites[place] = (amount + _number(block.get("size")), blocks + 1)
    return sorted(sites.items(), key=lambda item: (-item[1][0], item[0]))[:_SITES]


def _place(block: dict[str, Any]) -> str:
    """The innermost Python frames of the program; those of libraries count only where there are no others."""
    frames = block.get("frames")
    history = block.get("history")
    if not isinstance(frames, list) and isinstance(history, list) and history and isinstance(history[0], dict):
        frames = history[0].get("frames")
    if not isinstance(frames, list):
        return ""
    named = [frame for frame in frames if isinstance(frame, dict) and str(frame.get("filename", "")).endswith(".py")]
    own = [f for f in named if not any(part in str(f["filename"]) for part in _LIBRARY)] or named
    return " < ".join(
        f"{str(f.get('filename', '')).rpartition('/')[2]}:{f.get('line', '?')} {f.get('name', '')}".strip()
        for f in own[:_FRAMES]
    )


DOCUMENT = Document(
    name="torch-memory-snapshot",
    accepts=accepts,
    read=read,
    title="memory snapshot of PyTorch",
    command="torch.cuda.memory._record_memory_history(); torch.cuda.memory._dump_snapshot('snapshot.pickle')",
    versions="PyTorch 2.0 to 2.11",
)
