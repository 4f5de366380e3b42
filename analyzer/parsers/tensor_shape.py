"""Sizes of tensors as programs print them: ``torch.Size([...])``, ``shape [...]``, ``numel N``, ``N elements``.

    > embedding table word_embeddings.weight shape [19345706, 128] numel 2476250368 dtype bf16
    logits: torch.Size([16, 8192, 32000]) torch.float32

Only tensors of at least 2^28 elements become rows: from there on a size in bytes or in elements can leave 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_LARGE = 1 << 28
_SHAPE = re.compile(
    r"(?:torch\.Size\(|[Ss]hapes?\b['\"]?\s*(?:is|of|=|:)?\s*\(?|[Ss]ize\b['\"]?\s*(?:is|of|=|:)?\s*)"
    r"[\[(]([0-9][0-9, ]*)[\])]"
)
_NUMEL = re.compile(r"[Nn]umel\b['\"]?(?:\(\))?\s*(?:is|of|=|:)?\s*([0-9][0-9,_]*)|([0-9][0-9,_]*) elements\b")
_TYPE = re.compile(
    r"\b(?:torch\.)?(bf16|fp16|fp32|fp8|bfloat16|float16|float32|float64|float8\w*|half|float|int8|uint8|int16|int32|int64)\b"
)
_NAME = re.compile(r"([A-Za-z_][\w.]*[._][\w.]+|[A-Za-z_]\w*)\W*(?:torch\.Size|[Ss]hape|[Nn]umel|[Ss]ize|tensor)")
_PARAMETERS = re.compile(r"number of parameters|parameters on|params|Total", re.IGNORECASE)
_MOST = 2000


class ShapeSession(Session):
    """One row for each large tensor; the same line again adds none."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._seen: set[tuple[object, ...]] = set()

    def unread(self, line: Line) -> Verdict:
        """The words occur in all kinds of lines."""
        return Verdict.LEFT

    def on_sized(self, f: Fields, line: Line) -> Verdict | None:
        shapes = _SHAPE.findall(line.text)
        sizes = [[int(size) for size in shape.replace(" ", "").split(",") if size][:16] for shape in shapes[:16]]
        numels = [prod(shape) for shape in sizes]
        said = _NUMEL.search(line.text)
        number = int(re.sub("[,_]", "", (said.group(1) or said.group(2)))) if said else 0
        largest = max([*numels, number], default=0)
        if largest < _LARGE or largest >= 1 << 62 or (not sizes and _PARAMETERS.search(line.text)):
            return Verdict.LEFT
        shape = next(
            (sizes[place] for place, numel in enumerate(numels) if numel == largest), sizes[0] if sizes else None
        )
        kind, name = _TYPE.search(line.text), _NAME.search(line.text)
        values = {
            "name": name.group(1) if name else None,
            "shape": ",".join(map(str, shape)) if shape else None,
            "numel": largest,
            "dtype": kind.group(1) if kind else None,
        }
        key = tuple(values.values())
        if key not in self._seen and len(self._seen) < _MOST:
            self._seen.add(key)
            self.emit("tensor_shape", line, values)
        return None


_WEAK = (
    "torch.Size([",
    "numel",
    "shape [",
    "shape (",
    "shape=(",
    "shape=[",
    "shape: [",
    "shape: (",
    "shape torch",
    " elements",
)
FORMAT = Format(
    name="tensor-shape",
    grammar="tensor_shape",
    literals=_WEAK,
    session=ShapeSession,
    title="sizes of large tensors",
    command="print(name, tensor.shape, tensor.numel())",
    versions="any",
    blocks=False,
    weak_literals=frozenset(_WEAK),
)
