"""Strongly connected components, so that a cycle of ``explains`` is seen as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet


def components(edges: Sequence[AbstractSet[int]]) -> list[int]:
    """For each node the number of its component (Kosaraju's method, without recursion)."""
    reverse: list[set[int]] = [set() for _ in edges]
    for start, ends in enumerate(edges):
        for end in ends:
            reverse[end].add(start)
    group = [-1] * len(edges)
    for number, root in enumerate(reversed(list(_finished(edges)))):
        if group[root] < 0:
            group[root] = number
            stack = [root]
            while stack:
                for node in reverse[stack.pop()]:
                    if group[node] < 0:
                        group[node] = number
                        stack.append(node)
    return group


def _finished(edges: Sequence[AbstractSet[int]]) -> Iterator[int]:
    """Nodes in the order in which a depth-first walk leaves them."""
    seen = [False] * len(edges)
    for root in range(len(edges)):
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(edges[root]))]
        while stack:
            node, rest = stack[-1]
            following = next((end for end in rest if not seen[end]), None)
            if following is None:
                stack.pop()
                yield node
            else:
                seen[following] = True
                stack.append((following, iter(edges[following])))
