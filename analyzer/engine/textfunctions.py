"""Stand-ins for some of SQLite's functions on texts, so that no single call takes long.

SQLite's own ``instr``, ``replace`` and ``trim`` need time in proportion to the product of two lengths, and its
``printf`` in proportion to a width, inside one step, where no time limit can stop them (minutes for some MB).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

_LONGEST_TEXT = 16_000_000
_MOST_CHARACTERS = 100
_PLACE = re.compile(r"%%|%([-+ 0,]{0,5})([0-9]{0,2})((?:\.[0-9]{1,2})?)([diufeEgGxXsc])")


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _instr(value: object, part: object) -> int | None:
    return None if value is None or part is None else _text(value).find(_text(part)) + 1


def _replace(value: object, old: object, new: object) -> str | None:
    if value is None or old is None or new is None:
        return None
    text, a, b = _text(value), _text(old), _text(new)
    if not a:
        return text
    if len(text) + text.count(a) * (len(b) - len(a)) > _LONGEST_TEXT:
        raise ValueError("too long")
    return text.replace(a, b)


def _trimmer(strip: Callable[[str, str], str]) -> Callable[[object, object], str | None]:
    def call(value: object, characters: object) -> str | None:
        if value is None or characters is None:
            return None
        return strip(_text(value), _text(characters)[:_MOST_CHARACTERS])

    return call


def _printf(*values: object) -> str | None:
    if not values or values[0] is None:
        return None
    layout, rest = _text(values[0]), iter(values[1:])
    if "%" in _PLACE.sub("", layout):
        raise ValueError("printf takes %d %i %f %e %g %x %s %c with widths up to 99")
    return _PLACE.sub(lambda place: "%" if place.group() == "%%" else _placed(place, next(rest, None)), layout)


def _placed(place: re.Match[str], value: object) -> str:
    """One value in its place; like SQLite, text where a number should be counts as 0."""
    flags, width, digits, kind = place.groups(default="")
    layout = "%" + flags.replace(",", "") + width + digits
    if kind in "sc":
        text = "" if value is None else _text(value)
        return (layout + "s") % (text[:1] if kind == "c" else text)
    number = value if isinstance(value, (int, float)) else 0
    if not math.isfinite(number):
        return str(number)
    if kind in "diuxX":
        return f"{int(number):,d}" if "," in flags else (layout + kind.replace("u", "d")) % int(number)
    return (layout + kind) % number


TEXT_FUNCTIONS: dict[str, tuple[int, Any]] = {
    "printf": (-1, _printf),
    "format": (-1, _printf),
    "instr": (2, _instr),
    "replace": (3, _replace),
    "trim": (2, _trimmer(str.strip)),
    "ltrim": (2, _trimmer(str.lstrip)),
    "rtrim": (2, _trimmer(str.rstrip)),
}
