from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.engine.sqltext import SqlError, check_select, expansion, named_tables, terms, tokens, without

CASES = [
    ("SELECT 1 FROM a WHERE x = 1", ["WHERE x = 1"]),
    ("SELECT 1 FROM a WHERE x = 1 AND y = 2 OR z", ["WHERE x = 1", "WHERE y = 2 OR z"]),
    ("SELECT 1 FROM a WHERE x BETWEEN 1 AND 2 AND y", ["WHERE x BETWEEN 1 AND 2", "WHERE y"]),
    ("SELECT 1 FROM a WHERE x = 'a AND b' AND y -- AND z\n", ["WHERE x = 'a AND b'", "WHERE y"]),
    ("SELECT 1 FROM a WHERE (x AND y) AND /* AND */ z", ["WHERE (x AND y)", "WHERE z"]),
    ("SELECT 1 FROM a WHERE CASE WHEN x AND y THEN 1 END AND z", ["WHERE CASE WHEN x AND y THEN 1 END", "WHERE z"]),
    ("SELECT 1 FROM a JOIN b ON a.x = b.x AND a.y LEFT JOIN c ON c.x", ["ON a.x = b.x", "ON a.y", "ON c.x"]),
    ("SELECT 1 FROM a JOIN b ON a.x = b.x, c WHERE d", ["ON a.x = b.x", "WHERE d"]),
    ("SELECT 1 FROM a GROUP BY x HAVING count(*) > 1 AND y ORDER BY z", ["HAVING count(*) > 1", "HAVING y"]),
    ("SELECT 1 FROM a WHERE f(x, y) AND z IN (1, 2) LIMIT 3", ["WHERE f(x, y)", "WHERE z IN (1, 2)"]),
    ("SELECT count(*) FILTER (WHERE x) FROM a WHERE y UNION SELECT 1 WHERE z;", ["WHERE x", "WHERE y", "WHERE z"]),
    ("WITH c AS (SELECT 1 FROM a WHERE x AND y) SELECT 1 FROM c", ["WHERE x", "WHERE y"]),
    ('SELECT 1 FROM a WHERE "and" = [where] AND `on`', ['WHERE "and" = [where]', "WHERE `on`"]),
    (
        "SELECT 1 FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND b.y) AND z",
        ["WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND b.y)", "WHERE b.x = a.x", "WHERE b.y", "WHERE z"],
    ),
    ("SELECT 1 FROM a WHERE x IS NOT DISTINCT FROM y AND z", ["WHERE x IS NOT DISTINCT FROM y", "WHERE z"]),
]


@pytest.mark.parametrize(("sql", "expected"), CASES)
def test_terms(sql, expected):
    assert [f"{term.clause} {term.text}" for term in terms(sql)] == expected


@pytest.mark.parametrize("sql", [sql for sql, _ in CASES])
def test_a_query_without_a_term_is_still_one_select(sql):
    for term in terms(sql):
        check_select(without(sql, term))
        assert len(terms(without(sql, term))) <= len(terms(sql))


def test_a_comment_before_the_end_does_not_swallow_the_rest():
    sql = "SELECT 1 FROM a WHERE x = 1 -- first\n AND y = 2"
    assert [without(sql, term).split() for term in terms(sql)] == [
        "SELECT 1 FROM a WHERE 1 -- first AND y = 2".split(),
        "SELECT 1 FROM a WHERE x = 1 -- first AND 1".split(),
    ]


def test_named_tables_are_those_outside_comments():
    # SQLite reads FROM 'ledger' as a name, so that text counts.
    sql = "SELECT 'ledger' FROM XID x JOIN \"event\" e -- gpu\n JOIN [trend]"
    assert named_tables(sql, {"xid", "event", "gpu", "ledger", "trend", "edge"}) == {"xid", "event", "trend", "ledger"}


def test_expansion_counts_the_uses_of_ctes():
    assert expansion(tokens("WITH a AS (SELECT 1), b AS (SELECT 1 FROM a, a) SELECT 1 FROM b, a")) == 4
    chain = "".join(f", a{i} (x) AS NOT MATERIALIZED (SELECT 1 FROM a{i - 1}, a{i - 1})" for i in range(1, 40))
    with pytest.raises(SqlError, match="CTEs"):
        check_select(f"WITH a0 (x) AS (SELECT 1){chain} SELECT 1 FROM a39")


@given(st.text(alphabet="()'\"`[];-*/ \nANDWHEREOCSLTxy01,", max_size=80))
def test_no_text_breaks_the_reader(text):
    try:
        check_select(text)
    except SqlError as error:
        assert 0 <= error.offset <= len(text)
        return
    for term in terms(text):
        assert text[term.start : term.end].split() == term.text.split()
