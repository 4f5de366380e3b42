"""Archives and compressed files: streamed, bounded, and what lies before damage is kept."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from analyzer.model import Problem
from analyzer.sources import Job, Limits, blocks, expand, members

LINES = b"".join(b"node-a:41780:42081 [0] NCCL INFO Channel %02d/0 : %d[0]\n" % (n % 24, n) for n in range(20_000))
_RANDOM = random.Random(7)
NOISE = b"".join(_RANDOM.randbytes(40).hex().encode() + b"\n" for _ in range(20_000))
MIB = 1 << 20
Read = tuple[dict[str, bytes], list[Problem]]


def read(path: Path, limits: Limits | None = None) -> Read:
    """All members of a file by the part of their name behind it, and the problems."""
    jobs, problems = expand([str(path)])
    assert len(jobs) == 1
    found: dict[str, bytes] = {}
    for member in members(jobs[0], problems.append, limits):
        parts = []
        while part := member.read(100_000):
            parts.append(part)
        found[member.name.removeprefix(str(path))] = b"".join(parts)
    return found, problems


def whats(problems: list[Problem]) -> list[str]:
    return [problem.what for problem in problems]


def tar_bytes(files: dict[str, bytes], **options: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", **options) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zip_bytes(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


FILES = {"node-a/rank0.log": LINES, "node-a/rank1.log": b"short\n", "empty.log": b""}
PACKED: dict[str, bytes] = {
    "b.tar": tar_bytes(FILES),
    "b.tar.gz": gzip.compress(tar_bytes(FILES)),
    "b.tgz": gzip.compress(tar_bytes(FILES)),
    "b.tar.zst": zstandard.compress(tar_bytes(FILES)),
    "old.tar": tar_bytes(FILES, format=tarfile.USTAR_FORMAT),
    "pax.tar": tar_bytes(FILES, format=tarfile.PAX_FORMAT),
    "b.zip": zip_bytes(FILES),
    "stored.zip": zip_bytes(FILES, zipfile.ZIP_STORED),
    "lzma.zip": zip_bytes(FILES, zipfile.ZIP_LZMA),
    "no-suffix": gzip.compress(tar_bytes(FILES)),
}


def test_plain_file(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(LINES)
    jobs, problems = expand([str(tmp_path)])
    (member,) = members(jobs[0], problems.append)
    assert (member.name, member.size) == (str(tmp_path / "x.log"), len(LINES))
    assert problems == []


@pytest.mark.parametrize("name", ["x.log.gz", "x.log.zst", "x.log", "x"])
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_compressed_files_are_known_by_their_bytes(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / name).write_bytes(pack(LINES))
    assert read(tmp_path / name) == ({"": LINES}, [])


def test_a_misleading_suffix_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "x.log.gz").write_bytes(LINES)
    assert read(tmp_path / "x.log.gz") == ({"": LINES}, [])


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_frames_in_a_row_are_one_file(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "x").write_bytes(pack(LINES) + pack(b"") + pack(b"more\n"))
    assert read(tmp_path / "x") == ({"": LINES + b"more\n"}, [])


def test_gzip_padding_is_no_fault_and_anything_else_is(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(LINES) + bytes(70_000))
    assert read(tmp_path / "x") == ({"": LINES}, [])
    (tmp_path / "x").write_bytes(gzip.compress(LINES) + b"garbage")
    found, problems = read(tmp_path / "x")
    assert found == {"": LINES}
    assert whats(problems) == ["gzip data is followed by something else, which is not read"]


def test_gzip_without_isal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    for data in (LINES, bytes(3 * MIB), os.urandom(200_000)):
        (tmp_path / "x").write_bytes(gzip.compress(data))
        assert read(tmp_path / "x") == ({"": data}, [])


def test_zstd_without_its_module_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "x.zst").write_bytes(PACKED["b.tar.zst"])
    found, problems = read(tmp_path / "x.zst")
    assert found == {}
    assert whats(problems) == ["zstd data, and the module zstandard is not installed"]


@pytest.mark.parametrize("name", PACKED)
def test_archives_give_their_files_in_order(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PACKED[name])
    found, problems = read(tmp_path / name)
    assert found == {f"!{inner}": data for inner, data in FILES.items()}
    assert list(found) == [f"!{inner}" for inner in FILES]
    assert problems == []


@pytest.mark.parametrize("name", PACKED)
def test_members_may_be_left_unread(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PACKED[name])
    jobs, problems = expand([str(tmp_path)])
    seen = [(member.name.rpartition("!")[2], member.read(10)) for member in members(jobs[0], problems.append)]
    assert seen == [(inner, data[:10]) for inner, data in FILES.items()]
    assert problems == []


def test_archives_inside_archives(tmp_path: Path) -> None:
    inner = zip_bytes({"c.log.gz": gzip.compress(b"in\n"), "d.log": LINES})
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(tar_bytes({"x.log": b"x\n", "b.zip": inner, "y.log": b"y\n"})))
    found, problems = read(tmp_path / "a.tar.gz")
    assert found == {"!x.log": b"x\n", "!b.zip!c.log.gz": b"in\n", "!b.zip!d.log": LINES, "!y.log": b"y\n"}
    assert problems == []


def test_nesting_ends_at_the_limit(tmp_path: Path) -> None:
    data = tar_bytes({"deep.log": b"deep\n"})
    for level in range(5):
        data = tar_bytes({f"{level}.log": b"%d\n" % level, f"{level}.tar": data})
    (tmp_path / "a.tar").write_bytes(data)
    found, problems = read(tmp_path / "a.tar")
    assert list(found) == ["!4.log", "!4.tar!3.log", "!4.tar!3.tar!2.log"]
    assert whats(problems) == ["is nested more than 3 archives deep, not read"]


def test_gzip_in_gzip_in_gzip_ends_at_the_limit(tmp_path: Path) -> None:
    data = b"x\n"
    for _ in range(8):
        data = gzip.compress(data)
    (tmp_path / "x.gz").write_bytes(data)
    found, problems = read(tmp_path / "x.gz")
    assert found == {}
    assert whats(problems) == ["is nested more than 3 archives deep, not read"]


@pytest.mark.parametrize("make", [tar_bytes, zip_bytes])
def test_names_that_leave_the_folder_are_only_shown(tmp_path: Path, make: Callable[[dict[str, bytes]], bytes]) -> None:
    folder = tmp_path / "in" / "here"
    folder.mkdir(parents=True)
    evil = ["../../evil.log", "/abs/evil.log", "a/../../../evil.log", "x\x1b[2Jy\n.log", "C:\\evil.log"]
    (folder / "a").write_bytes(make(dict.fromkeys(evil, b"e\n")))
    before = sorted(tmp_path.rglob("*"))
    found, problems = read(folder / "a")
    assert list(found) == [f"!{name}" for name in ("../../evil.log", "/abs/evil.log", "a/../../../evil.log")] + [
        "!x\\x1b[2Jy\\x0a.log",
        "!C:\\evil.log",
    ]
    assert set(found.values()) == {b"e\n"}
    assert problems == []
    assert sorted(tmp_path.rglob("*")) == before


def test_tar_links_are_passed_over_and_devices_named(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind in (("l", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("d", tarfile.DIRTYPE), ("c", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("./x.log")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"x\n"))
    found, problems = read(tmp_path / "a.tar")
    assert found == {"!x.log": b"x\n"}
    assert [(p.file.rpartition("!")[2], p.what) for p in problems] == [("c", "is no regular file, not read")]


@pytest.mark.parametrize("make", [tar_bytes, zip_bytes])
def test_hidden_files_and_shadow_trees_are_left_out(tmp_path: Path, make: Callable[[dict[str, bytes]], bytes]) -> None:
    names = ["._x.log", ".git/config", "__MACOSX/x.log", "a/.b/c", "x.log"]
    (tmp_path / "a").write_bytes(make(dict.fromkeys(names, b"x")))
    assert read(tmp_path / "a") == ({"!x.log": b"x"}, [])


# --- damage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pack", "lost"), [(gzip.compress, 1 << 16), (zstandard.compress, 1 << 17)])
def test_truncated_compressed_files_keep_what_came_before(
    tmp_path: Path, pack: Callable[[bytes], bytes], lost: int
) -> None:
    data = pack(NOISE)
    (tmp_path / "x").write_bytes(data[: len(data) * 3 // 4])
    found, problems = read(tmp_path / "x")
    assert NOISE.startswith(found[""])
    assert len(found[""]) > len(NOISE) * 0.74 - lost
    assert len(problems) == 1 and "ends early" in problems[0].what


def test_truncated_gzip_gives_as_much_as_zlib(tmp_path: Path) -> None:
    data = gzip.compress(LINES)
    for cut in (10, 11, 12, 20, 100, 5000, len(data) - 9, len(data) - 1):
        (tmp_path / "x").write_bytes(data[:cut])
        found, problems = read(tmp_path / "x")
        expected = zlib.decompressobj(31).decompress(data[:cut])
        assert LINES.startswith(found.get("", b""))
        assert len(found.get("", b"")) >= len(expected) - 300  # isal looks further ahead
        assert len(problems) == 1, cut


def test_corrupt_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    noise = NOISE
    data = bytearray(gzip.compress(noise))
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(64)
    (tmp_path / "x").write_bytes(data)
    found, problems = read(tmp_path / "x")
    intact = len(noise) // 2 - 40_000
    assert found[""][:intact] == noise[:intact]
    assert len(problems) == 1 and "gzip data is corrupt" in problems[0].what


@pytest.mark.parametrize("name", [name for name in PACKED if name != "no-suffix"])
def test_any_cut_of_an_archive_is_a_problem_and_no_exception(tmp_path: Path, name: str) -> None:
    data = PACKED[name]
    for cut in [*range(0, 600, 37), *range(600, len(data), len(data) // 40)]:
        (tmp_path / "x").write_bytes(data[:cut])
        found, problems = read(tmp_path / "x")
        texts = {inner: text for inner, text in found.items() if inner}
        for inner, text in texts.items():
            assert FILES[inner[1:]].startswith(text)
        if texts and sum(map(len, texts.values())) < len(LINES):
            assert problems, cut


def test_a_truncated_tar_names_the_file_that_is_cut(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(PACKED["b.tar"][:100_000])
    found, problems = read(tmp_path / "x.tar")
    assert found == {"!node-a/rank0.log": LINES[: 100_000 - 512]}
    assert problems[0] == Problem(str(tmp_path / "x.tar!node-a/rank0.log"), 0, "ends early: the archive is truncated")


def test_a_tar_cut_between_files_is_noticed(tmp_path: Path) -> None:
    one = tar_bytes({"x.log": b"x\n"})[:1024]
    for damage in (b"", b"\x01" * 512, b"y" * 100):
        (tmp_path / "x.tar").write_bytes(one + damage)
        found, problems = read(tmp_path / "x.tar")
        assert found == {"!x.log": b"x\n"}
        assert whats(problems) == ["tar archive ends early or is corrupt, what follows is not read"]


def test_a_zip_without_its_directory_is_read_from_the_front(tmp_path: Path) -> None:
    for name in ("b.zip", "stored.zip"):
        data = PACKED[name]
        (tmp_path / name).write_bytes(data[: data.index(b"PK\x01\x02")])
        found, problems = read(tmp_path / name)
        assert found == {f"!{inner}": text for inner, text in FILES.items()}
        assert "without a readable directory" in problems[0].what


def test_a_zip_with_a_wrong_checksum_is_a_problem(tmp_path: Path) -> None:
    data = bytearray(zip_bytes({"a.log": LINES, "b.log": b"b\n"}, zipfile.ZIP_STORED))
    data[1000] ^= 1
    (tmp_path / "x.zip").write_bytes(data)
    found, problems = read(tmp_path / "x.zip")
    assert found["!b.log"] == b"b\n"
    assert LINES[:900].startswith(found["!a.log"][:900])
    assert len(problems) == 1 and "zip data is corrupt" in problems[0].what


class _Pipe(io.RawIOBase):
    """A target without a position, for which zip writes lengths behind the data."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        self.data += bytes(data)  # type: ignore[call-overload]
        return len(bytes(data))  # type: ignore[call-overload]


