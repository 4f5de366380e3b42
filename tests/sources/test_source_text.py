"""Blocks: whole lines, right numbers, flat memory, any encoding."""

from __future__ import annotations

import io
import os
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.model import Problem
from analyzer.sources import BLOCK, LINE_CAP, Block, Limits, Member, blocks, expand, members, text

MIB = 1 << 20
TOO_LONG = "line is longer than 1 MiB, the rest is not read"


class Repeated:
    """A stream that gives one chunk many times, so that a test needs no large file."""

    def __init__(self, chunk: bytes, times: int, end: bytes = b"") -> None:
        self._chunk = chunk
        self._left = times
        self._end = end
        self._rest = b""

    def read(self, n: int, /) -> bytes:
        if not self._rest:
            if self._left:
                self._left -= 1
                self._rest = self._chunk
            else:
                self._rest, self._end = self._end, b""
        part, self._rest = self._rest[:n], self._rest[n:]
        return part


class Dribble(io.BytesIO):
    """A pipe that gives a few bytes at a time."""

    def read(self, n: int | None = -1, /) -> bytes:
        return super().read(min(7, n or 0))


def read(data: bytes, stream: Callable[[bytes], io.BytesIO] = io.BytesIO) -> tuple[list[Block], list[Problem], Member]:
    problems: list[Problem] = []
    member = Member("x.log", stream(data))
    return list(blocks(member, problems.append)), problems, member


def joined(found: list[Block]) -> bytes:
    return b"".join(block.data for block in found)


@pytest.mark.parametrize(
    ("data", "expected", "lines"),
    [
        (b"", b"", 0),
        (b"\n", b"\n", 1),
        (b"a", b"a\n", 1),
        (b"a\n", b"a\n", 1),
        (b"a\r\nb\r\n", b"a\r\nb\r\n", 2),
        (b"a\n\n\nb", b"a\n\n\nb\n", 4),
        (b"\xef\xbb\xbfa\n", b"a\n", 1),
        (b"\xef\xbb\xbf", b"", 0),
        (b"caf\xe9 \xc3\xa9\n", b"caf\xe9 \xc3\xa9\n", 1),
        (bytes(3 * MIB) + b"after a hole\n", b"after a hole\n", 1),
        (bytes(9 * MIB) + b"after a hole\n", b"after a hole\n", 1),
        (b"before a hole\n" + bytes(6 * MIB), b"before a hole\n", 1),
        (bytes(100), b"", 0),
    ],
)
def test_small_texts(data: bytes, expected: bytes, lines: int) -> None:
    found, problems, member = read(data)
    assert joined(found) == expected
    assert (member.total_lines, member.total_bytes) == (lines, len(data))
    assert problems == []


def test_blocks_number_their_lines() -> None:
    line = b"x" * 99 + b"\n"
    data = line * 200_000
    found, problems, member = read(data)
    assert joined(found) == data
    assert problems == []
    assert member.total_lines == 200_000
    assert 4 <= len(found) <= 6
    number = 1
    for block in found:
        assert block.first_line == number
        assert block.data.endswith(b"\n")
        number += block.data.count(b"\n")


def test_a_pipe_that_dribbles_gives_full_blocks() -> None:
    data = b"0123456789\n" * 30_000
    found, _, member = read(data, Dribble)
    assert len(found) == 1 and found[0].data == data
    assert member.total_lines == 30_000


