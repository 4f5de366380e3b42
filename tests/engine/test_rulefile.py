from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.engine import load_rules, read_rule, read_rules
from analyzer.engine.strict_yaml import MAX_BYTES
from analyzer.errors import RuleError

CATALOGUE = {"gpu.fallen-off-bus", "gpu.row-remap-pending", "symptom.sigabrt", "symptom.cuda-oom"}


def refusal(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        read_rule(text, "r.yaml", CATALOGUE)
    message = str(caught.value)
    assert "\n" not in message and message.isprintable()
    assert caught.value.help_text
    return message


def test_a_sound_rule_loads(text):
    rule = read_rule(text(), "r.yaml", CATALOGUE)
    assert rule.id == rule.cause == "gpu.fallen-off-bus"
    assert rule.columns == ("host", "bus_id", "at", "ref", "refs", "boot_s")
    assert rule.tables == {"xid"}
    assert rule.needs == (("xid",),)
    assert rule.lines["query"] == 8


@pytest.mark.parametrize(
    ("part", "change", "expected"),
    [
        ("role", "rolle: root", "r.yaml:2: unknown key 'rolle' (did you mean role?)"),
        ("role", "role: rot", "r.yaml:2: role: 'rot' is not known (did you mean root?)"),
        ("role", "role: [root]", "r.yaml:2: role must be one value, not a list"),
        ("role", None, "r.yaml:1: key 'role' is missing"),
        ("role", "role: root\nrole: info", "r.yaml:3: key 'role' is already in line 2"),
        ("role", "role: &a root", "r.yaml:2: an anchor (&name); write the value out"),
        ("role", "role: *a", "alias"),
        ("role", "role: !!python/object/apply:os.system [id]", "r.yaml:2: a tag ("),
        ("role", "role: !!str root", "r.yaml:2: a tag ("),
        ("role", "role: root\n<<: {id: x}", "r.yaml:3: unknown key '<<'"),
        ("role", "role: root\n? [a]\n: b", "r.yaml:3: a key that is not a word"),
        ("role", "role: root\n---\nrole: root", "r.yaml:3: a second document"),
        ("role", "role: 'root", "not YAML"),
        ("role", "role:\troot\n\tx: 1", "not YAML"),
        ("role", "role: \x07root", "not YAML"),
        ("role", 'role: "\\e[31mroot"', "r.yaml:2: role: '\\x1b[31mroot'"),
        ("cause", "cause: gpu.falen-off-bus", "r.yaml:1: unknown cause 'gpu.falen-off-bus' (did you mean gpu.fallen"),
        ("cause", "cause: ''", "r.yaml:1: cause is empty"),
        ("cause", "cause: gpu.fallen-off-bus\nid: A b", "r.yaml:2: id 'A b' must be"),
        ("confidence", "confidence: 90", "r.yaml:4: confidence must be a number from 0 to 1, not '90'"),
        ("confidence", "confidence: true", "r.yaml:4: confidence must be a number"),
        ("confidence", "confidence: .nan", "r.yaml:4: confidence must be a number"),
        ("needs", "needs: [xids]", "r.yaml:6: needs: unknown table 'xids' (did you mean xid"),
        ("needs", "needs: xid", "r.yaml:6: needs must be a list, not a value"),
        ("needs", "needs: ['xid|evnt']", "unknown table 'evnt' (did you mean event"),
        ("key", "key: [hots]", "r.yaml:12: key: the query has no column 'hots' (did you mean host?)"),
        ("message", "message: '{hots}'", "r.yaml:13: message: the query has no column 'hots' (did you mean host?)"),
        ("message", "message: '{host.__class__}'", "r.yaml:13: {host.__class__} is not a column"),
        ("message", "message: '{host[0]}'", "is not a column"),
        ("message", "message: '{host!r}'", "is not a column"),
        ("message", "message: '{0}'", "is not a column"),
        ("message", "message: '{}'", "is not a column"),
        ("message", "message: '{host:>99999999}'", "r.yaml:13: unknown unit '>99999999'"),
        ("message", "message: '{host:gib}'", "r.yaml:13: unknown unit 'gib' (did you mean GiB"),
        ("message", "message: '{host'", "r.yaml:13: a single brace"),
        ("message", "message: |\n  one\n  two {hos\n", "r.yaml:15: a single brace"),
        ("fix", "fix: ['{nope}']", "fix: the query has no column 'nope'"),
        ("fix", "fix: [{a: b}]", "r.yaml:14: fix must hold texts"),
        ("fix", "fix: ['x']\nexplains: [symptom.sigabrt]", "an entry of explains must be a mapping"),
        ("fix", "fix: ['x']\nexplains: [{cause: symptom.sigabr}]", "(did you mean symptom.sigabrt?)"),
        ("fix", "fix: ['x']\nexplains: [{cause: 'nope.*'}]", "unknown cause 'nope.*'"),
        ("fix", "fix: ['x']\nexplains: [{cause: 's*.x'}]", "a * may only end"),
        ("fix", "fix: ['x']\nexplains: [{cause: 'symptom.*', scope: [hots]}]", "scope: 'hots' is not known (did you mean"),
        ("fix", "fix: ['x']\nexplains: [{cause: 'symptom.*', before: yes}]", "before must be true or false"),
    ],
)
def test_a_broken_key_is_one_line(text, part, change, expected):
    assert expected in refusal(text(**{part: change}))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT hots, ref FROM xid", "r.yaml:8: query: no such column: hots (did you mean host?)"),
        ("SELECT ref\n  FROM xid\n  WHERE cde = 79", "r.yaml:10: query: no such column: cde (did you mean code"),
        ("SELECT x.ref, x.bus FROM xid x", "no such column: x.bus (did you mean bus_id"),
        ("SELECT ref FROM xidd", "query: no such table: xidd (did you mean xid"),
        ("SELECT ref, medain(code) FROM xid", "no such function: medain (did you mean median?)"),
        ("SELECT ref, load_extension('x') FROM xid", "not authorized to use function: load_extension"),
        ("SELEC ref FROM xid", "r.yaml:8: query: the query must start with SELECT or WITH"),
        ("SELECT ref FROM xid\n  WHERE AND", 'r.yaml:9: query: near "AND": syntax error'),
        ("INSERT INTO xid(ref) VALUES (1)", "must start with SELECT or WITH"),
        ("WITH a AS (SELECT 1) DELETE FROM xid", "syntax error"),
        ("SELECT 1 AS ref;\n  DROP TABLE xid", "r.yaml:8: query: a second statement"),
        ("SELECT ref FROM xid WHERE code = ?", "a parameter (?)"),
        ("SELECT ref FROM xid WHERE code = :x", "a parameter (:)"),
        ("SELECT ref FROM xid WHERE text = 'x", "a quote that is not closed"),
        ("SELECT (ref FROM xid", "not closed"),
        ("SELECT ref) FROM xid", ") without its opening"),
        ("SELECT host, bus_id FROM xid", "no column ref or refs"),
        ("SELECT ref, host, host FROM xid", "column 'host' is there twice"),
        ("SELECT 1 AS ref, sql FROM sqlite_master", "prohibited"),
        ("-- nothing", "the query is empty"),
    ],
)
def test_a_broken_query_names_its_line(text, sql, expected):
    assert expected in refusal(text(query="query: |\n  " + sql))


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ("[]", "tests: none fires"),
        ("[{name: a, given: {}, expect: []}]", "tests: none fires"),
        ("[{name: a, given: {}, expect: [{host: x}]}]", "tests: none stays quiet"),
        ("[{name: a, given: {xidd: []}, expect: []}]", "given: unknown table 'xidd' (did you mean xid"),
        ("[{name: a, given: {xid: [{cod: 1}]}, expect: []}]", "table xid has no column 'cod' (did you mean code"),
        ("[{name: a, given: {xid: [{code: many}]}, expect: []}]", "column code takes an integer, not 'many'"),
        ("[{name: a, given: {xid: [{code: true}]}, expect: []}]", "column code takes an integer"),
        ("[{name: a, given: {xid: [{code: 99999999999999999999}]}, expect: []}]", "column code takes an integer"),
        ("[{name: a, given: {xid: [{at: soon}]}, expect: []}]", "column at takes a number"),
        ("[{name: a, given: {}, expect: [{hots: x}]}]", "unknown key 'hots' (did you mean host?)"),
        ("[{name: a, given: {}, expect: [{}]}]", "expect: an empty entry"),
        ("[{name: a, given: {}, expects: []}]", "unknown key 'expects' (did you mean expect?)"),
    ],
)
def test_broken_tests_are_one_line(text, tests, expected):
    assert expected in refusal(text(tests=f"tests: {tests}"))


