"""The engine: rule files, the sandbox that runs their queries, evaluation, ranking and the test of rules.

    rules = load_rules([Path("rules")], catalogue)
    database = Database.from_frames(frames, tables_of(rules))
    evaluation = evaluate(rules, database, cite)        # .findings, .not_evaluated

It knows the schema and the model, no format and no report.
"""

from analyzer.engine.candidate import Candidate
from analyzer.engine.evaluate import Evaluation, evaluate, run_rule, tables_of
from analyzer.engine.explain import show, skeleton
from analyzer.engine.rank import rank
from analyzer.engine.rule import Explains, Rule, RuleTest
from analyzer.engine.rulefile import Loaded, load_rules, read_rule, read_rules
from analyzer.engine.sandbox import Database, QueryFault
from analyzer.engine.selftest import Failure, test_rule, test_rules

__all__ = [
    "Candidate",
    "Database",
    "Evaluation",
    "Explains",
    "Failure",
    "Loaded",
    "QueryFault",
    "Rule",
    "RuleTest",
    "evaluate",
    "load_rules",
    "rank",
    "read_rule",
    "read_rules",
    "run_rule",
    "show",
    "skeleton",
    "tables_of",
    "test_rule",
    "test_rules",
]
