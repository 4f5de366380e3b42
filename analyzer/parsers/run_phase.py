"""What a program says it does with its state and its model: phases, sizes, and code that keeps tensors.

    Resuming from checkpoint outputs/checkpoint-1500
    saving checkpoint at iteration    1000 to /ckpt in torch_dist format
    ***** Running Evaluation *****
    number of parameters on (tensor, pipeline) model parallel rank (0, 0): 3512345600
    {"architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", "num_parameters": 12187325040}
    server_args=ServerArgs(model_path='google/gemma-3-12b-it', dtype='bfloat16', quantization=None, tp_size=1, ...)
    198:     epoch_loss += loss

A summed or collected loss keeps the graph of every step unless ``.item()`` or ``.detach()`` cuts it off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict

Fields = Mapping[str, str]

_TEXT = 200
_LONGEST = 4000
_LONGEST_PHASE = 300
_COUNT = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?) ?([KMBT]|[bm]illion)?\b")
_PARAMETERS = re.compile(r'"num_parameters" ?: ?([0-9]+)')
_TOTAL = re.compile(r'"total_size" ?: ?([0-9]+)')
_DTYPE = re.compile(r"\"?(?:torch_)?dtype\"?\s*[=:]\s*[\"']?(?:torch\.)?(\w+)")
_SHARDS = re.compile(r"(?:tp_size|tensor_parallel_size)=([0-9]+)")
_QUANT = re.compile(r"quantization=(?!None)['\"]?(\w+)")
_NAME = re.compile(r"(?:model_path|model|served_model_name)=['\"]?([^'\", ]+)")
_IN_NAME = re.compile(r"(?<![0-9A-Za-z.])(?:([0-9]{1,2})x)?([0-9]{1,4}(?:\.[0-9]{1,2})?)[bB](?![A-Za-z0-9])")
_SCALE = {None: 1, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "million": 1e6, "billion": 1e9}
_WIDTH = {
    **{"float32": 4.0, "fp32": 4.0, "float": 4.0, "float16": 2.0, "half": 2.0, "bfloat16": 2.0, "bf16": 2.0},
    **{"fp16": 2.0, "float64": 8.0, "int8": 1.0, "fp8": 1.0, "float8_e4m3fn": 1.0, "int4": 0.5},
}
_QUANT_BYTES = {"awq": 0.5, "gptq": 0.5, "bitsandbytes": 0.5, "awq_marlin": 0.5, "gptq_marlin": 0.5, "fp8": 1.0}
_PHASES = (
    ("resum", "resume"),
    ("load", "resume"),
    ("successfully loaded", "resume"),
    ("saving", "save"),
    ("gathering", "save"),
    ("running evaluation", "evaluate"),
    ("running validation", "evaluate"),
    ("start", "evaluate"),
)
_KEPT = ("out", "pred", "logits", "hidden", "feature")


class PhaseSession(Session):
    """One row for each line."""

    def offer(self, line: Line, called: bool) -> Verdict:
        return super().offer(line, called) if len(line.text) <= _LONGEST else Verdict.LEFT

    def unread(self, line: Line) -> Verdict:
        """The same words stand in prose."""
        return Verdict.LEFT

    def on_phase(self, f: Fields, line: Line) -> Verdict | None:
        words, rest = f["phrase"].lower(), f.get("rest", "").lower()
        if len(line.text) > _LONGEST_PHASE or "Namespace(" in line.text:
            return Verdict.LEFT
        if words.startswith("*****"):
            phase = (
                "train" if rest.startswith("train") else "evaluate" if rest[:4] in ("eval", "pred", "test") else None
            )
        else:
            phase = next((name for head, name in _PHASES if words.startswith(head)), None)
        if phase is None or (words.startswith("load") and "shards" in rest[:10]):
            return Verdict.LEFT
        self.emit("run_phase", line, {"phase": phase, "text": line.text.strip()[:_TEXT]})
        return None

    def on_size(self, f: Fields, line: Line) -> Verdict | None:
        values = _config(line.text) if f["sized"].startswith('"') else _arguments(line.text)
        if f["sized"][:1] not in '"SI':
            values = _counted(f["rest"])
        if not values:
            return Verdict.LEFT
        self.emit("model_size", line, values)
        return None

    def on_code(self, f: Fields, line: Line) -> None:
        code = f["code"].split("#")[0].strip()
        kind = "loss_kept" if "loss" in code or "grad_norm" in code else "output_kept"
        number = int(f["number"]) if "number" in f and len(f["number"]) < 8 else line.rank
        # A numbered excerpt looks as if a launcher had put its label before it: the label is the line's number.
        self.emit("code_line", line, {"kind": kind, "number": number, "text": code[:_TEXT], "rank": None})


def _counted(rest: str) -> dict[str, object]:
    """``12.19B``, ``(tensor, pipeline) model parallel rank (0, 0): 3512345600``, ``6,742,609,920 || trainable``."""
    tail = rest.rpartition("):")[2] or rest
    match = _COUNT.search(tail)
    if match is None:
        return {}
    count = float(match.group(1).replace(",", "")) * _SCALE[match.group(2)]
    return {"parameters": round(count), "source": "log"} if 1e6 <= count < 1e14 else {}


def _config(text: str) -> dict[str, object]:
    count, total, dtype = _PARAMETERS.search(text), _TOTAL.search(text), _DTYPE.search(text)
    values: dict[str, object] = {"source": "config"}
    if count and len(count.group(1)) < 16:
        values["parameters"] = int(count.group(1))
    if total and len(total.group(1)) < 16:
        values |= {"total_bytes": int(total.group(1)), "source": "index"}
    return _typed(values, dtype.group(1) if dtype else None) if len(values) > 1 or dtype else {}


def _typed(values: dict[str, object], dtype: str | None) -> dict[str, object]:
    if dtype in _WIDTH:
        values |= {"dtype": dtype, "dtype_bytes": _WIDTH[dtype]}
    return values


def _arguments(text: str) -> dict[str, object]:
    """The arguments a serving engine prints: name of the model, type and shards of its weights."""
    name, dtype, shards, quant = _NAME.search(text), _DTYPE.search(text), _SHARDS.search(text), _QUANT.search(text)
    values: dict[str, object] = {"source": "name"}
    number = _IN_NAME.search(name.group(1)) if name else None
    if number:
        values["parameters"] = round(int(number.group(1) or 1) * float(number.group(2)) * 1e9)
    if shards and len(shards.group(1)) < 5:
        values["shards"] = int(shards.group(1))
    if quant:
        values |= {"dtype": quant.group(1), "dtype_bytes": _QUANT_BYTES.get(quant.group(1))}
    else:
        _typed(values, dtype.group(1) if dtype else None)
    return values if len(values) > 1 else {}


_LITERALS = (
    "esuming from",
    "esuming training from",
    "esume from",
    "esumed from",
    "oading checkpoint",
    "oaded checkpoint",
    "oading the checkpoint",
    "oading optimizer",
    "oaded optimizer",
    "aving checkpoint",
    "aving model",
    "aving the model",
    "aving full",
    "aving state",
    "aving optimizer",
    "athering full",
    "athering state",
    "athering 16",
    "***** Running ",
    "unning evaluation",
    "unning validation",
    "tarting evaluation",
    "tarting validation",
    "number of parameters",
    "otal param",
    "all params: ",
    '"num_parameters"',
    '"total_size"',
    '"torch_dtype"',
    "ServerArgs(",
    "nitializing an LLM",
    "nitializing a V1 LLM",
    "odel has ",
    "+= loss",
    "_loss += ",
    "+ loss",
    ".append(",
)
FORMAT = Format(
    name="run-phase",
    grammar="run_phase",
    literals=_LITERALS,
    session=PhaseSession,
    title="phases of a program and size of its model",
    command="the output of the program; config.json of the model",
    versions="transformers 4, Megatron-LM, DeepSpeed, vLLM, SGLang and plain scripts",
    weak_literals=frozenset(_LITERALS),
    blocks=False,
)