@pytest.mark.parametrize("zip64", [False, True])
def test_zips_written_to_a_pipe_are_read_from_the_front(tmp_path: Path, zip64: bool) -> None:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        for name, text in FILES.items():
            with archive.open(name, "w", force_zip64=zip64) as file:
                file.write(text)
    (tmp_path / "x.tar").write_bytes(tar_bytes({"in.zip": bytes(pipe.data)}))
    assert read(tmp_path / "x.tar") == ({f"!in.zip!{inner}": text for inner, text in FILES.items()}, [])


def test_encrypted_members_are_problems(tmp_path: Path) -> None:
    data = bytearray(zip_bytes({"secret.log": b"s\n", "open.log": b"o\n"}, zipfile.ZIP_STORED))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "x.zip").write_bytes(data)
    (tmp_path / "y.tar").write_bytes(tar_bytes({"x.zip": bytes(data)}))
    for name, prefix in (("x.zip", "!"), ("y.tar", "!x.zip!")):
        found, problems = read(tmp_path / name)
        assert found == {f"{prefix}open.log": b"o\n"}
        assert [(p.file.removeprefix(str(tmp_path / name)), p.what) for p in problems] == [
            (f"{prefix}secret.log", "is encrypted, not read")
        ]


def test_thousands_of_encrypted_members_are_few_problems(tmp_path: Path) -> None:
    data = bytearray(zip_bytes({f"{n}.log": b"s" for n in range(1000)}, zipfile.ZIP_STORED))
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= 1
        at = data.find(b"PK\x01\x02", at + 4)
    (tmp_path / "x.zip").write_bytes(data)
    found, problems = read(tmp_path / "x.zip")
    assert found == {}
    assert [problem.count for problem in problems] == [1, 1, 1, 1, 1, 995]


