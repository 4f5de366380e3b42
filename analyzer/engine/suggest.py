"""Error texts of rule files: ``file:line: what (did you mean x?)``, always one printable line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from analyzer.errors import RuleError

_LONGEST_QUOTE = 80
_NEARLY = 0.1
_HELP = "crashcart rules test DIR checks rule files before they are used."


def printable(text: str) -> str:
    """The text with every control or unassigned character escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(text: object) -> str:
    """A value from a rule file, made short and printable: it goes to a terminal inside an error text."""
    words = str(text)
    shown = printable(words[:_LONGEST_QUOTE])
    return f"'{shown}...'" if len(words) > _LONGEST_QUOTE else f"'{shown}'"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean x?)`` for the nearest known names, or nothing when none is near."""
    names = sorted(set(known))
    folded = {name.casefold(): name for name in names}
    sought = word.casefold()[:200]
    near = difflib.get_close_matches(sought, list(folded), n=3, cutoff=0.6)
    likeness = {name: difflib.SequenceMatcher(None, name, sought).ratio() for name in near}
    near = [name for name in near if likeness[name] > max(likeness.values()) - _NEARLY]
    return f" (did you mean {', '.join(folded[name] for name in near)}?)" if near else ""


def rule_error(file: str, line: int, what: str) -> RuleError:
    """The one way to report a fault of a rule file; no control character of the file survives."""
    return RuleError(printable(f"{file}:{line}: {what}"), _HELP)
