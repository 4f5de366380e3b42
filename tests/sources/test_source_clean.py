"""A line as a terminal would have shown it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.sources import clean


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", [""]),
        (b"plain\ttext", ["plain\ttext"]),
        (b"   indented  ", ["   indented  "]),
        (b"crlf\r", ["crlf"]),
        (b"crcrlf\r\r", ["crcrlf"]),
        (b"\r", [""]),
        (b"   \r", ["   "]),
        (b"\x1b[36m2025-03-07 14:02:11,310\x1b[0m \x1b[32mINFO\x1b[0m train", ["2025-03-07 14:02:11,310 INFO train"]),
        (b"\x1b[1;38;5;196mred\x1b[m\x1b[K", ["red"]),
        (b"\x1b]0;title\x07text", ["text"]),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ after", ["link after"]),
        (b"\x1b(Btext\x1b=\x1b7", ["text"]),
        (b"\x1bP1$r0m\x1b\\text", ["text"]),
        (b"\x1b]never closed", ["never closed"]),
        (b"cut \x1b[31", ["cut "]),
        (b"cut \x1b", ["cut "]),
        ("\x9b31mred \x85next".encode(), ["red next"]),
        (b"nul\x00bel\x07bs\x08vt\x0bff\x0cdel\x7f", ["nulbelbsvtffdel"]),
        ("ünïcode 日本 🙂".encode(), ["ünïcode 日本 🙂"]),
        (b"broken \xff\xc3", ["broken \ufffd\ufffd"]),
        (b"\r 10%|#   \r 50%|##  \r100%|####\r", [" 10%|#   ", " 50%|##  ", "100%|####"]),
        (b"progress 1\r          \rTraceback", ["progress 1", "Traceback"]),
        (b"\x1b[2K\r\x1b[2K\rdone\r", ["done"]),
        (" 33%|█▎  | 1/3\r 66%|██  | 2/3".encode(), [" 33%|█▎  | 1/3", " 66%|██  | 2/3"]),
    ],
)
def test_lines(raw: bytes, expected: list[str]) -> None:
    assert clean(raw) == expected


CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=300).filter(lambda raw: b"\n" not in raw))
def test_any_bytes_become_printable_segments(raw: bytes) -> None:
    segments = clean(raw)
    assert segments
    assert not any(CONTROL.search(segment) for segment in segments)
    if len(segments) > 1:
        assert all(segment.strip() for segment in segments)


@settings(max_examples=500, deadline=None)
@given(st.text(st.characters(exclude_characters="\n\x1b", exclude_categories=["Cs"]), max_size=200))
def test_no_printable_text_is_lost(text: str) -> None:
    kept = "".join(clean(text.encode()))
    if not any(mark in text for mark in "\x90\x98\x9b\x9d\x9e\x9f"):  # they start sequences of their own
        assert "".join(kept.split()) == "".join(CONTROL.sub("", text).split())


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("abc 123:[]é", min_size=1, max_size=8), min_size=1, max_size=8),
    st.lists(st.sampled_from(["\x1b[0m", "\x1b[1;31m", "\x1b[K", "\x1b]0;t\x07", "\x1b(B", "\x00", "\x08"]), min_size=8),
)
def test_sequences_leave_the_text_between_them(words: list[str], sequences: list[str]) -> None:
    line = "".join(word + sequence for word, sequence in zip(words, sequences))
    assert clean(line.encode()) == ["".join(words)]


@pytest.mark.parametrize(
    "unit", [b"\x1b", b"\x1b[", b"\x1b]", b"\x1b]x", b"\x1bP", b"\xc2\x9d", b"\xc2\x9b", b"\x1b[1;", b"\r", b"\x1b( ", b"\xff"]
)
def test_no_input_makes_it_slow(unit: bytes) -> None:
    raw = (unit * ((1 << 20) // len(unit) + 1))[: 1 << 20]
    start = time.perf_counter()
    clean(raw)
    assert time.perf_counter() - start < 3
