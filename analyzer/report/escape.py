r"""Makes everything visible that a log could use to deceive a reader: control characters, bidi overrides, ANSI.

``ESC [ 3 1 m`` becomes the seven characters ``\x1b[31m``, a right-to-left override becomes ``\u202e``, an
undecodable byte (a lone surrogate from ``surrogateescape``) becomes ``\x80``. Line feeds and tabs stay, because
advice may have several lines; ``one_line`` and ``prose`` deal with them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from analyzer.model import Report

_KEPT = "\n\t"


def _shown(char: str) -> str:
    """One character as it may be printed."""
    if char.isprintable() or char in _KEPT:
        return char
    code = ord(char)
    if unicodedata.category(char) == "Zs":
        return " "
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """The text with all unprintable characters spelled out; line feeds and tabs stay. Idempotent."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """A log line for one row of output: ends trimmed, inner line feeds spelled out, tabs as a space."""
    return visible(text).strip().replace("\n", "\\n").replace("\t", " ")


def prose(text: str) -> str:
    """A sentence from a rule or an engine: runs of white space become one space."""
    return " ".join(visible(text).split())


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters; what is cut is counted at the end."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit:,} more characters)"


def brief(text: str, limit: int) -> str:
    """The beginning of a sentence, cut between words."""
    if len(text) <= limit:
        return text
    return text[:limit].rpartition(" ")[0].rstrip(" ,;:(") + " ..." if " " in text[:limit] else text[:limit] + "..."


def _walk(value: Any) -> Any:
    """The value with every string in it made visible, down through dataclasses and containers."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_walk(item) for item in value)
    if isinstance(value, dict):
        return {_walk(key): _walk(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _walk(getattr(value, f.name)) for f in fields(value)})
    return value


def visible_report(report: Report) -> Report:
    """The report with every string made visible; each renderer starts with it, so that no field can be missed."""
    return cast(Report, _walk(report))