def test_checkpoints_are_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(zip_bytes({"model/data.pkl": b"\x80\x02}q\x00."}))
    found, problems = read(tmp_path / "model.pt")
    assert found == {}
    assert whats(problems) == ["binary file (zip with a format of its own), not read"]


# --- bombs ------------------------------------------------------------------------------------------------------


def zeros_gz(mib: int) -> bytes:
    return gzip.compress(bytes(8 * MIB), 9) * (mib // 8)


def test_a_gzip_bomb_stops_at_the_cap_in_little_memory(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(zeros_gz(1024))
    jobs, problems = expand([str(tmp_path)])
    tracemalloc.start()
    got = 0
    for member in members(jobs[0], problems.append, Limits(inflated_bytes=50 * MIB)):
        while part := member.read(4 * MIB):
            got += len(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 50 * MIB <= got <= 51 * MIB
    assert whats(problems) == ["unpacks to more than 50 MiB, the rest is not read"]
    assert peak < 24 * MIB


def test_a_bomb_of_high_ratio_stops_early(tmp_path: Path) -> None:
    (tmp_path / "bomb.zst").write_bytes(zstandard.compress(bytes(64 * MIB)) * 16)
    found, problems = read(tmp_path / "bomb.zst")
    assert 64 * MIB <= len(found[""]) <= 256 * MIB
    assert whats(problems) == ["unpacks to more than 600 times its size, the rest is not read"]


def test_a_bomb_in_layers_counts_every_layer(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(gzip.compress(zeros_gz(200))))
    found, problems = read(tmp_path / "bomb.gz", Limits(inflated_bytes=100 * MIB, ratio=10**9))
    assert len(found[""]) <= 100 * MIB
    assert whats(problems) == ["unpacks to more than 100 MiB, the rest is not read"]


@pytest.mark.parametrize("make", [tar_bytes, zip_bytes])
def test_a_cap_ends_the_whole_archive_with_one_problem(
    tmp_path: Path, make: Callable[[dict[str, bytes]], bytes]
) -> None:
    data = make({f"{n}.log": bytes(MIB) for n in range(20)})
    (tmp_path / "x").write_bytes(data if make is zip_bytes else gzip.compress(data))
    found, problems = read(tmp_path / "x", Limits(inflated_bytes=5 * MIB))
    assert 4 <= len(found) <= 7
    assert sum("unpacks to more than 5 MiB" in what for what in whats(problems)) == 1


@pytest.mark.parametrize("make", [tar_bytes, zip_bytes])
def test_the_number_of_members_is_capped(tmp_path: Path, make: Callable[[dict[str, bytes]], bytes]) -> None:
    (tmp_path / "x").write_bytes(make({f"{n}.log": b"x" for n in range(50)}))
    found, problems = read(tmp_path / "x", Limits(members=20))
    assert len(found) == 20
    assert whats(problems) == ["holds more than 20 files, the rest is not read"]


def test_a_tar_header_of_a_gigabyte_is_refused_in_little_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 1 << 30
    (tmp_path / "x.tgz").write_bytes(gzip.compress(info.tobuf(tarfile.USTAR_FORMAT)) + zeros_gz(100))
    tracemalloc.start()
    found, problems = read(tmp_path / "x.tgz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == {}
    assert whats(problems) == ["tar archive has a header of more than 1 MiB, the rest is not read"]
    assert peak < 8 * MIB


def test_holes_of_a_sparse_tar_count(tmp_path: Path) -> None:
    pax = b"".join(
        _pax(key, value)
        for key, value in (("GNU.sparse.major", "0"), ("GNU.sparse.minor", "1"), ("GNU.sparse.name", "s.log"),
                           ("GNU.sparse.size", str(1 << 40)), ("GNU.sparse.map", f"{(1 << 40) - 1},1"))
    )  # fmt: skip
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, len(pax)
    file = tarfile.TarInfo("s.log")
    file.size = 1
    data = header.tobuf(tarfile.USTAR_FORMAT) + pax.ljust(512, b"\0") + file.tobuf() + b"x".ljust(512, b"\0")
    (tmp_path / "x.tar").write_bytes(data + bytes(1024))
    found, problems = read(tmp_path / "x.tar", Limits(inflated_bytes=10 * MIB))
    assert sum(map(len, found.values())) <= 11 * MIB
    assert any("unpacks to more than 10 MiB" in what for what in whats(problems))


def _pax(key: str, value: str) -> bytes:
    body = f" {key}={value}\n"
    length = len(body) + 2
    while len(f"{length}{body}") != length:
        length += 1
    return f"{length}{body}".encode()


# --- standard input ----------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from analyzer.sources import blocks, expand, members
jobs, problems = expand(["-"])
for member in members(jobs[0], problems.append):
    size = sum(len(block.data) for block in blocks(member, problems.append))
    print(member.name, size, member.total_lines)
print(len(problems))
"""


@pytest.mark.parametrize("name", ["plain", "b.tar.gz", "b.zip", "b.tar.zst"])
def test_standard_input(root: Path, name: str) -> None:
    data = LINES if name == "plain" else PACKED[name]
    run = subprocess.run([sys.executable, "-c", SCRIPT], input=data, capture_output=True, cwd=root, check=True)
    lines = run.stdout.decode().splitlines()
    if name == "plain":
        assert lines == [f"stdin {len(LINES)} 20000", "0"]
    else:
        assert lines == [
            f"stdin!node-a/rank0.log {len(LINES)} 20000",
            "stdin!node-a/rank1.log 6 1",
            "stdin!empty.log 0 0",
            "0",
        ]


def test_import_is_light(root: Path) -> None:
    code = "import sys, analyzer.sources; print([m for m in ('isal', 'zstandard', 'tarfile', 'zipfile') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=root, check=True, text=True)
    assert run.stdout.strip() == "[]"


def test_early_end_of_the_caller_closes_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(LINES)
    job = Job(str(tmp_path / "x.log"), "x.log", len(LINES))
    before = len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0
    problems: list[Problem] = []
    for _ in range(20):
        walk = members(job, problems.append)
        next(blocks(next(walk), problems.append))
        walk.close()  # type: ignore[attr-defined]
    after = len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0
    assert after == before
