"""The database that rules query: SQLite in memory, one STRICT table per table of the schema, SELECT only.

Four fences: an authorizer that knows only SELECT, the tables of the schema and a list of functions; a time
limit; a cap on rows and on the length of any one value; and two limits on memory (SQLite's own for the process,
and, where /proc exists, the growth of the process during one query: SQLite's alone let a query take 632 MB).
"""

from __future__ import annotations

import mmap
import re
import sqlite3
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from analyzer.engine.aggregates import ALLOWED, register
from analyzer.engine.sqltext import SqlError, bare, check_select
from analyzer.errors import CrashcartError, RuleError
from analyzer.schema import TABLES

if TYPE_CHECKING:
    import pandas

SECONDS = 5.0
ROWS = 10_000
VALUE_BYTES = 16_000_000
# SQLite allows this limit only to fall, so that one value serves for the whole process.
HEAP_BYTES = 1 << 30
GROWTH_BYTES = 256 << 20
_STEPS = 5_000
_PAGE = mmap.PAGESIZE
_TYPES = {"int": "INTEGER", "float": "REAL", "str": "TEXT", "bool": "INTEGER"}
_LIMITS = {
    "SQLITE_LIMIT_LENGTH": VALUE_BYTES,
    "SQLITE_LIMIT_SQL_LENGTH": 256 * 1024,
    "SQLITE_LIMIT_EXPR_DEPTH": 200,
    "SQLITE_LIMIT_COMPOUND_SELECT": 100,
    "SQLITE_LIMIT_VDBE_OP": 250_000,
    "SQLITE_LIMIT_ATTACHED": 0,
    "SQLITE_LIMIT_LIKE_PATTERN_LENGTH": 200,
    "SQLITE_LIMIT_TRIGGER_DEPTH": 1,
    "SQLITE_LIMIT_WORKER_THREADS": 0,
}
_FUNCTION_FAULT = "a function got what it cannot take (printf: widths up to 99; replace: 16,000,000 characters)"
_DENIED = re.compile(r"not authorized|prohibited", re.IGNORECASE)


