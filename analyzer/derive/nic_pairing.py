"""Which NIC each GPU is paired with, compared over hosts: by the matrix of nvidia-smi, and by the channels of NCCL.

Equal hosts pair equal GPUs with equal NICs. A host is odd where its GPU is further from its nearest NIC than on
another host, where it alone of three hosts and more differs, or where two of its GPUs share a NIC that the other hosts
give to one. A pairing through another GPU (PXN) says nothing and is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from analyzer.evidence import Evidence

Row = dict[str, Any]

_FAR = {"PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5}
_TRANSPORT = re.compile(r"NET/IB\w*/([0-9]+)(?:/GDRDMA.*)?")
_GPU = re.compile(r"GPU([0-9]+)")


class _Pairing(NamedTuple):
    host: str
    gpu: int
    nics: str
    far: int
    text: str
    ref: int


def derive_nic_pairing(evidence: Evidence) -> None:
    """Fills ``nic_pairing`` with the pairings that differ from those of the other hosts."""
    rows = [*_odd(_by_matrix(evidence), "topology"), *_odd(_by_channel(evidence), "channel")]
    evidence.set("nic_pairing", sorted(rows, key=lambda row: (row["host"], row["gpu"], row["origin"])))


def _by_matrix(evidence: Evidence) -> list[_Pairing]:
    """The nearest NICs of each GPU in the matrix."""
    cells: dict[tuple[str, int], dict[str, tuple[str, int]]] = defaultdict(dict)
    for row in evidence.rows("topo_link"):
        for gpu, nic in ((row["a"], row["b"]), (row["b"], row["a"])):
            found = _GPU.fullmatch(gpu)
            if found and not _GPU.fullmatch(nic) and row["path"] in _FAR and row["host"]:
                cells[row["host"], int(found.group(1))][nic] = (row["path"], row["ref"])
    pairings = []
    for (host, gpu), nics in cells.items():
        path, ref = min(nics.values(), key=lambda cell: (_FAR[cell[0]], cell[1]))
        near = ",".join(sorted(nic for nic, cell in nics.items() if cell[0] == path))
        pairings.append(_Pairing(host, gpu, near, _FAR[path], f"{path} to {near}", ref))
    return pairings


def _by_channel(evidence: Evidence) -> list[_Pairing]:
    """The NIC that each GPU sends over, where it is one only."""
    used: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for row in evidence.rows("channel"):
        found = _TRANSPORT.fullmatch(row["transport"] or "")
        if found and row["direction"] == "send" and row["host"] and row["src_dev"]:
            used[row["host"], row["src_dev"]].setdefault(int(found.group(1)), row["ref"])
    pairings = []
    for (host, device), nics in used.items():
        if len(nics) == 1 and device.isdigit() and int(device) < 64:
            nic, ref = next(iter(nics.items()))
            pairings.append(_Pairing(host, int(device), str(nic), 0, f"NET/IB/{nic}", ref))
    return pairings


def _odd(pairings: list[_Pairing], origin: str) -> Iterator[Row]:
    by_gpu: dict[int, list[_Pairing]] = defaultdict(list)
    shared: Counter[tuple[str, str]] = Counter()
    for pairing in pairings:
        by_gpu[pairing.gpu].append(pairing)
        shared[pairing.host, pairing.nics] += 1
    for same in by_gpu.values():
        for one in same:
            others = [other for other in same if other.host != one.host]
            usual = _usual(others)
            if usual is None or usual.nics == one.nics:
                continue
            alone = len(others) > 1 and all(other.nics == usual.nics for other in others)
            crowded = shared[one.host, one.nics] > max(shared[other.host, usual.nics] for other in others)
            if one.far > usual.far or alone or crowded:
                yield {
                    "host": one.host,
                    "gpu": one.gpu,
                    "here": one.text,
                    "there": usual.text,
                    "origin": origin,
                    "ref": one.ref,
                    "refs": f"{one.ref},{usual.ref}",
                }


def _usual(others: list[_Pairing]) -> _Pairing | None:
    """The most frequent pairing of the other hosts, the nearest of those that are equally frequent."""
    counts = Counter(other.nics for other in others)
    return min(others, key=lambda other: (-counts[other.nics], other.far, other.nics, other.ref), default=None)
