"""Memory lines of serving engines while they start: vLLM 0.2 to 0.19, SGLang 0.2 to 0.5, text-generation-inference.

    ... the current vLLM instance can use total_gpu_memory (15.77GiB) x gpu_memory_utilization (0.95) = 14.98GiB
    ... model weights take 7.51GiB; non_torch_memory takes 0.39GiB; PyTorch activation peak memory takes 2.53GiB; ...
    ... Model loading took 14.99 GiB and 3.2 seconds
    ... Graph capturing finished in 25 secs, took 0.81 GiB
    ValueError: Free memory on device cuda:0 (3.25/23.43 GiB) on startup is less than desired GPU memory utilization (0.96, 22.49 GiB).
    ... Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=15.20 GB, mem usage=6.21 GB.
    ... Capture cuda graph begin. This can take up to several minutes. avail mem=12.01 GB

Both engines divide by 2^30, whether they print GB or GiB.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict
from analyzer.parsers.engine_figures import FIGURE, binary_size, read_figures

Fields = Mapping[str, str]

_BATCH = re.compile(r"bs=([0-9]+) avail_mem=" + FIGURE)
_DEVICE = re.compile(r"^\s*(?:cuda|hip|xpu)?:?([0-9]+)\b")
_SGLANG = ("Capture ", "Load ", "KV Cache", "Memory pool", "The server", "Not enough")
_TGI = ("Free memory before", "Free memory after", "Total memory used")


class EngineSession(Session):
    """One row for each figure or stage."""

    def unread(self, line: Line) -> Verdict:
        """The same words without the engine's own form are prose."""
        return Verdict.LEFT

    def on_fact(self, f: Fields, line: Line) -> Verdict | None:
        phrase, rest = f["phrase"], f.get("rest", "")
        if phrase == "Capturing batches":
            return self._batch(rest, line)
        rows = read_figures(phrase, rest)
        if not rows:
            return Verdict.LEFT
        engine = "sglang" if phrase.startswith(_SGLANG) else "vllm"
        if phrase.startswith(("Loading ", "Starting")):
            engine = ""
        if phrase.startswith(_TGI):
            engine = "tgi"
        device = _DEVICE.match(rest) if phrase == "Free memory on device" else None
        for what, figure, share in rows:
            self.emit(
                "engine_memory",
                line,
                {
                    "engine": engine or None,
                    "gpu": int(device.group(1)) if device else None,
                    "pid": line.prefix_pid,
                    "what": what,
                    "bytes": figure.bytes if figure else None,
                    "error_bytes": figure.error if figure else None,
                    "share": share,
                },
            )
        return None

    def _batch(self, rest: str, line: Line) -> Verdict | None:
        match = _BATCH.search(rest)
        figure = binary_size(*match.groups()[1:]) if match else None
        if match is None or figure is None:
            return Verdict.LEFT
        values = {"kind": "capture", "size": match.group(1), "free_bytes": figure.bytes, "error_bytes": figure.error}
        self.emit("free_memory", line, values | {"pid": line.prefix_pid})
        return None


_LITERALS = (
    "the current vLLM instance can use",
    "model weights take ",
    "Memory profiling results:",
    "Loading model weights took ",
    "Model loading took ",
    "Available KV cache memory",
    "Capturing the model for CUDA graphs",
    "Capturing cudagraphs for",
    "Capturing CUDA graph",
    "Capturing batches (bs=",
    "uda graph begin",
    "uda graph end",
    "uda graph failed",
    "UDA graph begin",
    "UDA graph end",
    "UDA graph failed",
    "Graph capturing finished in",
    "Estimated CUDA graph memory",
    "CUDA graph pool memory",
    "No available memory for the cache blocks",
    "To serve at least one request",
    "Free memory on device",
    "Load weight begin",
    "Load weight end",
    "Starting to load model",
    "checkpoint shards",
    "Not enough memory. Please try to increase",
    "KV Cache is allocated",
    "Memory pool end",
    "The server is fired up",
    "Application startup complete",
    "Free memory before the warmup",
    "Free memory after allocating the cache",
    "Total memory used for CUDA graphs",
    "Initial free memory",
)
FORMAT = Format(
    name="engine-memory",
    grammar="engine_memory",
    literals=_LITERALS,
    session=EngineSession,
    title="memory lines of a serving engine",
    command="the log of vLLM, SGLang or text-generation-inference from its start",
    versions="vLLM 0.2 to 0.19, SGLang 0.2 to 0.5",
    weak_literals=frozenset(_LITERALS),
    blocks=False,
)
