"""Evidence: rows of the scans become checked pandas tables with the columns, types and order of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analyzer.model import EvidenceLine, InputFile, Problem, split_ref
from analyzer.schema import RAW, TABLES, Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from analyzer.scan import Scan

Row = tuple[object, ...]
INT_LIMIT = 1 << 63

_DTYPES = {"int": "Int64", "float": "Float64", "bool": "boolean", "str": "object"}


class Evidence:
    """All tables by name; a table without rows is an empty frame with its columns."""

    def __init__(
        self,
        frames: Mapping[str, pd.DataFrame],
        texts: Mapping[int, str],
        inputs: Sequence[InputFile],
        problems: Sequence[Problem],
    ) -> None:
        self._frames = dict(frames)
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._texts = dict(texts)
        self.missing: set[int] = set()
        self.inputs = tuple(inputs)
        self.problems = list(problems)

    def __getitem__(self, table: str) -> pd.DataFrame:
        frame = self._frames.get(table)
        if frame is None:
            frame = self._frames[table] = make_frame(TABLES[table], ())
        return frame

    def has(self, table: str) -> bool:
        """Whether the table holds any row."""
        return table in self._frames and len(self._frames[table]) > 0

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table as plain Python values, None for NULL; shared, not to be changed."""
        found = self._rows.get(table)
        if found is None:
            found = self._rows[table] = to_rows(self[table])
        return found

    def edited(self) -> None:
        """Frames were changed in place: rows made from them before are stale."""
        self._rows.clear()

    def set(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Puts the rows of a derived table, in a fixed order."""
        spec = TABLES[table]
        tuples = [tuple(row.get(name) for name in spec.names) for row in rows]
        self._frames[table] = make_frame(spec, tuples)
        self._rows.pop(table, None)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Every table that holds rows."""
        return {name: frame for name, frame in self._frames.items() if len(frame)}

    def cite(self, ref: int) -> EvidenceLine:
        """The line behind a reference."""
        input_id, line = split_ref(ref)
        name = self.inputs[input_id].file if input_id < len(self.inputs) else "?"
        text = self._texts.get(ref)
        if text is None:
            self.missing.add(ref)
        return EvidenceLine(name, line, text or "")

    def peek(self, ref: int) -> str:
        """The text of a line where the scan kept it, else nothing."""
        return self._texts.get(ref, "")

    def add_texts(self, texts: Mapping[int, str]) -> None:
        """Texts of lines that were read again; what is still missing stays empty."""
        self._texts.update(dict.fromkeys(self.missing, "") | dict(texts))
        self.missing.clear()


def to_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as dictionaries of plain Python values, None for NULL."""
    columns = [frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame.columns]
    return [dict(zip(frame.columns, values, strict=True)) for values in zip(*columns, strict=True)]


def make_frame(table: Table, rows: Sequence[Row]) -> pd.DataFrame:
    """A frame with the table's columns and types; a value of the wrong type is a bug and raises TypeError."""
    import pandas as pd

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    data = {
        column.name: pd.Series(_checked(table, column, values), dtype=_DTYPES[column.type])
        for column, values in zip(table.columns, columns, strict=True)
    }
    return pd.DataFrame(data)


def _checked(table: Table, column: Column, values: Sequence[object]) -> list[object]:
    allowed: tuple[type, ...] = {"int": (int,), "float": (float, int), "bool": (bool, int), "str": (str,)}[column.type]
    for value in set(map(type, values)):
        if value is not type(None) and not issubclass(value, allowed):
            raise TypeError(f"{table.name}.{column.name}: {value.__name__} is no {column.type}")
    if column.type == "int":
        return [v if v is None or -INT_LIMIT <= v < INT_LIMIT else None for v in values]  # type: ignore[operator]
    return list(values)


def build(scan: Scan) -> Evidence:
    """The raw tables of a scan."""
    frames = {table.name: make_frame(table, scan.rows[table.name]) for table in RAW if scan.rows.get(table.name)}
    return Evidence(frames, scan.texts, scan.inputs, scan.problems)
