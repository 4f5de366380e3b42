"""The PCIe link of each GPU, joined over ``nvidia-smi`` and ``lspci``, beside the links of its neighbours.

A link may run at a low generation while the card has nothing to do; the number of lanes never changes with load.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]

_LINK = "pci.gpu_link_info."
_WIDTH = (_LINK + "link_width.current", _LINK + "link_width.max")
_GEN = (_LINK + "pcie_generation.current", _LINK + "pcie_generation.max")
_DEVICE_MAX = _LINK + "pcie_generation.device_max"
_BUSY_PERCENT = 10
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_NO_CARD = ("Audio", "USB", "UCSI", "NVSwitch", "Bridge", "bridge", "Switch")
_CHIPSET_NAMES = ("PCH", "Chipset", "chipset", "Matisse Switch", "Matisse PCIe GPP", "Promontory")
_CHIPSET_PORT = ("1b", "1c", "1d")
"""Device numbers of the root ports that belong to Intel's chipsets."""


def derive_pcie_cards(evidence: Evidence) -> None:
    """Fills ``pcie_card``."""
    cards = _from_smi(evidence)
    _from_lspci(evidence, cards)
    _from_tree(evidence, cards)
    _add_copies(evidence, cards)
    ranks = {(row["host"], row["gpu"]): row["rank"] for row in evidence.rows("process") if row["gpu"] is not None}
    by_host: dict[str | None, list[Row]] = defaultdict(list)
    for card in cards:
        card["rank"] = ranks.get((card["host"], card.get("gpu")))
        by_host[card["host"]].append(card)
    for found in by_host.values():
        for card in found:
            _compare(card, [other for other in found if other is not card])
    _add_ports(evidence, cards)
    for card in cards:
        refs = sorted(card.pop("ref_list"))
        card["ref"] = card.get("ref") or refs[0]
        card["refs"] = ",".join(map(str, refs[:12]))
    evidence.set("pcie_card", cards)


def _from_smi(evidence: Evidence) -> list[Row]:
    cards: dict[tuple[Any, ...], Row] = {}
    for fields in _moments(evidence):
        any_row = next(iter(fields.values()))
        host, gpu, bus = any_row["host"], any_row["gpu"], any_row["bus_id"]
        key = (host, gpu if gpu is not None else bus)
        card = cards.setdefault(key, {"host": host, "gpu": gpu, "bus_id": bus, "ref_list": set()})
        card["bus_id"] = card["bus_id"] or bus
        _take(card, fields)
    return list(cards.values())


def _moments(evidence: Evidence) -> list[dict[str, Row]]:
    """The fields of one card that were printed together; a field that comes again begins anew."""
    found: list[dict[str, Row]] = []
    now: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in evidence.rows("gpu_health"):
        if row["field"].startswith(_LINK) or row["field"] == "utilization.gpu":
            key = (row["host"], row["gpu"], row["bus_id"], row["stream"])
            if key not in now or row["field"] in now[key]:
                now[key] = {}
                found.append(now[key])
            now[key][row["field"]] = row
    return [fields for fields in found if any(name in fields for name in (*_WIDTH, *_GEN))]


def _take(card: Row, fields: dict[str, Row]) -> None:
    values = {name: row["value"] for name, row in fields.items()}
    card["ref_list"] |= {row["ref"] for name, row in fields.items() if name in (*_WIDTH, *_GEN)}
    width, most = (values.get(name) for name in _WIDTH)
    if width is not None and (card.get("width") is None or width < card["width"]):
        card["width"], card["ref"] = int(width), fields[_WIDTH[0]]["ref"]
    if most is not None:
        card["max_width"] = max(int(most), card.get("max_width") or 0)
    gen, most = (values.get(name) for name in _GEN)
    busy = (values.get("utilization.gpu") or 0) >= _BUSY_PERCENT
    if gen is not None and (busy, gen) > (card.get("busy", False), card.get("gen") or 0):
        card["gen"], card["busy"] = int(gen), busy
    if most is not None:
        card["max_gen"] = max(int(most), card.get("max_gen") or 0)


