"""One physical line as a terminal would have shown it: no escape sequences, no control characters."""

from __future__ import annotations

import re

_UNUSUAL = re.compile(rb"[^\x20-\x7e\t]").search
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")

# Each branch is one run of a class and at most one closing character, so that matching takes one pass.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor movements
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC: window titles, links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x80-\x9f]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[\]PX^_]"  # one of them without its end: the text stays
    r"|\x1b[ -/]*[0-~]"  # two bytes, and character sets
)


def clean(raw: bytes) -> list[str]:
    """The visible segments of one line (without its line feed): more than one where a progress bar returned.

    Empty segments are dropped, but a line of nothing gives ``[""]``. Bytes that are no UTF-8 become U+FFFD.
    """
    if _UNUSUAL(raw) is None:
        return [raw.decode("ascii")]
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text or _CONTROL.search(text):
        return _segments(text)
    return [text]


def _segments(text: str) -> list[str]:
    text = _ESCAPE.sub("", text)
    if "\r" not in text:
        return [_CONTROL.sub("", text)]
    parts = [_CONTROL.sub("", part) for part in text.split("\r")]
    shown = [part for part in parts if part.strip()]
    # Blanks that only wiped out an earlier text are no segment; a line of blanks is.
    return shown or [max(parts, key=len)]
