"""The catalogue at hand: what a cause, an Xid, a CUDA error or a message of NCCL means, and what to do about it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from analyzer.analysis import catalogue
from analyzer.derive.xids import CATALOGUE as XIDS
from analyzer.engine import load_rules
from analyzer.engine.rule import Rule
from analyzer.errors import CrashcartError
from analyzer.grammar_store import rules_folder
from analyzer.parsers.cuda_codes import BY_NAME, BY_NUMBER, by_text
from analyzer.parsers.nccl_warn import classify
from analyzer.schema import TABLES

KINDS = ("xid", "sxid", "cuda", "nccl")


def explain(words: Sequence[str]) -> str:
    """Text for ``ID``, ``xid N``, ``sxid N``, ``cuda N`` or ``nccl MESSAGE``. CrashcartError for what is unknown."""
    first, rest = words[0], " ".join(words[1:])
    if first in KINDS and not rest:
        raise CrashcartError(f"explain {first}: say which one", f"crashcart explain {first} 79")
    if first in ("xid", "sxid"):
        return "\n".join(_xid(first, rest))
    if first == "cuda":
        return "\n".join(_cuda(rest))
    if first == "nccl":
        return "\n".join(_nccl(rest))
    return "\n".join(_cause(first))


def _rules() -> list[Rule]:
    return load_rules([rules_folder()], catalogue())


def _cause(cause: str) -> Iterator[str]:
    rules = [rule for rule in _rules() if cause in (rule.cause, rule.id)]
    if not rules:
        known = sorted(catalogue())
        close = get_close_matches(cause, known, 3, 0.5)
        if cause in known:
            raise CrashcartError(f"{cause}: known, but no rule looks for it yet")
        raise CrashcartError(f"no cause {cause}", f"near: {', '.join(close)}" if close else "crashcart rules list")
    yield cause
    for rule in rules:
        yield f"\n{rule.title}" + (f"   [rule {rule.id}]" if len(rules) > 1 else "")
        yield f"  {rule.role}, {rule.severity}, confidence {rule.confidence}"
        yield f"  {' '.join(rule.message.text.split())}"
        for need in rule.needs:
            hints = dict.fromkeys(TABLES[name].hint for name in need if TABLES[name].hint)
            yield f"  needs {' or '.join(need)}" + (f": {' or '.join(hints)}" if hints else "")
        yield from (f"  not: {' '.join(text.text.split())}" for text in rule.considered)
        yield from (f"  do: {' '.join(text.text.split())}" for text in rule.fix)


def _xid(kind: str, number: str) -> Iterator[str]:
    with XIDS.open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(line for line in source if not line.startswith("#")))
    found = [row for row in rows if row["kind"].lower() == kind and row["code"] == number]
    if not found:
        raise CrashcartError(f"no {kind} {number} in the catalogue", f"crashcart explain {kind} NUMBER")
    for row in found:
        yield f"{row['kind']} {row['code']} {row['mnemonic']}"
        yield f"  {row['meaning']}"
        origin, action = row["origin"].replace("|", " or "), row["action"].replace("_", " ")
        yield f"  origin {origin}, {row['severity']}, action {action}"
        if row["follower"] == "1":
            yield "  It usually only follows another event: look for what stands before it."


def _cuda(word: str) -> Iterator[str]:
    error = BY_NUMBER.get(int(word)) if word.isdigit() else BY_NAME.get(word) or by_text(word)
    if error is None:
        raise CrashcartError(f"no CUDA error {word}", "crashcart explain cuda 700, or cuda cudaErrorIllegalAddress")
    yield f"{error.number} {error.name}"
    yield f"  {error.text}"
    yield from _asking(rf"'{error.name}'|\bcode (?:= |IN \()[^)]*\b{error.number}\b")


def _nccl(message: str) -> Iterator[str]:
    fault = classify(message)
    yield f"class {fault.kind}" + (f", {fault.bytes:,} bytes" if fault.bytes else "")
    if fault.peer:
        yield f"  peer {fault.peer}: look at what that side logged first"
    yield from _asking(f"'{fault.kind}'")


def _asking(pattern: str) -> Iterator[str]:
    """The rules whose query asks for it."""
    wanted = re.compile(pattern)
    for rule in _rules():
        if wanted.search(rule.query) and not rule.cause.startswith("symptom."):
            yield f"  may show {rule.cause}: {rule.title}"
