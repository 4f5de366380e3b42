"""Out-of-memory texts of other frameworks, each complete in one line.

    cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 1,234 bytes, limit set to: 99 bytes).
    Out of memory error on GPU 0. Cannot allocate 1.5GB memory on GPU 0, 31.2GB memory has been allocated and available memory is only 512MB.
    Requested amount of GPU memory (8589934592 bytes) could not be allocated.
    Failed to allocate memory for requested buffer of size 8589934592
    ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9216.00 MiB on device 0: cudaMalloc failed: out of memory
    triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.

CuPy 8 to 14, PaddlePaddle 2 and 3 (its GB are 2^30 bytes), TensorRT 8 to 10, ONNX Runtime 1, llama.cpp, Triton 2 and 3.
Triton speaks of shared memory on the chip, which is no memory of the card.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict
from analyzer.parsers.values import Size, size

Fields = Mapping[str, str]

_BYTES = re.compile(r"([0-9][0-9,]*)")
_SO_FAR = re.compile(r"allocated so far: ([0-9,]+) bytes")
_LIMIT = re.compile(r"limit set to: ([0-9,]+) bytes")
_PADDLE = re.compile(
    r"([0-9]+)\. +Cannot allocate ([0-9.]+ ?[KMG]?B).*?([0-9.]+ ?[KMG]?B) memory has been allocated"
    r"(?:.*?available memory is only ([0-9.]+ ?[KMG]?B))?"
)
_GGML = re.compile(r"([0-9.]+) MiB on device ([0-9]+)")
_RESOURCE = re.compile(r"(\w[\w ]*), Required: ([0-9]+), Hardware limit: ([0-9]+)")
_TEXT_CAP = 300


class OtherOomSession(Session):
    """One row for each message."""

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def on_oom(self, f: Fields, line: Line) -> Verdict | None:
        phrase, rest = f["phrase"], f.get("rest", "")
        if phrase == "out of resource:":
            return self._resource(rest, line)
        values = _read(phrase, rest)
        if not values:
            return Verdict.LEFT
        text = line.text[line.text.find(phrase) :][:_TEXT_CAP]
        self.emit("oom_event", line, {"error_bytes": 0, "text": text, **values})
        return None

    def _resource(self, rest: str, line: Line) -> Verdict | None:
        match = _RESOURCE.search(rest)
        if match is None:
            return Verdict.LEFT
        for metric, number in (("required", match.group(2)), ("limit", match.group(3))):
            values = {"framework": "triton", "allocator": match.group(1), "metric": metric, "bytes": int(number)}
            self.emit("allocator_stat", line, values)
        return None


def _read(phrase: str, rest: str) -> dict[str, object]:
    if phrase == "Out of memory allocating":
        return _cupy(rest)
    if phrase == "Out of memory error on GPU":
        return _paddle(rest)
    if phrase.startswith("ggml"):
        match = _GGML.search(rest)
        figure = size(f"{match.group(1)} MiB") if match else None
        return {"framework": "llama.cpp", "gpu": _number(match.group(2)), **_requested(figure)} if match else {}
    amount = _BYTES.search(rest)
    framework = "tensorrt" if phrase.startswith("Requested") else "onnxruntime"
    return {"framework": framework, "requested_bytes": _number(amount.group(1))} if amount else {}


def _cupy(rest: str) -> dict[str, object]:
    amount, held, limit = _BYTES.search(rest), _SO_FAR.search(rest), _LIMIT.search(rest)
    if amount is None or held is None:
        return {}
    values: dict[str, object] = {"framework": "cupy", "requested_bytes": _number(amount.group(1))}
    values |= {
        "allocated_bytes": _number(held.group(1)),
        "unallocated_bytes": 0,
        "reserved_bytes": _number(held.group(1)),
    }
    return values | ({"allowed_bytes": _number(limit.group(1))} if limit else {})


def _paddle(rest: str) -> dict[str, object]:
    match = _PADDLE.search(rest)
    if match is None:
        return {}
    gpu, wanted, held, free = match.groups()
    figures = [_binary(text) for text in (wanted, held, free)]
    values: dict[str, object] = {"framework": "paddle", "gpu": _number(gpu), **_requested(figures[0])}
    values["error_bytes"] = max(figure.error for figure in figures if figure)
    for column, figure in (("allocated_bytes", figures[1]), ("free_bytes", figures[2])):
        if figure is not None:
            values[column] = figure.bytes
    return values


def _binary(text: str | None) -> Size | None:
    return size(re.sub(r"([KMG])B", r"\1iB", text)) if text else None


def _requested(figure: Size | None) -> dict[str, object]:
    return {"requested_bytes": figure.bytes, "error_bytes": figure.error} if figure else {"error_bytes": 0}


def _number(text: str) -> int:
    return int(text.replace(",", "") or 0)


_LITERALS = (
    "Out of memory allocating ",
    "Out of memory error on GPU",
    "Requested amount of GPU memory",
    "Failed to allocate memory for requested buffer",
    "ggml_backend_cuda_buffer_type_alloc_buffer",
    "out of resource: ",
)
FORMAT = Format(
    name="other-oom",
    grammar="other_oom",
    literals=_LITERALS,
    session=OtherOomSession,
    title="out-of-memory errors of CuPy, PaddlePaddle, TensorRT, ONNX Runtime, llama.cpp",
    command="the output of the program",
    versions="CuPy 8 to 14, PaddlePaddle 2 and 3, TensorRT 8 to 10, ONNX Runtime 1",
    weak_literals=frozenset(_LITERALS),
    blocks=False,
)
