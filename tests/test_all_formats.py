"""All formats together: what is read from an input does not depend on what stands around it.

The samples are the goldens of every format. Rows are compared without references and streams.
"""

from __future__ import annotations

import io
import json
import random
import time
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsers import DOCUMENTS, FORMATS, Format
from analyzer.scan import Scan, ScanDriver
from analyzer.sources import Member
from tests.parsers.golden import FIXTURES, rows_of

SAMPLES = sorted(path for path in FIXTURES.glob("*/*.txt"))
# What was cut goes on in what follows, whatever it is; a dump of several programs has no end of its own.
PARTIAL = ("cut", "section-without-head", "interleaved")
# A port that could not be bound is told once in a stream, and these samples name the same port.
SAME_PORT = ("rendezvous", "torch-distributed")
# These still carry a word of the text before them (a framework, a capability, a library) into what follows. They are
# compared alone by their goldens and belong into the mixture as soon as they end with their block.
CARRY_ON = ("library-path", "other-oom", "xla-memory", "nvidia-smi-p2p", "system-message")
WHOLE = [path for path in SAMPLES if not path.stem.startswith(PARTIAL) and path.parent.name not in CARRY_ON]
# Columns that hold numbers of lines, and the name of a test, which a command far above may tell.
PLACES = ("event_ref", "listing", "tool")
Facts = Counter[str]


def _text(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n\n"


@cache
def _driver() -> ScanDriver:
    return ScanDriver(FORMATS, DOCUMENTS)


def _scan(data: bytes) -> Scan:
    driver = _driver()
    driver.start_over()
    driver.member(Member("sample", io.BytesIO(data)), 0, driver.scan.problems.append)
    return driver.scan


def _facts(data: bytes, *, without: Iterable[str] = ()) -> Facts:
    """Every row as text; ``without`` names columns that are left out."""
    scan = _scan(data)
    assert [p for p in scan.problems if "parser failed" in p.what] == []
    hidden = {*PLACES, *without}
    return Counter(
        f"{table} {json.dumps({k: v for k, v in row.items() if k not in hidden}, sort_keys=True)}"
        for table, rows in rows_of(scan).items()
        for row in rows
    )


def _one_of_each(chance: random.Random) -> list[Path]:
    """A sample of each format, in random order."""
    of_format: dict[str, list[Path]] = {}
    for path in WHOLE:
        of_format.setdefault(path.parent.name, []).append(path)
    of_format.pop(chance.choice(SAME_PORT), None)
    chosen = [chance.choice(paths) for _, paths in sorted(of_format.items())]
    chance.shuffle(chosen)
    return chosen


def _difference(seen: Facts, wanted: Facts) -> str:
    lost, new = sorted(set(wanted) - set(seen)), sorted(set(seen) - set(wanted))
    return "\n".join([*(f"lost {x[:300]}" for x in lost[:5]), *(f"new  {x[:300]}" for x in new[:5])])


@pytest.mark.parametrize("seed", range(6))
def test_one_sample_of_each_format_in_one_file(seed: int) -> None:
    chosen = _one_of_each(random.Random(seed))
    wanted = Counter(fact for path in chosen for fact in _facts(_text(path)))
    seen = _facts(b"".join(_text(path) for path in chosen))
    assert not _difference(seen, wanted), (
        f"{[f'{p.parent.name}/{p.stem}' for p in chosen]}\n{_difference(seen, wanted)}"
    )


@pytest.mark.parametrize("seed", range(4))
def test_interleaved_under_labels(seed: int) -> None:
    """Lines of many writers, each with its label, in random turns; a date that a tool prints apart may be lost."""
    chance = random.Random(seed)
    writers = [
        [b"[default%d]:%s" % (number, line) for line in _text(path).split(b"\n")]
        for number, path in enumerate(chance.sample(WHOLE, 20))
    ]
    wanted: Facts = Counter()
    for lines in writers:
        wanted += _facts(b"\n".join(lines), without=("at",))
    turns = [number for number, lines in enumerate(writers) for _ in lines]
    chance.shuffle(turns)
    queues = [iter(lines) for lines in writers]
    seen = _facts(b"\n".join(next(queues[number]) for number in turns), without=("at",))
    assert not _difference(seen, wanted), _difference(seen, wanted)


def test_every_format_has_samples() -> None:
    assert {path.parent.name for path in SAMPLES} >= {fmt.name for fmt in FORMATS}


_LITERALS = [text for fmt in FORMATS for text in fmt.literals]
_PIECES = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(_LITERALS).map(str.encode),
    st.sampled_from([b"\n", b"\r\n", b"\x00", b"\x1b[31m", b"\t", b"[rank1]:", b"    "]),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(_PIECES, max_size=60))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    scan = _scan(b"".join(pieces))
    assert [p for p in scan.problems if "parser failed" in p.what] == []


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damaged_samples_raise_nothing(data: st.DataObject) -> None:
    text = bytearray(_text(data.draw(st.sampled_from(SAMPLES))))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 40))] = data.draw(_PIECES)
        text = text or bytearray(b"\n")
    scan = _scan(bytes(text))
    assert [p for p in scan.problems if "parser failed" in p.what] == []


@pytest.mark.parametrize("fmt", FORMATS, ids=[fmt.name for fmt in FORMATS])
def test_long_lines_with_literals_take_no_time(fmt: Format) -> None:
    """No regular expression goes back and forth for long over a line that a literal brought to it."""
    begun = time.process_time()
    _scan("".join(f"{literal}{'a1 =(:' * 1000}{literal}\n" for literal in fmt.literals).encode())
    assert time.process_time() - begun < 0.5 * len(fmt.literals) + 1
