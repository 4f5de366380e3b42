from __future__ import annotations

import math
import sqlite3
import statistics
import time

import pandas as pd
import pytest

from analyzer.engine import Database, QueryFault
from analyzer.engine import sandbox as module
from analyzer.engine.textfunctions import TEXT_FUNCTIONS
from analyzer.schema import TABLES

needs_limits = pytest.mark.skipif(not hasattr(sqlite3.Connection, "setlimit"), reason="Python 3.10 has no setlimit")
COUNTING = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "


@pytest.fixture(scope="module")
def database() -> Database:
    rows = [{"host": "n1", "code": code, "ref": code, "text": "x" * 100} for code in range(2000)]
    return Database.from_rows({"xid": rows})


def fault(database: Database, sql: str, **limits: float) -> QueryFault:
    with pytest.raises(QueryFault) as caught:
        database.query(sql, **limits)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO xid(code) VALUES (1)",
        "WITH a AS (SELECT 1) INSERT INTO xid(code) SELECT 1",
        "UPDATE xid SET code = 1",
        "WITH a AS (SELECT 1) UPDATE xid SET code = 1",
        "WITH a AS (SELECT 1) DELETE FROM xid",
        "DELETE FROM xid",
        "REPLACE INTO xid(code) VALUES (1)",
        "DROP TABLE xid",
        "CREATE TABLE z(a)",
        "CREATE TEMP TABLE z(a)",
        "ALTER TABLE xid ADD COLUMN z",
        "ATTACH '/tmp/x.db' AS y",
        "PRAGMA table_info(xid)",
        "PRAGMA query_only = OFF",
        "VACUUM INTO '/tmp/x.db'",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "SAVEPOINT a",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT fts3_tokenizer('x')",
        "SELECT sqlite_version()",
        "SELECT randomblob(1000000000)",
        "SELECT zeroblob(1000000000)",
        "SELECT name FROM sqlite_master",
        "SELECT count(*) FROM sqlite_master",
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM pragma_table_info('xid')",
        "SELECT count(*) FROM pragma_table_info('xid')",
        "SELECT * FROM json_each('[1]')",
        "SELECT count(*) FROM json_each('[1]')",
        "SELECT * FROM dbstat",
        "SELECT 'x' REGEXP 'x'",
        "SELECT '\0'",
    ],
)
def test_all_but_select_is_refused_and_changes_nothing(database, sql):
    fault(database, sql)
    assert database.query("SELECT count(*) AS n FROM xid") == [{"n": 2000}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM (SELECT host FROM xid)",
        "WITH c AS (SELECT host FROM xid), d AS (SELECT count(*) AS n FROM c) SELECT n FROM d",
        "WITH c AS MATERIALIZED (SELECT host FROM xid) SELECT count(*) AS n FROM c",
        "SELECT n FROM (SELECT row_number() OVER (ORDER BY code) AS n FROM xid) ORDER BY n DESC LIMIT 1",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) SELECT max(n) AS n FROM c",
    ],
)
def test_what_rules_need_is_allowed(database, sql):
    assert database.query(sql) == [{"n": 2000}]


@pytest.mark.parametrize(
    "sql", [COUNTING + "SELECT count(*) FROM c", "SELECT count(*) FROM xid a, xid b, xid c, xid d"]
)
def test_endless_queries_hit_the_time_limit(database, sql):
    start = time.monotonic()
    assert fault(database, sql, seconds=0.3).kind == "time"
    assert time.monotonic() - start < 3


def test_too_many_rows(database):
    assert fault(database, "SELECT 1 FROM xid a, xid b").kind == "rows"
    assert len(database.query("SELECT 1 AS a FROM xid", limit=2000)) == 2000
    assert fault(database, "SELECT 1 AS a FROM xid", limit=1999).kind == "rows"


@needs_limits
@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT x FROM c",
        "WITH a AS (SELECT group_concat(text) AS x FROM xid) "
        "SELECT replace(replace(x, 'x', 'xxxxxxxxxxxx'), 'x', 'xxxxxxxxxxxx') FROM a",
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT printf('%1000000000d', 1)",
        "SELECT format('%999d', 1)",
    ],
)
def test_a_huge_value_is_refused(database, sql):
    assert fault(database, sql).kind in ("memory", "value")


@pytest.mark.skipif(not module._resident_bytes(), reason="no /proc")
@pytest.mark.parametrize(
    "sql",
    [
        COUNTING + "SELECT median(x) FROM c",
        COUNTING + "SELECT x FROM c ORDER BY -x",
        "SELECT a.code FROM xid a, xid b, xid c ORDER BY a.code + b.code + c.code",
        "WITH RECURSIVE t(x) AS (SELECT group_concat(text) FROM xid UNION SELECT x || 'a' FROM t) SELECT count(x) FROM t",
    ],
)
def test_memory_is_bounded_while_a_query_runs(database, monkeypatch, sql):
    monkeypatch.setattr(module, "GROWTH_BYTES", 32 << 20)
    before = module._resident_bytes()
    assert fault(database, sql, seconds=60).kind == "memory"
    assert module._resident_bytes() - before < 256 << 20


