"""Paths of the user become jobs: every file once, in a stable order, and a clear word on what cannot be read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from analyzer.model import Problem
from analyzer.sources import Job, expand, members


def names(jobs: list[Job], base: Path) -> list[str]:
    return [os.path.relpath(job.name, base) for job in jobs]


def test_folders_are_walked_in_order_without_hidden_entries(tmp_path: Path) -> None:
    for name in ("b/rank1.log", "b/rank0.log", "a.log", ".hidden.log", ".git/config", "c/d/e/deep.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    jobs, problems = expand([str(tmp_path)])
    assert names(jobs, tmp_path) == ["a.log", "b/rank0.log", "b/rank1.log", "c/d/e/deep.txt"]
    assert problems == []
    assert {job.size for job in jobs} == {2}


def test_a_name_is_the_path_as_given_joined_with_the_part_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs" / "sub").mkdir(parents=True)
    (tmp_path / "logs" / "sub" / "x.log").write_text("x")
    monkeypatch.chdir(tmp_path)
    jobs, _ = expand(["logs/"])
    assert [job.name for job in jobs] == ["logs/sub/x.log"]


def test_hidden_files_are_read_when_named(tmp_path: Path) -> None:
    (tmp_path / ".job.log").write_text("x")
    jobs, problems = expand([str(tmp_path / ".job.log")])
    assert len(jobs) == 1 and not problems


def test_what_does_not_exist_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "there.log").write_text("x")
    jobs, problems = expand([str(tmp_path / "gone.log"), str(tmp_path / "there.log")])
    assert names(jobs, tmp_path) == ["there.log"]
    assert problems == [Problem(str(tmp_path / "gone.log"), 0, "does not exist")]


def test_a_path_below_a_regular_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    jobs, problems = expand([str(tmp_path / "file" / "below")])
    assert jobs == []
    assert [problem.what for problem in problems] == ["cannot be read: not a directory"]


def test_impossible_paths_are_problems() -> None:
    jobs, problems = expand(["a\x00b", "x" * 5000, ""])
    assert jobs == []
    assert len(problems) == 3
    assert problems[0].file == "a\\x00b"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permission bits do not bind root")
def test_unreadable_files_and_folders_are_problems(tmp_path: Path) -> None:
    (tmp_path / "secret.log").write_text("x")
    (tmp_path / "secret.log").chmod(0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(0)
    try:
        jobs, problems = expand([str(tmp_path)])
    finally:
        (tmp_path / "folder").chmod(0o700)
    assert jobs == []
    assert {problem.what for problem in problems} == {"cannot be read: permission denied"}


def test_loops_of_links_end_and_dead_links_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "x.log").write_text("x")
    (folder / "again").symlink_to(folder, target_is_directory=True)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "dead").symlink_to(tmp_path / "nowhere")
    (folder / "self").symlink_to(folder / "self")
    jobs, problems = expand([str(folder)])
    assert names(jobs, folder) == ["x.log"]
    assert {os.path.basename(problem.file): problem.what for problem in problems}["dead"] == "is a link to nothing, not read"
    assert len(problems) == 2


def test_each_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("x")
    (tmp_path / "latest.log").symlink_to(tmp_path / "rank0.log")
    jobs, problems = expand([str(tmp_path / "rank0.log"), str(tmp_path), str(tmp_path)])
    assert names(jobs, tmp_path) == ["rank0.log"]
    assert problems == []


def test_deep_folders_need_no_recursion(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(300):
        deep = deep / "d"
    os.makedirs(deep)
    (deep / "x.log").write_text("x")
    jobs, _ = expand([str(tmp_path)])
    assert len(jobs) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_sockets_and_devices_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        jobs, problems = expand([".", "/dev/null"])
    assert jobs == []
    assert [problem.what for problem in problems] == [
        "is a named pipe, not read",
        "is a socket, not read",
        "is a character device, not read",
    ]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no /dev/fd")
def test_a_process_substitution_is_read() -> None:
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, b"from a command\n")
        os.close(write_end)
        jobs, problems = expand([f"/dev/fd/{read_end}"])
        assert problems == []
        assert [member.read(100) for job in jobs for member in members(job, problems.append)] == [b"from a command\n"]
    finally:
        os.close(read_end)


def test_stdin_is_one_job() -> None:
    jobs, problems = expand(["-", "-"])
    assert jobs == [Job("-", "stdin", 0)]
    assert problems == []


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_names_with_odd_characters_are_shown_escaped(tmp_path: Path) -> None:
    try:
        (tmp_path / "a\x1b[31m\nb.log").write_text("x")
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.log")).write_text("x")
    except OSError:
        pytest.skip("the file system takes no such names")
    jobs, _ = expand([str(tmp_path)])
    assert names(jobs, tmp_path) == ["a\\x1b[31m\\x0ab.log", "caf\\xe9.log"]
    assert all(job.name.isprintable() for job in jobs)


def test_a_file_that_vanishes_after_the_search_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("x")
    jobs, problems = expand([str(tmp_path)])
    (tmp_path / "x.log").unlink()
    assert list(members(jobs[0], problems.append)) == []
    assert [problem.what for problem in problems] == ["cannot be read: no such file or directory"]