def test_two_tests_of_one_name_are_refused(text):
    tests = "[{name: a, given: {}, expect: [{host: x}]}, {name: a, given: {}, expect: []}]"
    assert "two tests are named 'a'" in refusal(text(tests=f"tests: {tests}"))


def test_deep_nesting_is_refused_before_it_exhausts_the_stack():
    assert "nest" in refusal("cause: " + "[" * 50_000)
    assert "r.yaml:1: nested deeper than 12 levels" in refusal("cause: " + "[" * 20 + "]" * 20)


@pytest.mark.parametrize("whole", ["", "# only a comment\n", "just a text", "- a\n- b\n"])
def test_a_file_that_is_no_mapping_is_refused(whole):
    assert refusal(whole).startswith("r.yaml:1: ")


def test_yaml_words_stay_text(read):
    tests = """tests:
  - name: no
    given: {xid: [{host: no, bus_id: 0000:3b:00.0, code: 79, process: 010, text: 2024-01-01}]}
    expect: [{host: no}]
  - {name: off, given: {xid: [{host: on}]}, expect: []}"""
    row = read(tests=tests).tests[0].given["xid"][0]
    assert row == {"host": "no", "bus_id": "0000:3b:00.0", "code": 79, "process": "010", "text": "2024-01-01"}