@pytest.mark.parametrize("call", ["instr({a}, {b})", "replace({a}, {b}, 'c')", "trim({a}, {b})", "{a} LIKE '%a%a%a%b'"])
def test_one_call_takes_no_time_that_no_limit_sees(database, call):
    big = "(SELECT group_concat(a.text, '') FROM xid a, (SELECT 1 FROM xid LIMIT 20))"
    sql = "SELECT " + call.format(a=big, b=f"(substr({big}, 1, 1000000) || 'b')")
    start = time.monotonic()
    database.query(sql, seconds=20)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    "expression",
    [
        "printf('%d', 3.7)",
        "printf('%5.2f|', 2)",
        "printf('%,d', 1234567)",
        "printf('%s %s', 'a')",
        "printf('%d%%', 5)",
        "printf('%x %05d %-5s|', 255, 42, 'ab')",
        "printf('%d', 'abc')",
        "printf('%s', NULL)",
        "printf(NULL)",
        "printf('%g', 0.25)",
        "printf('%.3s%c', 'abcdef', 'xyz')",
        "instr('abc', 'c')",
        "instr('abc', '')",
        "instr(12345, 34)",
        "instr(NULL, 1)",
        "replace('aXa', 'a', 'bb')",
        "replace('a', '', 'b')",
        "trim('xxhixx', 'x')",
        "ltrim('  a ', ' ')",
        "rtrim('ab', 'ba')",
    ],
)
def test_stand_ins_give_what_sqlite_gives(expression):
    own, stock = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    for name, (arguments, function) in TEXT_FUNCTIONS.items():
        own.create_function(name, arguments, function)
    assert own.execute(f"SELECT {expression}").fetchone() == stock.execute(f"SELECT {expression}").fetchone()
    own.close()
    stock.close()


def test_aggregates():
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    database = Database.from_rows({"xid": [{"code": v, "text": "b" if v > 3 else "a"} for v in values] + [{}]})
    row = database.query(
        "SELECT median(code) AS median, stddev(code) AS stddev, mode(code) AS mode, mode(text) AS tie,"
        " percentile(code, 0) AS low, percentile(code, 50) AS half, percentile(code, 100) AS high,"
        " median(host) AS absent, stddev(1) AS flat, gib(2147483648) AS gib, median(text) AS words FROM xid"
    )[0]
    assert row["median"] == row["half"] == 3.5
    assert math.isclose(row["stddev"], statistics.stdev(values))
    assert (row["mode"], row["tie"], row["low"], row["high"]) == (1, "a", 1, 9)
    assert (row["absent"], row["words"], row["flat"], row["gib"]) == (None, None, 0, 2)


def test_all_tables_exist_and_are_strict():
    database = Database().seal()
    for name in TABLES:
        assert database.query(f'SELECT * FROM "{name}"') == []
    with pytest.raises(sqlite3.IntegrityError):
        Database.from_rows({"xid": [{"code": "seventy-nine"}]})


def test_frames_load_with_every_kind_of_missing_value():
    frame = pd.DataFrame(
        {
            "ref": [1, 2, 3],
            "host": pd.array(["n1", None, "n3"], dtype="string"),
            "code": [79.0, float("nan"), 31.0],
            "pid": pd.array([1, pd.NA, 3], dtype="Int64"),
            "boot_s": [1.5, None, float("nan")],
            "process": pd.Categorical(["a", None, "a"]),
            "text": ["a", None, float("nan")],
            "not_in_the_schema": [1, 2, 3],
        }
    )
    ring = pd.DataFrame({"ref": [1, 2], "active": [True, None]})
    database = Database.from_frames({"xid": frame, "gpu_link": ring, "nonsense": frame})
    rows = database.query("SELECT ref, host, code, pid, boot_s, process, text, at, typeof(code) AS t FROM xid ORDER BY ref")
    assert [tuple(row.values()) for row in rows] == [
        (1, "n1", 79, 1, 1.5, "a", "a", None, "integer"),
        (2, None, None, None, None, None, None, None, "null"),
        (3, "n3", 31, 3, None, "a", None, None, "integer"),
    ]
    assert [row["active"] for row in database.query("SELECT active FROM gpu_link")] == [1, None]


def test_only_the_tables_asked_for_are_loaded_but_all_are_counted():
    frame = pd.DataFrame({"ref": [1]})
    database = Database.from_frames({"xid": frame, "event": frame}, {"xid"})
    assert database.counts["event"] == database.counts["xid"] == 1
    assert "no such table" in str(fault(database, "SELECT 1 FROM event"))


def test_half_a_million_rows_load_in_seconds():
    count = 500_000
    frame = pd.DataFrame({"ref": range(count), "host": "n1", "at": 1.5, "code": 79, "text": "some text"})
    start = time.monotonic()
    database = Database.from_frames({"xid": frame}, {"xid"})
    assert time.monotonic() - start < 10
    assert database.query("SELECT count(*) AS n FROM xid WHERE code = 79") == [{"n": count}]


def test_columns_of_a_query_are_known_without_running_it():
    database = Database().seal()
    assert database.columns("SELECT host, count(*) AS n FROM xid; -- end") == ("host", "n")
    start = time.monotonic()
    assert database.columns(COUNTING + "SELECT x FROM c") == ("x",)
    assert time.monotonic() - start < 1
