"""The journal in its machine forms: lines of text with the numbers of the file."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.model import Problem
from analyzer.sources import blocks, expand, members, split_prefix
from analyzer.sources.journal import JournalLines, is_journal

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
RECORDS: list[dict[str, object]] = [
    {
        "__CURSOR": "s=1",
        "__REALTIME_TIMESTAMP": "1727172000123456",
        "_TRANSPORT": "kernel",
        "_HOSTNAME": "node-a",
        "MESSAGE": XID,
    },
    {
        "__CURSOR": "s=2",
        "__REALTIME_TIMESTAMP": "1727172001000000",
        "_TRANSPORT": "stdout",
        "_HOSTNAME": "node-a",
        "SYSLOG_IDENTIFIER": "nv-hostengine",
        "_PID": "812",
        "MESSAGE": "two\nlines",
    },
]


def export(records: list[dict[str, object]]) -> bytes:
    """The records as ``journalctl -o export`` writes them."""
    parts = []
    for record in records:
        for key, value in record.items():
            data = str(value).encode()
            if b"\n" in data:
                parts.append(key.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n")
            else:
                parts.append(key.encode() + b"=" + data + b"\n")
        parts.append(b"\n")
    return b"".join(parts)


LINES = "\n".join(json.dumps(record) for record in RECORDS).encode() + b"\n"
PRETTY = "\n".join(json.dumps(record, indent="\t") for record in RECORDS).encode() + b"\n"
EXPORT = export(RECORDS)


def text_of(data: bytes) -> list[str]:
    stream = JournalLines(io.BytesIO(data))
    parts = []
    while part := stream.read(1000):
        parts.append(part)
    return b"".join(parts).decode().split("\n")


@pytest.mark.parametrize("data", [LINES, PRETTY, EXPORT], ids=["json", "json-pretty", "export"])
def test_records_become_lines_of_the_same_number(data: bytes) -> None:
    assert is_journal(data)
    lines = text_of(data)
    assert len(lines) == len(data.split(b"\n"))
    number = next(n for n, line in enumerate(lines) if "Xid" in line)
    assert b"NVRM" in data.split(b"\n")[number]
    found = split_prefix(lines[number])
    assert (found.text, found.host, found.at) == (XID, "node-a", 1727172000.123456)


def test_a_message_of_two_lines_keeps_them_in_the_export_form() -> None:
    shown = [split_prefix(line) for line in text_of(EXPORT) if line and "Xid" not in line]
    assert [(one.text, one.host, one.pid) for one in shown] == [("two", "node-a", 812), ("lines", "node-a", 812)]


def test_a_message_in_bytes_is_decoded() -> None:
    record = RECORDS[0] | {"MESSAGE": list(b"caf\xc3\xa9 \xff")}
    assert text_of(json.dumps(record).encode() + b"\n")[0].endswith("caf\u00e9 \ufffd")


def test_a_cut_record_stays_text() -> None:
    cut = LINES[: len(LINES) - 40]
    assert text_of(cut)[0].endswith(XID)
    assert text_of(cut)[1].startswith('{"__CURSOR": "s=2"')


@pytest.mark.parametrize(
    "head", [b'{"MESSAGE": "x"}', b"{}", b"", b"[1, 2]", b"CURSOR=1", b'{"zero_optimization": {}}']
)
def test_other_files_are_left_alone(head: bytes) -> None:
    assert not is_journal(head)


def test_a_file_is_read_through_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    path.write_bytes(LINES)
    problems: list[Problem] = []
    data = b"".join(
        block.data
        for member in members(expand([str(path)])[0][0], problems.append)
        for block in blocks(member, problems.append)
    )
    assert data.decode().splitlines()[0].endswith(XID)
    assert not problems


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([LINES, PRETTY, EXPORT]), st.integers(0, 600))
def test_no_bytes_raise(noise: bytes, data: bytes, at: int) -> None:
    stream = JournalLines(io.BytesIO(data[:at] + noise + data[at:]))
    while stream.read(333):
        pass
