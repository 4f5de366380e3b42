"""nvidia-bug-report.log: sections, the host, dumps that are left out, kernel messages of earlier boots."""

from __future__ import annotations

import base64
import gzip
import io

import pytest

from analyzer.parsers import FORMATS
from analyzer.scan import Scan, ScanDriver
from analyzer.sources import Block, BugReport, Job, Member, members, name_host
from tests.parsers.golden import rows_of

RULE = "_" * 44
HEAD = f"""{RULE}

Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem.

nvidia-bug-report.sh Version: 34275561

Date: Fri Mar 14 03:20:00 UTC 2025
uname: Linux node-7.cluster 5.15.0-91-generic #101-Ubuntu SMP x86_64 GNU/Linux
command line flags:
"""
SMI = """==============NVSMI LOG==============

Timestamp                                 : Fri Mar 14 03:20:00 2025
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 1
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    FB Memory Usage
        Total                             : 81920 MiB
"""
UNITS = """/usr/bin/nvidia-smi --query --unit

==============NVSMI LOG==============

Timestamp                                 : Fri Mar 14 03:20:01 2025
Driver\0 Version                          : 550.54.15
HIC Info                                  : N/A
Attached Units                            : 0
"""
KERNEL = """Scanning kernel log files for NVIDIA kernel messages:

  journalctl -b -0:
Mar 14 03:12:00 node-7 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15
  journalctl -b -1:
Mar 14 02:12:00 node-7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
"""
DUMP = base64.encodebytes(bytes(range(256)) * 12).decode()
REPORT = "\n".join(
    [
        HEAD,
        f"{RULE}\n\n/usr/bin/nvidia-smi --query\n\n{SMI}",
        UNITS,
        f"{RULE}\n\n{KERNEL}",
        f'{RULE}\n\nbase64 "/tmp/nvidia-debugdump.zip"\n\n{DUMP}',
        f"{RULE}\n\n/usr/bin/acpidump -b\n\n{DUMP}",
        f"{RULE}\n\ndmesg:\n\n[  130.456250] NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python, Ch 00000008\n",
        f"{RULE}\n\n*** /proc/meminfo\nMemTotal:       527951236 kB\nMemAvailable:   402120000 kB\n",
        f"{RULE}\n\nEnd of NVIDIA bug report log file.\n",
    ]
)


def _scan(text: str) -> Scan:
    driver = ScanDriver(FORMATS)
    driver.member(Member("nvidia-bug-report.log", io.BytesIO(text.encode())), 0, driver.scan.problems.append)
    return driver.scan


def test_every_section_goes_to_its_parser() -> None:
    rows = rows_of(_scan(REPORT))
    assert [row["name"] for row in rows["gpu_device"]] == ["NVIDIA A100-SXM4-80GB"]
    assert {row["what"] for row in rows["host_memory"]} == {"total", "available"}


def test_all_rows_are_of_the_host_that_the_header_names() -> None:
    assert {row.get("host") for rows in rows_of(_scan(REPORT)).values() for row in rows} == {"node-7"}


def test_earlier_boots_are_marked() -> None:
    xids = {row["code"]: row["boots_ago"] for row in rows_of(_scan(REPORT))["xid"]}
    assert xids == {79: 1, 31: 0}


def test_dumps_are_left_out_and_told() -> None:
    problems = [problem.what for problem in _scan(REPORT).problems]
    assert len(problems) == 2
    assert "nvidia-debugdump" in problems[0] and "only NVIDIA can read" in problems[0]
    assert problems[1] == "/usr/bin/acpidump -b: base64, left out"


def test_a_report_without_its_end_is_told() -> None:
    whole = REPORT[: REPORT.index("End of")]
    assert any("ends early" in problem.what for problem in _scan(whole).problems)


@pytest.mark.parametrize("size", [1, 100, 997, 5000])
def test_the_pieces_are_the_blocks(size: int) -> None:
    lines = REPORT.encode().splitlines(keepends=True)
    report, line, seen = BugReport(HEAD.encode()), 1, b""
    for start in range(0, len(lines), size):
        block = Block(b"".join(lines[start : start + size]), line)
        for section in report.sections(block):
            assert section.block.first_line == seen.count(b"\n") + 1
            seen += section.block.data
        line += block.data.count(b"\n")
    assert seen == REPORT.encode()
    assert report.complete


def test_a_packed_report_of_several_members(tmp_path: object) -> None:
    data = REPORT.encode()
    path = f"{tmp_path}/nvidia-bug-report.log.gz"
    with open(path, "wb") as file:
        file.write(gzip.compress(data[:700]) + gzip.compress(data[700:]))
    driver = ScanDriver(FORMATS)
    for member in members(Job(path, "nvidia-bug-report.log.gz", 0), driver.scan.problems.append):
        driver.member(member, 0, driver.scan.problems.append)
    assert rows_of(driver.scan) == rows_of(_scan(REPORT))


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("sosreport-node07-01234567-2025-03-14-abcdefg/proc/meminfo", "node07"),
        ("in/sosreport-hgx-3-2025-03-14-abcdefg.tar.gz!sosreport-hgx-3-2025-03-14-abcdefg/sos_commands/dmesg", "hgx-3"),
        ("sosreport-n1.example.org-20250314101112/uname", "n1"),
        ("sosreport/node07.log", "node07"),
    ],
)
def test_a_sosreport_names_its_host(name: str, host: str) -> None:
    assert name_host(name) == host
