"""The texts of a rule: ``{column}`` and ``{column:UNIT}``, and nothing else of Python's format language.

>>> parse_template("GPU {gpu} holds {used:GiB}").render({"gpu": 3, "used": 85_899_345_920})
'GPU 3 holds 80.00 GiB'
>>> parse_template("{{literal}} {x}").render({"x": None})
'{literal} unknown'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from analyzer.engine.suggest import did_you_mean, quoted

UNKNOWN = "unknown"
_LONGEST_VALUE = 600
# Unit: divisor, decimals, what stands behind the figure.
_UNITS: dict[str, tuple[float, int, str]] = {
    "GiB": (2**30, 2, " GiB"),
    "MiB": (2**20, 1, " MiB"),
    "GB": (1e9, 2, " GB"),
    "MB": (1e6, 1, " MB"),
    "us": (1, 1, " us"),
    "s": (1, 1, " s"),
    "pct": (0.01, 1, " %"),
    "int": (1, 0, ""),
    ".0f": (1, 0, ""),
    ".1f": (1, 1, ""),
    ".2f": (1, 2, ""),
    ".3f": (1, 3, ""),
}
UNITS = tuple(_UNITS)
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::(.*))?\Z", re.DOTALL)


class TemplateError(ValueError):
    """A text that is not a template; ``offset`` is the place in the text."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Field:
    """One place holder: the column, its unit (empty for none) and where it stands in the text."""

    column: str
    unit: str
    offset: int


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed text; ``parts`` are literal pieces and place holders in order."""

    text: str
    parts: tuple[str | Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The place holders in order."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    def render(self, values: Mapping[str, object]) -> str:
        """The text with the values filled in; NULL and absent columns print as ``unknown``."""
        return "".join(p if isinstance(p, str) else format_value(values.get(p.column), p.unit) for p in self.parts)


def parse_template(text: str) -> Template:
    """Reads a text; ``{{`` and ``}}`` stand for braces. Raises TemplateError."""
    parts: list[str | Field] = []
    end = 0
    for piece in _PIECE.finditer(text):
        parts.append(text[end : piece.start()])
        end = piece.end()
        if piece.group() in ("{{", "}}"):
            parts.append(piece.group()[0])
        elif piece.group(1) is None:
            raise TemplateError("a single brace; write {{ or }} for the character itself", piece.start())
        else:
            parts.append(_field(piece.group(1), piece.start()))
    parts.append(text[end:])
    return Template(text, tuple(part for part in parts if part != ""))


def _field(inside: str, offset: int) -> Field:
    match = _FIELD.match(inside)
    if match is None:
        what = f"{{{quoted(inside)[1:-1]}}} is not a column; only {{column}} and {{column:UNIT}} are read"
        raise TemplateError(what, offset)
    column, unit = match.group(1), match.group(2)
    if unit is not None and unit not in _UNITS:
        what = f"unknown unit {quoted(unit)}{did_you_mean(unit, UNITS)}; units are {', '.join(UNITS)}"
        raise TemplateError(what, offset)
    return Field(column, unit or "", offset)


def format_value(value: object, unit: str = "") -> str:
    """One value as text, in ``unit`` where it is a number: 0.25 in pct is ``25.0 %``, bytes in GiB ``1.00 GiB``."""
    if value is None:
        return UNKNOWN
    if isinstance(value, (int, float)):
        if unit:
            divisor, decimals, behind = _UNITS[unit]
            return f"{value / divisor:.{decimals}f}{behind}"
        return f"{value:.6g}" if isinstance(value, float) else str(int(value))
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."
