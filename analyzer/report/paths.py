"""Shorter file names for readers: the folder that all inputs share is named once, in the list of inputs."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from analyzer.model import EvidenceLine, InputFile, Problem, Report, Where


def common_folder(report: Report) -> str:
    """The folder that all inputs lie in, with its final slash; empty where there is none."""
    folders = [row.file.split("/")[:-1] for row in report.inputs]
    if not folders:
        return ""
    shared = []
    for parts in zip(*folders, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "".join(f"{part}/" for part in shared)


def _shortened(value: Any, folder: str) -> Any:
    if isinstance(value, (EvidenceLine, InputFile, Problem)):
        return replace(value, file=value.file.removeprefix(folder))
    if isinstance(value, Where):
        return replace(value, file=tuple(name.removeprefix(folder) for name in value.file))
    if isinstance(value, tuple):
        return tuple(_shortened(item, folder) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _shortened(getattr(value, f.name), folder) for f in fields(value)})
    return value


def without_folder(report: Report) -> tuple[Report, str]:
    """The report with names relative to the shared folder, and that folder (empty where nothing was shortened)."""
    folder = common_folder(report)
    return (cast(Report, _shortened(report, folder)), folder) if folder not in ("", "/") else (report, "")