def _from_lspci(evidence: Evidence, cards: list[Row]) -> None:
    links: dict[tuple[str | None, str], Row] = {}
    for row in evidence.rows("pci_link"):
        if row["bus_id"] and row["width"] and "NVIDIA" in (row["name"] or "") and _graphics(row["kind"]):
            links.setdefault((row["host"], row["bus_id"]), row)
    indices = {(row["host"], row["bus_id"]): row["gpu"] for row in evidence.rows("gpu") if row["bus_id"]}
    by_host: dict[str | None, list[Row]] = defaultdict(list)
    for (host, _), row in sorted(links.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        by_host[host].append(row)
    for host, rows in by_host.items():
        own = [card for card in cards if card["host"] == host]
        nameless = sorted((c for c in own if not c["bus_id"]), key=lambda c: c["gpu"] if c["gpu"] is not None else 0)
        if len(nameless) == len(rows):
            for card, row in zip(nameless, rows, strict=True):
                card["bus_id"] = row["bus_id"]
        for row in rows:
            found = [card for card in own if card["bus_id"] == row["bus_id"]]
            if not found:
                gpu = indices.get((host, row["bus_id"]))
                found = [{"host": host, "gpu": gpu, "bus_id": row["bus_id"], "ref_list": set()}]
                cards += found
            _take_lspci(found[0], row)


def _graphics(kind: str | None) -> bool:
    return (kind or "").startswith(("3D", "VGA", "Display"))


def _take_lspci(card: Row, row: Row) -> None:
    card["ref_list"].add(row["ref"])
    if card.get("width") is None or row["width"] < card["width"]:
        card["width"], card["ref"] = row["width"], row["ref"]
    card["max_width"] = card.get("max_width") or row["max_width"]
    if card.get("gen") is None:
        card["gen"], card["busy"] = _GENERATIONS.get(row["speed_gts"]), False
    card["max_gen"] = card.get("max_gen") or _GENERATIONS.get(row["max_speed_gts"])


def _from_tree(evidence: Evidence, cards: list[Row]) -> None:
    """Cards that only the tree of devices shows; in its order where nothing else numbers them."""
    known = {(card["host"], card["bus_id"]) for card in cards}
    indices = {(row["host"], row["bus_id"]): row["gpu"] for row in evidence.rows("gpu") if row["bus_id"]}
    for row in sorted(evidence.rows("pci_tree"), key=lambda r: (r["host"] or "", r["bus_id"])):
        name = row["name"] or ""
        place = (row["host"], row["bus_id"])
        if "NVIDIA" in name and not any(word in name for word in _NO_CARD) and place not in known:
            known.add(place)
            cards.append({"host": place[0], "gpu": indices.get(place), "bus_id": place[1], "ref_list": {row["ref"]}})


def _add_copies(evidence: Evidence, cards: list[Row]) -> None:
    rates: dict[tuple[Any, Any], list[float]] = defaultdict(list)
    for row in evidence.rows("host_measure"):
        if row["gpu"] is not None and row["metric"] in ("host_to_device_gbps", "device_to_host_gbps") and row["value"]:
            rates[(row["host"], row["gpu"])].append(row["value"])
    for row in evidence.rows("process_binding"):
        if row["gpu"] is not None and row["host_copy_gbps"]:
            rates[(row["host"], row["gpu"])].append(row["host_copy_gbps"])
    for card in cards:
        found = rates.get((card["host"], card.get("gpu")))
        card["copy_gbps"] = round(sum(found) / len(found), 2) if found else None


def _compare(card: Row, others: list[Row]) -> None:
    card["others_width"] = max((c["width"] for c in others if c.get("width")), default=None)
    card["others_gen"] = max((c["gen"] for c in others if c.get("gen")), default=None)
    rates = [c["copy_gbps"] for c in others if c.get("copy_gbps")]
    card["others_copy_gbps"] = round(median(rates), 2) if rates else None


def _add_ports(evidence: Evidence, cards: list[Row]) -> None:
    """The root port above each card, and whether its path leads through the chipset."""
    above = {(row["host"], row["bus_id"]): row["parent"] for row in evidence.rows("pci_tree")}
    names = {(row["host"], row["bus_id"]): row["name"] or "" for row in evidence.rows("pci_link")}
    for card in cards:
        path: list[str] = []
        at = above.get((card["host"], card["bus_id"]))
        while at is not None and len(path) < 16:
            path.append(at)
            at = above.get((card["host"], at))
        card["port"] = path[-1] if path else None
        card["chipset"] = (
            any(_is_chipset(bridge, names.get((card["host"], bridge), "")) for bridge in path) if path else None
        )


def _is_chipset(bridge: str, name: str) -> bool:
    _, bus, device = bridge.split(":")
    if name:
        return any(word in name for word in _CHIPSET_NAMES)
    return bus == "00" and device.split(".")[0] in _CHIPSET_PORT