@pytest.mark.parametrize("length", [LINE_CAP - 1, LINE_CAP, LINE_CAP + 1, 3 * LINE_CAP, BLOCK, BLOCK + 5, 3 * BLOCK])
@pytest.mark.parametrize("before", [0, 1, LINE_CAP // 2 - 1, BLOCK - LINE_CAP - 1, BLOCK - 3])
@pytest.mark.parametrize("after", [b"", b"\n", b"\nafter\nwards\n"])
def test_long_lines_are_cut_and_numbers_stay_right(length: int, before: int, after: bytes) -> None:
    lead = b"ab\n" * (before // 3)
    found, problems, member = read(lead + b"L" * length + after)
    lines = joined(found).split(b"\n")[:-1]
    number = len(lead) // 3 + 1
    assert lines[: number - 1] == [b"ab"] * (number - 1)
    assert lines[number - 1] == b"L" * min(length, LINE_CAP)
    assert lines[number:] == [line for line in after.split(b"\n") if line]
    assert problems == ([Problem("x.log", number, TOO_LONG)] if length > LINE_CAP else [])
    assert member.total_lines == len(lines)


def test_thousands_of_long_lines_are_six_problems() -> None:
    problems: list[Problem] = []
    member = Member("x.log", Repeated(b"y" * (MIB + 10) + b"\nshort\n", 100))
    lines = sum(block.data.count(b"\n") for block in blocks(member, problems.append))
    assert lines == member.total_lines == 200
    assert [(problem.line, problem.count) for problem in problems] == [(1, 1), (3, 1), (5, 1), (7, 1), (9, 1), (11, 95)]


def test_a_hundred_megabytes_on_one_line_need_little_memory() -> None:
    problems: list[Problem] = []
    member = Member("x.log", Repeated(b"z" * MIB, 100, b"\nlast line\n"))
    tracemalloc.start()
    found = list(blocks(member, problems.append))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert joined(found) == b"z" * MIB + b"\nlast line\n"
    assert problems == [Problem("x.log", 1, TOO_LONG)]
    assert (member.total_lines, member.total_bytes) == (2, 100 * MIB + 11)
    assert peak < 24 * MIB


def test_memory_is_flat_for_a_long_file() -> None:
    member = Member("x.log", Repeated(b"node-a:41780:42081 [0] NCCL INFO\n" * 30_000, 200))
    tracemalloc.start()
    for _ in blocks(member, lambda problem: None):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert member.total_lines == 6_000_000
    assert peak < 24 * MIB


# --- encodings ---------------------------------------------------------------------------------------------------

TEXT = "NVIDIA-SMI 570 é ü 日本 \U0001f600\r\n| GPU  Name | 40°C\r\nlast"
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-32-le": b"\xff\xfe\x00\x00", "utf-32-be": b"\x00\x00\xfe\xff"}


@pytest.mark.parametrize("encoding", MARKS)
@pytest.mark.parametrize("stream", [io.BytesIO, Dribble])
def test_wide_encodings_with_a_mark(encoding: str, stream: Callable[[bytes], io.BytesIO]) -> None:
    found, problems, member = read(MARKS[encoding] + TEXT.encode(encoding), stream)
    assert joined(found).decode() == TEXT + "\n"
    assert member.total_lines == 3
    assert problems == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark(encoding: str) -> None:
    found, problems, _ = read("GPU 0: NVIDIA A100\nGPU 1: NVIDIA A100\n".encode(encoding))
    assert joined(found) == b"GPU 0: NVIDIA A100\nGPU 1: NVIDIA A100\n"
    assert problems == []


def test_utf16_across_blocks() -> None:
    text_ = "é\U0001f600 line of some length\n" * 500_000
    found, problems, member = read(b"\xff\xfea\x00" + text_.encode("utf-16-le"))
    assert joined(found).decode() == "a" + text_
    assert member.total_lines == 500_000
    assert len(found) > 3
    assert problems == []


def test_utf16_cut_in_a_character_or_broken() -> None:
    found, _, _ = read(b"\xff\xfe" + "ab\n".encode("utf-16-le") + b"c")
    assert joined(found).decode() == "ab\n\ufffd\n"
    found, _, _ = read(b"\xff\xfe" + b"\x00\xd8" + "x\n".encode("utf-16-le"))
    assert joined(found).decode() == "\ufffdx\n"


def test_utf16_lines_are_capped_too() -> None:
    found, problems, member = read(b"\xff\xfe" + ("w" * (3 * MIB) + "\nx\n").encode("utf-16-le"))
    assert joined(found) == b"w" * MIB + b"\nx\n"
    assert problems == [Problem("x.log", 1, TOO_LONG)]
    assert member.total_lines == 2


# --- binary ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(100), "ELF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG"),
        (b"SQLite format 3\x00" + bytes(100), "SQLite"),
        (b"%PDF-1.7\n", "PDF"),
        (pickle.dumps({"a": [1, 2]}, protocol=2), "pickle"),
        (pickle.dumps({"a": [1, 2]}, protocol=4), "pickle"),
        (pickle.dumps([(1, 2.0)], protocol=5), "pickle"),
        (b"\xfd7zXZ\x00" + bytes(100), "xz"),
        (os.urandom(8192), "unknown format"),
        (bytes(range(1, 256)) * 20, "unknown format"),
        (b"\x00\x00\x80?\x01\x00\x00\x00" * 500, "unknown format"),
    ],
)
def test_binary_files_are_not_read(head: bytes, kind: str) -> None:
    found, problems, member = read(head)
    assert found == []
    assert problems == [Problem("x.log", 0, f"binary file ({kind}), not read")]
    assert member.total_lines == 0


def test_a_binary_member_can_still_be_read_by_who_knows_it() -> None:
    data = pickle.dumps({"entries": []}, protocol=2)
    member = Member("fr.pickle", io.BytesIO(data))
    assert member.binary_kind() == "pickle"
    assert member.peek(2) == data[:2]
    assert member.read(1 << 20) == data
    assert member.read(1 << 20) == b""


def test_text_with_a_binary_dump_inside_is_read() -> None:
    data = b"nvidia-bug-report.sh Version 1\n" * 40 + bytes(range(256)) + b"\nafter the dump\n" * 20
    found, problems, _ = read(data)
    assert joined(found) == data
    assert problems == []


def test_latin_and_colourful_texts_are_no_binary() -> None:
    for data in ("é".encode("latin-1") * 500 + b"\n", b"\x1b[31mred\x1b[0m\r\n" * 500, "█".encode() * 2000 + b"\n"):
        found, problems, _ = read(data)
        assert joined(found) == data
        assert problems == []


# --- properties --------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.integers(1, 64))
def test_every_cut_gives_the_same_lines(data: bytes, size: int) -> None:
    if Member("x", io.BytesIO(data)).binary_kind() or data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\0")):
        return
    cutter = text._Cutter("x", text.Repeats(lambda problem: None))
    parts = [cutter.feed(data[at : at + size]) for at in range(0, len(data), size)]
    parts.append(cutter.finish())
    expected = data
    if not data.endswith(b"\n") and data.rpartition(b"\n")[2].strip(b"\0"):
        expected += b"\n"
    if b"\0" not in data:
        assert b"".join(parts) == expected
        assert cutter.next_line - 1 == expected.count(b"\n")


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=3000))
def test_any_bytes_pass_without_an_exception(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.bin"
    for head in (b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xff\xfe", b"\x00" * 257 + b"ustar"):
        path.write_bytes(head + data)
        problems: list[Problem] = []
        for member in members(expand([str(path)])[0][0], problems.append, Limits(inflated_bytes=10 * MIB)):
            for block in blocks(member, problems.append):
                assert block.data.endswith(b"\n")
        assert all(problem.file.startswith(str(path)) and problem.what for problem in problems)


def test_a_plain_file_is_read_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"a\nb\n")
    problems: list[Problem] = []
    walk = members(expand([str(tmp_path)])[0][0], problems.append)
    assert [block.data for member in walk for block in blocks(member, problems.append)] == [b"a\nb\n"]
    assert problems == []
