"""Joins what several processes scanned: references, inputs and streams get the numbers of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from analyzer.model import InputFile, make_ref, split_ref
from analyzer.scan import Scan
from analyzer.schema import TABLES

_INPUT_COLUMN = TABLES["stream"].names.index("input")
_LABEL_COLUMN = TABLES["stream"].names.index("label")


def append_scan(into: Scan, scan: Scan) -> None:
    """Adds the scan of other files."""
    inputs, streams = len(into.inputs), len(into.rows.get("stream", []))
    shift = make_ref(inputs, 0)
    _append(into, scan, shift, inputs, lambda stream: stream + streams)
    into.inputs.extend(scan.inputs)
    into.problems.extend(scan.problems)


def append_part(into: Scan, part: Scan) -> None:
    """Adds the scan of the next part of the file that was added last."""
    last = len(into.inputs) - 1
    before = into.inputs[last]
    known = {str(row[_LABEL_COLUMN]): row[1] for row in into.rows.get("stream", []) if row[_INPUT_COLUMN] == last}
    count = len(into.rows.get("stream", []))
    numbers: dict[int, int] = {}
    fresh: list[tuple[tuple[object, ...], int]] = []
    for row in part.rows.pop("stream", []):
        own, label = row[1], str(row[_LABEL_COLUMN])
        assert isinstance(own, int)
        seen = known.get(label)
        if isinstance(seen, int):
            numbers[own] = seen
        else:
            numbers[own] = count + len(fresh)
            fresh.append((row, numbers[own]))
    if part.rows.get("last_line"):  # what ended the part before was not the end of the file
        ends = into.rows.get("last_line", [])
        into.rows["last_line"] = [row for row in ends if not isinstance(row[0], int) or split_ref(row[0])[0] != last]
    shift = make_ref(last, before.lines)
    for row, number in fresh:
        values = list(row)
        values[0], values[1], values[_INPUT_COLUMN] = _plus(row[0], shift), number, last
        into.rows.setdefault("stream", []).append(tuple(values))
    _append(into, part, shift, last, lambda stream: numbers[stream])
    into.problems.extend(replace(p, line=p.line + before.lines) if p.line else p for p in part.problems)
    into.inputs[last] = _joined(before, part.inputs)


def _append(into: Scan, scan: Scan, shift: int, inputs: int, stream_of: Callable[[int], int]) -> None:
    for table, rows in scan.rows.items():
        refs = [i for i, name in enumerate(TABLES[table].names) if name in ("ref", "event_ref")]
        target = into.rows.setdefault(table, [])
        for row in rows:
            values = list(row)
            for i in refs:
                values[i] = _plus(values[i], shift)
            stream = values[1]
            values[1] = stream_of(stream) if isinstance(stream, int) else stream
            if table == "stream":
                values[_INPUT_COLUMN] = _plus(values[_INPUT_COLUMN], inputs)
            target.append(tuple(values))
    into.texts.update({ref + shift: text for ref, text in scan.texts.items()})
    for name, counts in scan.recognised.items():
        known = into.recognised.setdefault(name, [0, 0])
        known[0] += counts[0]
        known[1] += counts[1]


def _plus(value: object, shift: int) -> object:
    return value + shift if isinstance(value, int) else value


def _joined(before: InputFile, parts: list[InputFile]) -> InputFile:
    kinds = before.kind.split(", ")
    for part in parts:
        kinds += [kind for kind in part.kind.split(", ") if kind not in kinds]
    kinds = [kind for kind in kinds if kind != "unknown"] or ["unknown"]
    return replace(
        before,
        kind=", ".join(kinds),
        bytes=before.bytes + sum(part.bytes for part in parts),
        lines=before.lines + sum(part.lines for part in parts),
        recognised_lines=before.recognised_lines + sum(part.recognised_lines for part in parts),
    )
