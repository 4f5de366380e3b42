"""Scans jobs, in several processes by file where there is enough to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from analyzer.model import Problem, make_ref
from analyzer.parsers import FORMATS
from analyzer.scan import Scan, ScanDriver
from analyzer.schema import TABLES
from analyzer.sources import Job, members

PARALLEL_BYTES = 200_000_000
"""Below this total one process is faster than starting others."""

Progress = Callable[[Job], None]


def scan_jobs(jobs: Sequence[Job], processes: int, progress: Progress | None = None) -> Scan:
    """Reads every job; the result does not depend on the number of processes."""
    total = sum(job.size for job in jobs)
    usable = min(processes, sum(1 for job in jobs if job.path != "-"))
    if usable < 2 or total < PARALLEL_BYTES:
        return _scan(jobs, progress)
    return _scan_in_parallel(jobs, usable, progress)


def _scan(jobs: Sequence[Job], progress: Progress | None = None) -> Scan:
    driver = ScanDriver(FORMATS)
    scan = driver.scan
    for job in jobs:
        _read(job, driver)
        if progress:
            progress(job)
    return scan


def _read(job: Job, driver: ScanDriver) -> None:
    scan = driver.scan
    try:
        for member in members(job, scan.problems.append):
            driver.member(member, len(scan.inputs), scan.problems.append)
    except OSError as error:
        scan.problems.append(Problem(job.name, 0, f"cannot be read: {error.strerror or error}"))


def _scan_one(job: Job) -> Scan:
    return _scan([job])


def _scan_in_parallel(jobs: Sequence[Job], processes: int, progress: Progress | None) -> Scan:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    merged = Scan()
    local = [job for job in jobs if job.path == "-"]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        order = sorted((job for job in jobs if job.path != "-"), key=lambda job: -job.size)
        futures = {job: pool.submit(_scan_one, job) for job in order}
        for job in jobs:
            _merge(merged, _scan([job]) if job in local else futures[job].result())
            if progress:
                progress(job)
    return merged


def _merge(into: Scan, part: Scan) -> None:
    """Appends a part; its inputs and streams get the next numbers."""
    input_shift = make_ref(len(into.inputs), 0)
    streams = len(into.rows.get("stream", []))
    for table, rows in part.rows.items():
        names = TABLES[table].names
        refs = [i for i, name in enumerate(names) if name in ("ref", "event_ref")]
        target = into.rows.setdefault(table, [])
        for row in rows:
            values = list(row)
            for i in refs:
                values[i] = _plus(values[i], input_shift)
            values[1] = _plus(values[1], streams)
            if table == "stream":
                values[5] = _plus(values[5], len(into.inputs))
            target.append(tuple(values))
    into.texts.update({ref + input_shift: text for ref, text in part.texts.items()})
    for name, counts in part.recognised.items():
        known = into.recognised.setdefault(name, [0, 0])
        known[0] += counts[0]
        known[1] += counts[1]
    into.problems.extend(part.problems)
    into.inputs.extend(replace(entry) for entry in part.inputs)


def _plus(value: object, shift: int) -> object:
    return value + shift if isinstance(value, int) else value
