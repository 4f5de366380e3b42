"""Words of DCGM: results, GPUs named in a cell, the paths of its topology, and its diagnostic as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Values = dict[str, object]

_RESULT = re.compile(r"(Pass|Fail|Warn(?:ing)?|Skip|Not Run|Healthy|Failure|Error)\b", re.IGNORECASE)
_WORDS = {
    "pass": "pass",
    "healthy": "pass",
    "fail": "fail",
    "failure": "fail",
    "error": "fail",
    "warn": "warn",
    "warning": "warn",
    "skip": "skip",
    "not run": "not run",
}
_GPUS = re.compile(r"GPUs?:? ?([0-9]{1,3}(?:(?:-|, ?)[0-9]{1,3})*)", re.IGNORECASE)
_EACH = re.compile(r"GPU ?([0-9]{1,3}): (Pass|Fail|Warn(?:ing)?|Skip|Not Run)\b", re.IGNORECASE)
_PATHS = (
    (re.compile(r"([0-9]{1,2}) NVLINK", re.IGNORECASE), "NV"),
    (re.compile(r"on-board PCIe switch|single PCIe", re.IGNORECASE), "PIX"),
    (re.compile(r"multiple PCIe switch", re.IGNORECASE), "PXB"),
    (re.compile(r"host bridge", re.IGNORECASE), "PHB"),
    (re.compile(r"CPU-level|NUMA|across .*socket", re.IGNORECASE), "SYS"),
)


def result(text: str) -> str | None:
    """pass, warn, fail, skip or not run; None for another text."""
    found = _RESULT.match(text.strip())
    return _WORDS[found.group(1).lower()] if found else None


def gpus(text: str) -> list[int]:
    """The GPUs that a cell names (``Fail - GPUs: 0, 2-3``)."""
    found = _GPUS.search(text)
    numbers: list[int] = []
    for part in re.split(r", ?", found.group(1)) if found else ():
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), min(int(last or first), int(first) + 63) + 1))
    return numbers


def each_gpu(text: str) -> list[tuple[int, str]]:
    """Results by GPU (``GPU0: Pass, GPU1: Fail``)."""
    return [(int(gpu), _WORDS[word.lower()]) for gpu, word in _EACH.findall(text)]


def path(text: str) -> tuple[str, int] | None:
    """Path label and NVLinks of a connection as dcgmi topo words it."""
    for pattern, label in _PATHS:
        found = pattern.search(text)
        if found:
            links = int(found.group(1)) if label == "NV" else 0
            return (f"NV{links}", links) if links else (label, 0)
    return None


def json_rows(document: Any) -> Iterator[Values]:
    """Rows of ``health_check`` of ``dcgmi diag -j``, DCGM 2 to 4; anything of another form is left out."""
    root = (
        document.get("DCGM Diagnostic") or document.get("DCGM GPU Diagnostic") if isinstance(document, dict) else None
    )
    for category in _dicts(root, "test_categories"):
        for test in _dicts(category, "tests"):
            for entry in _dicts(test, "results"):
                yield from _entry(category, test, entry)


def _entry(category: Any, test: Any, entry: Any) -> Iterator[Values]:
    word = result(str(entry.get("status", "")))
    if word is None:
        return
    texts: list[tuple[str | None, int | None]] = [*_warnings(entry.get("warnings"))]
    for gpu in _entities(entry):
        values: Values = {
            "category": str(category.get("category", "")),
            "name": str(test.get("name", "")),
            "result": word,
        }
        values |= {} if gpu is None else {"gpu": gpu}
        for text, code in texts or [(None, None)]:
            yield values | {"detail": text, "code": code}


def _warnings(warnings: Any) -> list[tuple[str, int | None]]:
    if isinstance(warnings, str):
        return [(warnings, None)] if warnings else []
    found: list[tuple[str, int | None]] = []
    for item in warnings if isinstance(warnings, list) else ():
        if isinstance(item, dict):
            code = item.get("error_id")
            found.append((str(item.get("warning", "")), code if isinstance(code, int) else None))
        elif isinstance(item, str):
            found.append((item, None))
    return found


def _entities(entry: Any) -> list[int | None]:
    number = entry.get("entity_id", entry.get("gpu_id"))
    if entry.get("entity_group", "GPU") != "GPU":
        return [None]
    if isinstance(number, int):
        return [number]
    listed = str(entry.get("gpu_ids") or number or "")
    found: list[int | None] = [int(part) for part in re.split(r"[, ]+", listed) if part.isdigit() and len(part) < 4]
    return found or [None]


def _dicts(holder: Any, name: str) -> list[Any]:
    items = holder.get(name) if isinstance(holder, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