def test_folders_are_read_in_order_and_ids_are_unique(tmp_path: Path, text):
    for name, identity in (("b/two", "x.b"), ("a/one", "x.a"), ("a/.hidden", "x.c")):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text(id=f"id: {identity}"))
    assert [rule.id for rule in load_rules([tmp_path])] == ["x.a", "x.b"]
    (tmp_path / "c.yaml").write_text(text(id="id: x.a"))
    with pytest.raises(RuleError, match=r"c.yaml:\d+: id 'x.a' is already that of .*one.yaml"):
        load_rules([tmp_path / "a", tmp_path / "c.yaml"])


def test_each_broken_file_gives_one_line_and_sound_ones_are_kept(tmp_path: Path, text):
    (tmp_path / "a.yaml").write_text("nope: 1\n")
    (tmp_path / "b.yaml").write_bytes(b"cause: x\ntitle: \xff\n")
    (tmp_path / "c.yml").write_text(text())
    (tmp_path / "d.yaml").write_text("#" * (MAX_BYTES + 1))
    (tmp_path / "e.yaml").symlink_to("/dev/zero")
    (tmp_path / "f.yaml").write_text(text())
    loaded = read_rules([tmp_path])
    assert [rule.file for rule in loaded.rules] == [str(tmp_path / "f.yaml")]
    shown = [str(error).removeprefix(f"{tmp_path}/") for error in loaded.errors]
    assert [line.split(":")[:2] for line in shown] == [
        ["a.yaml", "1"],
        ["b.yaml", "2"],
        ["c.yml", "0"],
        ["d.yaml", "0"],
        ["e.yaml", "0"],
    ]
    with pytest.raises(RuleError) as caught:
        load_rules([tmp_path])
    assert len(str(caught.value).splitlines()) == 5


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(RuleError, match="no such folder of rules"):
        load_rules([tmp_path / "nope"])


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(text):
    with pytest.raises(RuleError) as caught:
        read_rule("nope: 1", "\x1b[31m.yaml")
    assert str(caught.value).isprintable()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_to_a_file_is_more_than_one_error_line(text, data):
    whole = text()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    damage = data.draw(st.one_of(st.text(max_size=6), st.sampled_from(["{", "}", "[", ": ", "\n", "'", "*a", "&a ", "- "])))
    try:
        rule = read_rule(whole[:start] + damage + whole[end:], "r.yaml", CATALOGUE)
    except RuleError as error:
        assert str(error).startswith("r.yaml:") and str(error).isprintable()
    else:
        assert rule.cause in CATALOGUE
