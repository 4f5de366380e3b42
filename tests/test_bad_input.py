"""Bad input: a clear message, the right exit code, everything else still analysed, no traceback."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.analysis import Options, analyze

FIXTURES = Path(__file__).parent / "fixtures"
GOOD = FIXTURES / "recorded" / "torch-oom-plain.txt"
CAUSE = "memory.workload-over-capacity"


def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "analyzer", *map(str, arguments)]
    result = subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)
    assert b"Traceback" not in result.stderr, result.stderr.decode()
    return result


def causes(result: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Root causes of severity error, the growth that the good log also shows left out."""
    found = json.loads(result.stdout)["findings"]
    return [f["cause"] for f in found if f["role"] == "root" and f["severity"] == "error"]


def problems(result: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(f"{p['file']}: {p['what']}" for p in json.loads(result.stdout)["problems"])


def beside(bad: Path, tmp_path: Path) -> subprocess.CompletedProcess[bytes]:
    """The bad file together with a good one."""
    return run("analyze", "--format", "json", bad, GOOD)


def test_path_that_does_not_exist(tmp_path: Path) -> None:
    result = run("analyze", tmp_path / "nowhere.log")
    assert result.returncode == 2
    assert b"does not exist" in result.stderr
    result = beside(tmp_path / "nowhere.log", tmp_path)
    assert result.returncode == 1
    assert causes(result) == [CAUSE]
    assert "does not exist" in problems(result)


def test_empty_file(tmp_path: Path) -> None:
    empty = tmp_path / "empty.log"
    empty.touch()
    result = run("analyze", "--format", "json", empty)
    assert result.returncode == 3
    assert b"no input was understood" in result.stderr
    assert causes(beside(empty, tmp_path)) == [CAUSE]


def test_binary_file(tmp_path: Path) -> None:
    binary = tmp_path / "core"
    binary.write_bytes(b"\x7fELF" + random.Random(1).randbytes(300_000))
    result = beside(binary, tmp_path)
    assert causes(result) == [CAUSE]
    assert "binary file" in problems(result)
    noise = tmp_path / "noise.log"
    noise.write_bytes(random.Random(2).randbytes(1_000_000))
    assert causes(beside(noise, tmp_path)) == [CAUSE]


def test_broken_archives(tmp_path: Path) -> None:
    whole = gzip.compress(GOOD.read_bytes() + random.Random(3).randbytes(50_000).hex().encode())
    cut = tmp_path / "cut.log.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    result = beside(cut, tmp_path)
    assert CAUSE in causes(result)
    assert "cut.log.gz" in problems(result)
    fake = tmp_path / "fake.zip"
    fake.write_bytes(b"PK\x03\x04 this is no archive")
    assert causes(beside(fake, tmp_path)) == [CAUSE]


def test_archives_of_a_good_log(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(GOOD, "../../evil/rank0.log")
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as tar:
        tar.add(GOOD, "logs/rank0.log")
    (tmp_path / "c.log.gz").write_bytes(gzip.compress(GOOD.read_bytes()))
    for name in ("a.zip", "b.tgz", "c.log.gz"):
        result = run("analyze", "--format", "json", tmp_path / name)
        assert causes(result) == [CAUSE], name
    assert not (tmp_path.parent / "evil").exists()


def test_zip_bomb(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as out:
        for _ in range(300):
            out.write(b"\0" * 1_000_000)
    result = beside(bomb, tmp_path)
    assert causes(result) == [CAUSE]
    assert "bomb.gz" in problems(result)


def test_one_line_of_100_megabytes(tmp_path: Path) -> None:
    long = tmp_path / "long.log"
    with long.open("wb") as out:
        for _ in range(100):
            out.write(b"x" * 1_000_000)
        out.write(b"\n" + GOOD.read_bytes())
    result = run("analyze", "--format", "json", long)
    assert causes(result) == [CAUSE]
    assert "longer than 1 MiB" in problems(result)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(GOOD.read_text(encoding="utf-8").encode(encoding, "replace"))
    assert causes(run("analyze", "--format", "json", path)) == [CAUSE]


def test_crlf_and_colours(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    lines = GOOD.read_text(encoding="utf-8").splitlines()
    path.write_bytes("\r\n".join(f"\x1b[31m{line}\x1b[0m" for line in lines).encode())
    assert causes(run("analyze", "--format", "json", path)) == [CAUSE]


def test_standard_input() -> None:
    assert causes(run("analyze", "--format", "json", "-", stdin=GOOD.read_bytes())) == [CAUSE]


def test_unreadable_folder_and_loop(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    (tmp_path / "good.log").write_bytes(GOOD.read_bytes())
    assert causes(run("analyze", "--format", "json", tmp_path)) == [CAUSE]
    closed.chmod(0o755)


def test_usage_errors(tmp_path: Path) -> None:
    assert run("analyze").returncode == 2
    assert run("analyze", "--format", "yaml", GOOD).returncode == 2
    assert run("analyze", "--rules", tmp_path / "none", GOOD).returncode == 2
    (tmp_path / "bad.yaml").write_text("id: [", encoding="utf-8")
    result = run("analyze", "--rules", tmp_path, GOOD)
    assert result.returncode == 2
    assert b"bad.yaml:" in result.stderr
    assert run("analyze", "-o", tmp_path / "no" / "such" / "folder.html", GOOD).returncode == 2


def test_fail_on() -> None:
    assert run("analyze", GOOD).returncode == 1
    assert run("analyze", "--fail-on", "never", GOOD).returncode == 0
    leak = FIXTURES / "recorded" / "torch-leak.txt"
    assert run("analyze", leak).returncode == 0
    assert run("analyze", "--fail-on", "warning", leak).returncode == 1


def test_cut_at_any_byte(tmp_path: Path) -> None:
    """Cutting never invents a finding that the whole file does not have."""
    data = (FIXTURES / "recorded" / "torch-oom-other-process.txt").read_bytes()
    whole = {f.cause for f in analyze(Options((str(FIXTURES / "recorded" / "torch-oom-other-process.txt"),))).findings}
    path = tmp_path / "cut.txt"
    for end in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:end])
        report = analyze(Options((str(path),), jobs=1))
        roots = {f.cause for f in report.findings if f.role == "root"}
        assert roots <= whole, end


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=2000), st.integers(0, 3))
def test_any_bytes_around_a_log(tmp_path: Path, noise: bytes, where: int) -> None:
    lines = GOOD.read_bytes().split(b"\n")
    at = len(lines) * where // 3
    path = tmp_path / "noisy.txt"
    path.write_bytes(b"\n".join([*lines[:at], noise, *lines[at:]]))
    report = analyze(Options((str(path),), jobs=1))
    assert not [p for p in report.problems if "parser failed" in p.what]