class QueryFault(RuleError):
    """A query that failed; ``kind`` is sql, refused, time, memory, rows or value."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


class Database:
    """The tables of one analysis, gone with the object or by ``close()``.

    ``counts`` tells the rows of each table, loaded or not.
    """

    def __init__(self, tables: Collection[str] | None = None) -> None:
        self.tables = frozenset(TABLES if tables is None else tables)
        self.counts: dict[str, int] = dict.fromkeys(TABLES, 0)
        self._stopped = ""
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self.close = weakref.finalize(self, self._connection.close)
        _limit(self._connection)
        strict = " STRICT" if sqlite3.sqlite_version_info >= (3, 37) else ""
        for name in sorted(self.tables):
            columns = ", ".join(f'"{c.name}" {_TYPES[c.type]}' for c in TABLES[name].columns)
            self._connection.execute(f'CREATE TABLE "{name}" ({columns}){strict}')
        register(self._connection)

    @classmethod
    def from_frames(
        cls, frames: Mapping[str, pandas.DataFrame], tables: Collection[str] | None = None
    ) -> Database:
        """Loads DataFrames by table name; of the tables outside ``tables`` only the number of rows is kept.

        Columns that a frame lacks are NULL, those that the schema lacks are left out.
        """
        from analyzer.engine.frames import columns_of

        database = cls(tables)
        for name, frame in frames.items():
            if name not in TABLES:
                continue
            if name in database.tables and len(frame):
                names, columns = columns_of(frame, TABLES[name])
                database._insert(name, names, zip(*columns, strict=True))
            database.counts[name] = len(frame)
        return database.seal()

    @classmethod
    def from_rows(
        cls, rows: Mapping[str, Sequence[Mapping[str, object]]], tables: Collection[str] | None = None
    ) -> Database:
        """Loads rows (column -> value) by table name, for tests."""
        database = cls(tables)
        for name, entries in rows.items():
            names = TABLES[name].names
            if name in database.tables:
                database._insert(name, names, ([entry.get(n) for n in names] for entry in entries))
            database.counts[name] = len(entries)
        return database.seal()

    def seal(self) -> Database:
        """Ends the loading: from here on the connection refuses all but SELECT."""
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.set_authorizer(_authorize)
        return self

    def query(self, sql: str, limit: int = ROWS, seconds: float = SECONDS) -> list[dict[str, Any]]:
        """The rows of a SELECT as mappings of column to value. Raises QueryFault."""
        try:
            check_select(sql)
        except SqlError as error:
            raise QueryFault("refused", str(error)) from None
        return self._guarded(sql, limit, seconds)[1]

    def columns(self, sql: str) -> tuple[str, ...]:
        """The columns that a SELECT gives, without running it. Raises QueryFault."""
        return self._guarded(f"SELECT * FROM (\n{bare(sql)}\n) LIMIT 0", 1, SECONDS)[0]

    def _insert(self, name: str, columns: Sequence[str], rows: Any) -> None:
        names = ", ".join(f'"{column}"' for column in columns)
        places = ", ".join("?" * len(columns))
        try:
            self._connection.execute("BEGIN")
            self._connection.executemany(f'INSERT INTO "{name}" ({names}) VALUES ({places})', rows)
            self._connection.execute("COMMIT")
        except MemoryError:
            raise CrashcartError(
                f"table {name}: the evidence does not fit into {HEAP_BYTES >> 20} MiB",
                "Analyze fewer inputs at once, or only the time around the failure.",
            ) from None

    def _guarded(self, sql: str, limit: int, seconds: float) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
        self._stopped = ""
        self._connection.set_progress_handler(self._watch(time.monotonic() + seconds), _STEPS)
        try:
            cursor = self._connection.execute(sql)
            found = cursor.fetchmany(limit + 1)
            names = tuple(column[0] for column in cursor.description or ())
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError, OverflowError) as error:
            raise self._fault(error, seconds) from None
        finally:
            self._connection.set_progress_handler(None, 0)
        if len(found) > limit:
            raise QueryFault("rows", f"the query gives more than {limit:,} rows")
        return names, [dict(zip(names, row, strict=True)) for row in found]

    def _watch(self, deadline: float) -> Any:
        before = _resident_bytes()

        def check() -> int:
            if time.monotonic() > deadline:
                self._stopped = "time"
            elif before and _resident_bytes() - before > GROWTH_BYTES:
                self._stopped = "memory"
            return 1 if self._stopped else 0

        return check

    def _fault(self, error: BaseException, seconds: float) -> QueryFault:
        text = " ".join(str(error).split())
        if self._stopped == "time":
            return QueryFault("time", f"the query ran longer than {seconds:g} s")
        if self._stopped == "memory" or isinstance(error, MemoryError) or "out of memory" in text:
            return QueryFault("memory", f"the query needs more than {GROWTH_BYTES >> 20} MiB of memory")
        if "too big" in text:
            return QueryFault("memory", f"the query makes a value of more than {VALUE_BYTES:,} bytes")
        if "user-defined function" in text:
            return QueryFault("value", _FUNCTION_FAULT)
        return QueryFault("refused" if _DENIED.search(text) else "sql", text)


def _limit(connection: sqlite3.Connection) -> None:
    """Sets what this Python and SQLite can limit (3.10 has no setlimit)."""
    connection.execute(f"PRAGMA hard_heap_limit = {HEAP_BYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")
    with suppress(AttributeError):
        for name, value in _LIMITS.items():
            connection.setlimit(getattr(sqlite3, name), value)


def _authorize(action: int, first: str | None, second: str | None, base: str | None, source: str | None) -> int:
    """SELECT, reading the tables of the schema, listed functions and recursion; all else is refused."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and (first in TABLES or _is_counted(first, second)):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in ALLOWED:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _is_counted(table: str | None, column: str | None) -> bool:
    """Whether this is how SQLite asks for count(*) of a CTE: a name of the query's own, no column."""
    return not column and not (table or "").lower().startswith(("sqlite_", "pragma_"))


def _resident_bytes() -> int:
    """Resident memory of this process, 0 where /proc does not tell it."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as stream:
            return int(stream.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
