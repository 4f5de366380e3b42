"""Reads cited lines again whose text the scan did not keep (it keeps the first thousands of each table)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from analyzer.model import Problem, make_ref, split_ref
from analyzer.scan import TEXT_CAP
from analyzer.sources import Member, blocks, clean, expand, members, split_prefix


def read_lines(paths: Sequence[str], refs: Collection[int]) -> dict[int, str]:
    """Texts of the references. Standard input cannot be read twice: its lines stay away."""
    wanted: dict[int, list[int]] = defaultdict(list)
    for ref in refs:
        input_id, line = split_ref(ref)
        wanted[input_id].append(line)
    found: dict[int, str] = {}
    input_id = 0
    for job in sorted(expand(paths)[0], key=lambda job: (job.name, job.path)):
        if not wanted:
            break
        for member in members(job, _ignore):
            lines = wanted.pop(input_id, None)
            if lines and job.path != "-":
                found.update({make_ref(input_id, n): text for n, text in _lines(member, sorted(lines)).items()})
            input_id += 1
    return found


def _ignore(problem: Problem) -> None:
    """The scan has told of it already."""


def _lines(member: Member, numbers: list[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for block in blocks(member, _ignore):
        number, at = block.first_line, 0
        if numbers and numbers[0] >= number + block.data.count(b"\n"):
            continue
        while numbers and at < len(block.data):
            end = block.data.find(b"\n", at)
            if number == numbers[0]:
                found[number] = split_prefix(clean(block.data[at:end])[-1]).text[:TEXT_CAP]
                numbers.pop(0)
            number, at = number + 1, end + 1
        if not numbers:
            break
    return found
