"""Pairs of GPUs as pictures: the matrix of a host (a real table) and, up to eight GPUs, the polygon in ring order."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analyzer.model import LinkRow
from analyzer.report.digest import is_odd
from analyzer.report.units import latency

_ROOMY, _FULL, _SMALL = 5, 8, 16
_WARM, _HOT = 1.2, 1.5
_HOSTS = 3
_WIDTH, _HEIGHT = 456, 300
_NODE = (68, 26)


@dataclass(frozen=True, slots=True)
class Node:
    """A GPU in the polygon."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A pair in the polygon: CSS class, ends, the label and where it stands."""

    kind: str
    x1: float
    y1: float
    x2: float
    y2: float
    label: str
    x: float
    y: float
    anchor: str


@dataclass(frozen=True, slots=True)
class HostPairs:
    """The pairs of one host. ``cells`` maps (row, column) to a pair; ``left_out`` counts GPUs without a row."""

    host: str
    names: tuple[str, ...]
    cells: dict[tuple[str, str], LinkRow]
    compact: bool
    left_out: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def natural(name: str) -> tuple[object, ...]:
    """Sort key by which GPU10 follows GPU9."""
    return tuple((1, int(part)) if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", name))


def latency_micro(value_us: float) -> str:
    """A latency with the proper sign of the unit, for a page that surely is UTF-8."""
    return latency(value_us).replace(" us", "\u00a0\u00b5s")


def heat(link: LinkRow) -> str:
    """The shade of a cell: hot (odd or from 1.5 times the usual), warm (from 1.2 times) or none."""
    ratio = link.ratio or 0.0
    if is_odd(link) or ratio >= _HOT:
        return "hot"
    return "warm" if ratio >= _WARM else ""


def _ring_order(names: Sequence[str], links: Iterable[LinkRow]) -> list[str]:
    """The names along the ring where the ring edges form one, else as they are."""
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for link in links:
        if link.in_ring and link.a != link.b:
            neighbours[link.a].append(link.b)
            neighbours[link.b].append(link.a)
    order = [names[0]]
    while True:
        following = [name for name in neighbours[order[-1]] if name not in order]
        if not following:
            return order if len(order) == len(names) else list(names)
        order.append(following[0])


def _nodes(order: Sequence[str]) -> tuple[Node, ...]:
    """Corners of a polygon, clockwise from the upper left."""
    wide, high = _WIDTH / 2 - _NODE[0] / 2 - 2, _HEIGHT / 2 - _NODE[1] / 2 - 2
    start = -math.pi / 2 - math.pi / len(order)
    points = [start + 2 * math.pi * i / len(order) for i in range(len(order))]
    stretch = max(abs(math.cos(p)) for p in points) or 1.0, max(abs(math.sin(p)) for p in points) or 1.0
    return tuple(
        Node(name, _WIDTH / 2 + wide * math.cos(p) / stretch[0], _HEIGHT / 2 + high * math.sin(p) / stretch[1])
        for name, p in zip(order, points, strict=True)
    )


def _edge(link: LinkRow, a: Node, b: Node, crowded: bool) -> Edge:
    """One edge; in a crowded picture only what is not normal has a label, the matrix has all figures."""
    kind = "slow" if heat(link) == "hot" else "ring" if link.in_ring else "off"
    label = ""
    if (kind == "slow" or (kind == "ring" and not crowded)) and link.latency_us is not None:
        ratio = f", {link.ratio:.2f} times" if kind == "slow" and link.ratio is not None else ""
        label = f"{latency_micro(link.latency_us)} {link.path or ''}".strip() + ratio
    part = 0.5 if link.in_ring else 0.36  # off the centre, where the diagonals cross
    x, y = a.x + part * (b.x - a.x), a.y + part * (b.y - a.y)
    across, down = abs(b.x - a.x), abs(b.y - a.y)
    anchor = "middle" if across >= down / 4 else "start" if x < _WIDTH / 2 else "end"
    x += {"start": 8, "end": -8, "middle": 0}[anchor]
    if down < across / 4:  # beside a level edge, towards the middle of the picture
        clear = 14 if across > _WIDTH / 2 else 26  # a short edge: the label must pass below its ends
        y += clear if y < _HEIGHT / 2 else 2 - clear
    return Edge(kind, a.x, a.y, b.x, b.y, label, x, y, anchor)


def _polygon(names: Sequence[str], links: Sequence[LinkRow]) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    if not 2 <= len(names) <= _FULL:
        return (), ()
    nodes = _nodes(_ring_order(names, links))
    by_name = {node.name: node for node in nodes}
    edges = [_edge(link, by_name[link.a], by_name[link.b], len(names) > _ROOMY) for link in links if link.a != link.b]
    order = {"off": 0, "ring": 1, "slow": 2}
    return nodes, tuple(sorted(edges, key=lambda edge: order[edge.kind]))


def _host(host: str, links: Sequence[LinkRow]) -> HostPairs:
    names = sorted({name for link in links for name in (link.a, link.b)}, key=natural)
    shown = names
    if len(names) > _SMALL:
        odd = {name for link in links if heat(link) for name in (link.a, link.b)}
        shown = sorted(odd, key=natural)[:_SMALL]
    cells = {(link.b, link.a): link for link in links} | {(link.a, link.b): link for link in links}
    nodes, edges = _polygon(names, links)
    return HostPairs(host, tuple(shown), cells, len(names) > _FULL, len(names) - len(shown), nodes, edges)


def by_host(links: Iterable[LinkRow]) -> tuple[list[HostPairs], int]:
    """The hosts with their pairs, those with odd pairs first; at most three, and how many were left out."""
    groups: dict[str, list[LinkRow]] = {}
    for link in links:
        groups.setdefault(link.host or "", []).append(link)
    order = sorted(groups, key=lambda host: (-sum(map(is_odd, groups[host])), natural(host)))
    return [_host(host, groups[host]) for host in order[:_HOSTS]], max(0, len(order) - _HOSTS)
