"""The figures in the memory lines of serving engines: one reader for each kind of line (see ``engine_memory``)."""

from __future__ import annotations

import re
from collections.abc import Callable

from analyzer.parsers.values import Size, size

Rows = list[tuple[str, Size | None, float | None]]

FIGURE = r"(-?[0-9]+(?:\.[0-9]+)?) ?([KMG]i?B)"
_FIRST = re.compile(FIGURE)
_NAMED = {
    "weights": re.compile(r"weights take " + FIGURE),
    "non_torch": re.compile(r"non_torch_memory(?: takes |=)" + FIGURE),
    "activation": re.compile(r"activation peak memory takes " + FIGURE),
    "kv_cache": re.compile(r"(?:reserved for KV Cache is |kv_cache_size=)" + FIGURE),
    "total": re.compile(r"total_gpu_memory(?: \(|=)" + FIGURE),
    "usage": re.compile(r"mem usage=" + FIGURE),
    "available": re.compile(r"avail mem=" + FIGURE),
    "key": re.compile(r"K size: " + FIGURE),
    "value": re.compile(r"V size: " + FIGURE),
    "both": re.compile(r"KV size: " + FIGURE),
}
_SHARE = re.compile(r"gpu_memory_utilization(?: \(|=)([0-9.]+)")
_EQUALS = re.compile(r"= ?" + FIGURE)
_STARTUP = re.compile(r"\(([0-9.]+)/([0-9.]+) ([KMG]i?B)\).*utilization \(([0-9.]+), ([0-9.]+) ([KMG]i?B)\)")
_NEEDED = re.compile(r"\(" + FIGURE + r" KV cache is needed.*?memory \(" + FIGURE)
_PERCENT = re.compile(r"([0-9]{1,3})%")


def binary_size(number: str, unit: str) -> Size | None:
    """A figure whose unit is a power of two, also where GB is printed."""
    return size(f"{number} {unit[0]}iB" if unit[0] in "KMG" else f"{number} {unit}")


def _named(text: str, *names: str) -> Rows:
    """The figures that stand behind their own words."""
    found: Rows = []
    for name in names:
        match = _NAMED[name].search(text)
        if match:
            found.append((name, binary_size(*match.groups()), None))
    return found


def _first(what: str) -> Callable[[str], Rows]:
    def read(text: str) -> Rows:
        match = _FIRST.search(text)
        return [(what, binary_size(*match.groups()), None)] if match else []

    return read


def _budget(text: str) -> Rows:
    share, product, total = _SHARE.search(text), _EQUALS.search(text), _FIRST.search(text)
    rows: Rows = [("utilization", None, float(share.group(1)))] if share and _is_number(share.group(1)) else []
    rows += [("total", binary_size(*total.groups()), None)] if total else []
    return rows + ([("budget", binary_size(*product.groups()), None)] if product else [])


def _profile(text: str) -> Rows:
    share = _SHARE.search(text)
    rows: Rows = [("utilization", None, float(share.group(1)))] if share and _is_number(share.group(1)) else []
    return rows + _named(text, "total", "non_torch", "kv_cache")


def _is_number(text: str) -> bool:
    return text.count(".") <= 1 and text.strip(".") != ""


def _startup(text: str) -> Rows:
    match = _STARTUP.search(text)
    if not match:
        return []
    free, total, unit, share, wanted, other = match.groups()
    if not _is_number(share):
        return []
    return [
        ("startup_free", binary_size(free, unit), None),
        ("total", binary_size(total, unit), None),
        ("startup_wanted", binary_size(wanted, other), float(share)),
    ]


def _needed(text: str) -> Rows:
    match = _NEEDED.search(text)
    if not match:
        return []
    need, unit, there, other = match.groups()
    return [("kv_needed", binary_size(need, unit), None), ("kv_cache", binary_size(there, other), None)]


def _load_end(text: str) -> Rows:
    used = [("weights", figure, None) for _, figure, _ in _named(text, "usage")]
    return [*(used or [("weights", None, None)]), *_named(text, "available")]


def _progress(text: str) -> Rows:
    percent = _PERCENT.search(text)
    return [("load_progress", None, int(percent.group(1)) / 100)] if percent else []


def _graphs(text: str) -> Rows:
    match = re.search(r"took " + FIGURE, text) or _NAMED["usage"].search(text)
    return [("graphs", binary_size(*match.groups()) if match else None, None), *_named(text, "available")]


def _capturing(text: str) -> Rows:
    return [("capture_begin", None, None), *_named(text, "available")]


def _kv(text: str) -> Rows:
    parts = [figure for _, figure, _ in _named(text, "key", "value") if figure] or [
        figure for _, figure, _ in _named(text, "both") if figure
    ]
    if not parts:
        return [("kv_cache", None, None)]
    return [("kv_cache", Size(sum(p.bytes for p in parts), sum(p.error for p in parts)), None)]


def _stage(what: str) -> Callable[[str], Rows]:
    return lambda text: [(what, None, None), *_named(text, "available")]


_READERS: tuple[tuple[str, Callable[[str], Rows]], ...] = (
    ("the current vLLM", _budget),
    (
        "model weights take",
        lambda text: _named("weights take " + text, "weights", "non_torch", "activation", "kv_cache"),
    ),
    ("Memory profiling results", _profile),
    ("Loading model weights took", _first("weights")),
    ("Model loading took", _first("weights")),
    ("Available KV", _first("kv_cache")),
    ("Graph capturing finished", _graphs),
    ("Estimated CUDA graph", _first("graphs_estimate")),
    ("CUDA graph pool", _first("graphs")),
    ("No available memory", _stage("no_cache")),
    ("Not enough memory", _stage("no_cache")),
    ("To serve at least", _needed),
    ("Free memory on device", _startup),
    ("Load weight begin", _stage("load_begin")),
    ("Starting to load", _stage("load_begin")),
    ("Load weight end", _load_end),
    ("Loading ", _progress),
    ("KV Cache is", _kv),
    ("Memory pool end", lambda text: _named(text, "available")),
    ("Free memory before", _first("available")),
    ("Free memory after", _first("available")),
    ("Initial free", _first("available")),
    ("Total memory used", _first("graphs")),
    ("The server is fired", _stage("serving")),
    ("Application startup", _stage("serving")),
)


def read_figures(phrase: str, rest: str) -> Rows:
    """What a line tells: (what, figure, share), from the words that mark it and the text behind them."""
    if phrase.startswith("Captur"):
        if phrase.endswith("end"):
            return _graphs(rest)
        return _stage("capture_failed")(rest) if phrase.endswith("failed") else _capturing(rest)
    for head, reader in _READERS:
        if phrase.startswith(head):
            return reader(rest)
    return []
