"""Scans jobs, in several processes where there is enough to read: by file, and a large plain file in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analyzer.gate import make_scanner
from analyzer.merge import append_part, append_scan
from analyzer.model import Problem
from analyzer.parsers import DOCUMENTS, FORMATS
from analyzer.scan import Scan, ScanDriver
from analyzer.sources import Job, cut_points, members, part_of

PARALLEL_BYTES = 200_000_000
"""Below this total one process is faster than starting others."""

Progress = Callable[[Job], None]


@dataclass(frozen=True, slots=True)
class _Task:
    """A job, or the part of its file between two offsets."""

    job: Job
    start: int = 0
    end: int | None = None


def scan_jobs(jobs: Sequence[Job], processes: int, progress: Progress | None = None) -> Scan:
    """Reads every job; what is found does not depend on the number of processes."""
    if processes < 2 or sum(job.size for job in jobs) < PARALLEL_BYTES:
        driver = ScanDriver(FORMATS, DOCUMENTS)
        for job in jobs:
            _read(_Task(job), driver)
            if progress:
                progress(job)
        return driver.scan
    return _scan_in_parallel(jobs, processes, progress)


def _read(task: _Task, driver: ScanDriver) -> None:
    scan = driver.scan
    report = scan.problems.append
    try:
        if task.end is not None:
            driver.member(part_of(task.job, task.start, task.end, report), len(scan.inputs), report)
            return
        for member in members(task.job, report):
            driver.member(member, len(scan.inputs), report)
    except OSError as error:
        report(Problem(task.job.name, 0, f"cannot be read: {error.strerror or error}"))


def _scan_task(task: _Task) -> Scan:
    driver = ScanDriver(FORMATS, DOCUMENTS)
    _read(task, driver)
    return driver.scan


def _scan_in_parallel(jobs: Sequence[Job], processes: int, progress: Progress | None) -> Scan:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    merged = Scan()
    tasks = [task for job in jobs for task in _tasks(job, processes)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        outside = sorted((task for task in tasks if task.job.path != "-"), key=lambda task: -_bytes(task))
        futures = {task: pool.submit(_scan_task, task) for task in outside}
        for task in tasks:
            part = futures[task].result() if task in futures else _scan_task(task)
            if task.start:
                append_part(merged, part)
            else:
                append_scan(merged, part)
            if progress:
                progress(replace(task.job, size=_bytes(task)))
    return merged


def _bytes(task: _Task) -> int:
    return (task.end if task.end is not None else task.job.size) - task.start


def _tasks(job: Job, processes: int) -> list[_Task]:
    """One task, or several parts of a large file that is cut where no dump or table stands."""
    count = min(processes, job.size // (PARALLEL_BYTES // 2))
    blocks = dict.fromkeys(text.encode() for fmt in FORMATS if fmt.blocks for text in fmt.literals)
    scanner = make_scanner(tuple(blocks)) if count > 1 else None
    points = cut_points(job, count, lambda data: not scanner.scan(data)) if scanner else []
    if not points:
        return [_Task(job)]
    ends = [*points, job.size]
    return [_Task(job, start, end) for start, end in zip([0, *points], ends, strict=True)]
