"""The whole route: paths -> scan -> evidence -> derived tables -> rules -> ranked findings -> report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analyzer import __version__
from analyzer.assemble import assemble
from analyzer.derive import derive
from analyzer.engine import Database, evaluate, load_rules, tables_of
from analyzer.engine.rule import Rule
from analyzer.errors import InputError, RuleError
from analyzer.evidence import Evidence, build
from analyzer.grammar_store import rules_folder
from analyzer.model import Problem, Report
from analyzer.parallel import Progress, scan_jobs
from analyzer.reread import read_lines
from analyzer.sources import expand


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for. ``jobs`` 0 means one process per core."""

    paths: tuple[str, ...]
    baseline: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    jobs: int = 0


def catalogue() -> frozenset[str]:
    """The ids of causes and symptoms that rules may name."""
    return frozenset((rules_folder() / "causes.txt").read_text(encoding="utf-8").split())


def shipped_and_own_rules(folders: Sequence[str]) -> list[Rule]:
    """The shipped rules and those of the user's folders; RuleError names the first broken file."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise InputError(
                f"{folder}: no such folder of rules", "--rules takes a folder that holds .yaml rule files."
            )
    shipped = load_rules([rules_folder()], catalogue())
    own = load_rules([Path(folder) for folder in folders]) if folders else []
    for rule in own:
        if any(rule.id == known.id for known in shipped):
            raise RuleError(f"{rule.file}: id '{rule.id}' is that of a shipped rule; give it a suffix such as ':own'")
    return sorted([*shipped, *own], key=lambda rule: rule.id)


def gather(paths: Sequence[str], jobs: int, progress: Progress | None = None) -> Evidence:
    """Evidence of the paths; what could not be read is in its problems. InputError when nothing could be opened."""
    found, problems = expand(paths)
    if not found:
        what = "; ".join(f"{p.file}: {p.what}" for p in problems[:3]) or "no files below the given paths"
        raise InputError(what, "Give log files, folders or archives; '-' reads standard input.")
    found.sort(key=lambda job: (job.name, job.path))  # numbers of inputs must not depend on the order of the arguments
    scan = scan_jobs(found, jobs or os.cpu_count() or 1, progress)
    evidence = build(scan)
    evidence.problems = [*problems, *evidence.problems]
    return evidence


def analyze(options: Options, progress: Progress | None = None) -> Report:
    """Reads the paths, judges them and returns the finished report."""
    rules = shipped_and_own_rules(options.rules)
    evidence = gather(options.paths, options.jobs, progress)
    baseline = gather(options.baseline, options.jobs) if options.baseline else None
    if baseline is not None:
        derive(baseline)
        evidence.problems += [Problem(f"baseline: {p.file}", p.line, p.what, p.count) for p in baseline.problems]
    derive(evidence, baseline)
    database = Database.from_frames(evidence.frames(), tables_of(rules))
    meta = {"crashcart": __version__, "rules": len(rules)}
    report = assemble(evidence, evaluate(rules, database, evidence.cite), baseline, meta)
    if evidence.missing:
        evidence.add_texts(read_lines(options.paths, evidence.missing))
        report = assemble(evidence, evaluate(rules, database, evidence.cite), baseline, meta)
    return report


def rows_of(rule: Rule, paths: Sequence[str]) -> list[dict[str, object]]:
    """The rows that a rule's query finds in the inputs."""
    evidence = gather(paths, 1)
    derive(evidence)
    return list(Database.from_frames(evidence.frames(), tables_of([rule])).query(rule.query))
