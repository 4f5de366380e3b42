"""DataFrames as columns of plain Python values that SQLite can bind: NaN, NaT and NA become None."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from analyzer.schema import Table, Type

if TYPE_CHECKING:
    import pandas

_PYTHON: dict[Type, Callable[[Any], Any]] = {"int": int, "bool": int, "float": float, "str": str}


def columns_of(frame: pandas.DataFrame, table: Table) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Names and values of the columns that frame and table share, in the order of the table."""
    shared = [column for column in table.columns if column.name in frame.columns]
    return tuple(c.name for c in shared), [_values(frame[c.name], c.type) for c in shared]


def _values(series: pandas.Series[Any], kind: Type) -> list[Any]:
    """One column. Columns of numpy numbers take the fast way."""
    missing = series.isna()
    if series.dtype.kind in "iub" and not missing.any():
        return series.tolist()
    if series.dtype.kind == "f" and kind == "float" and not missing.any():
        return series.tolist()
    values = series.astype(object).tolist()
    convert = _PYTHON[kind]
    if not missing.any():
        return list(map(convert, values))
    return [None if gone else convert(value) for value, gone in zip(values, missing.tolist(), strict=True)]
