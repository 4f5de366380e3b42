"""Whether two findings are about the same place, as far as both know theirs."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.engine.rule import SCOPES, Scope
from analyzer.model import Where

# Names that mean something only inside one host: GPU 0 of one host is not GPU 0 of another.
_LOCAL: frozenset[Scope] = frozenset({"gpu", "link", "process"})


def agree(a: Where, b: Where, scopes: Sequence[Scope] = SCOPES) -> bool:
    """True unless both know one of the fields and share no value of it; the unknown agrees.

    Scope gpu compares bus ids where both have them, else indexes; GPUs, links and processes of different hosts
    never agree.
    """
    if ("host" in scopes or _LOCAL & set(scopes)) and not _overlap(a.host, b.host):
        return False
    return all(_agrees(a, b, scope) for scope in scopes)


def _agrees(a: Where, b: Where, scope: Scope) -> bool:
    if scope == "gpu" and a.bus_id and b.bus_id:
        return _overlap(_folded(a.bus_id), _folded(b.bus_id))
    if scope == "link":
        return _overlap([_pair(link) for link in a.link], [_pair(link) for link in b.link])
    return _overlap(getattr(a, scope), getattr(b, scope))


def _overlap(a: Sequence[object], b: Sequence[object]) -> bool:
    return not a or not b or not set(a).isdisjoint(b)


def _folded(words: Sequence[str]) -> list[str]:
    return [word.lower() for word in words]


def _pair(link: str) -> tuple[str, ...]:
    """GPU0-GPU3 and GPU3-GPU0 are the same link."""
    return tuple(sorted(link.lower().split("-")))
