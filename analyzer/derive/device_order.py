"""Cards that CUDA numbers otherwise than nvidia-smi: on hosts with different models the index alone misleads.

Without CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA puts the fastest card first, while tools number by bus id. The proof is the
capacity in an error text, which is not that of the card that was meant, or the bus ids that a CUDA program prints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from analyzer.derive.card_sizes import size_by_name
from analyzer.evidence import Evidence

Row = dict[str, Any]

_LEAST = 0.85
_MOST = 1.02
"""A card offers a little less than the size in its name; more is another card."""


def derive_wrong_cards(evidence: Evidence) -> None:
    """Fills ``wrong_card``."""
    cards = _listed(evidence)
    ordered = any(
        row["name"] == "CUDA_DEVICE_ORDER" and row["value"] == "PCI_BUS_ID" for row in evidence.rows("env_var")
    )
    rows = [] if ordered else [*_by_capacity(evidence, cards), *_by_bus(evidence, cards)]
    evidence.set("wrong_card", rows)


def _listed(evidence: Evidence) -> dict[str | None, dict[int, Row]]:
    """The cards of each host that holds different models, by their index in nvidia-smi."""
    found: dict[str | None, dict[int, Row]] = defaultdict(dict)
    for row in evidence.rows("gpu_device"):
        if row["gpu"] is not None and row["name"] and (row["tool"] or "").startswith("nvidia-smi"):
            card = found[row["host"]].setdefault(row["gpu"], dict(row))
            card["bus_id"] = card["bus_id"] or row["bus_id"]
            card["total_bytes"] = card["total_bytes"] or row["total_bytes"] or size_by_name(row["name"])
    return {host: cards for host, cards in found.items() if len({_model(c) for c in cards.values()}) > 1}


def _model(card: Row) -> str:
    return str(card["name"]).rstrip(".")[:16]


def _by_capacity(evidence: Evidence, cards: dict[str | None, dict[int, Row]]) -> Iterator[Row]:
    labels = {row["stream"]: row["label"] for row in evidence.rows("stream")}
    seen: set[tuple[Any, ...]] = set()
    for event in evidence.rows("oom_event"):
        host = event["host"] if event["host"] in cards else next(iter(cards), None) if event["host"] is None else None
        known = cards.get(host)
        if not known or event["capacity_bytes"] is None or event["gpu"] is None:
            continue
        choice, source = _chosen(evidence, event)
        wanted = known.get(choice) if choice is not None else None
        if wanted is None or _fits(event["capacity_bytes"], wanted) is not False:
            continue
        got = _candidates(event["capacity_bytes"], wanted, known)
        key = (host, event["stream"], choice)
        if got and key not in seen:
            seen.add(key)
            refs = [event["ref"], wanted["ref"], *(known[gpu]["ref"] for gpu in got), *source]
            yield _row(host, event, wanted, got, known, refs) | {
                "cuda_index": event["gpu"],
                "process": labels.get(event["stream"]) or None,
                "capacity_bytes": event["capacity_bytes"],
                "proof": "capacity",
                "failed": True,
                "at": event["at"],
            }


def _chosen(evidence: Evidence, event: Row) -> tuple[int | None, list[int]]:
    """The index that the process asked for, in the order of nvidia-smi, and the lines that say so."""
    found = [row for row in evidence.rows("env_var") if row["name"] == "CUDA_VISIBLE_DEVICES"]
    found = [row for row in found if row["stream"] == event["stream"]] or found
    values = {row["value"] for row in found}
    if not values:
        return event["gpu"], []
    words = (values.pop() or "").split(",") if len(values) == 1 else []
    index = event["gpu"]
    if index < len(words) and words[index].strip().isdigit():
        return int(words[index]), [found[0]["ref"]]
    return None, []


def _fits(capacity: int, card: Row) -> bool | None:
    total = card["total_bytes"]
    return None if total is None else _LEAST * total <= capacity <= _MOST * total


def _candidates(capacity: int, wanted: Row, known: dict[int, Row]) -> list[int]:
    others = [gpu for gpu, card in known.items() if _model(card) != _model(wanted)]
    return [gpu for gpu in others if _fits(capacity, known[gpu])] or [
        g for g in others if _fits(capacity, known[g]) is None
    ]


def _row(host: str | None, event: Row, wanted: Row, got: list[int], known: dict[int, Row], refs: list[int]) -> Row:
    return {
        "host": host,
        "rank": event.get("rank"),
        "wanted": wanted["gpu"],
        "wanted_name": wanted["name"],
        "wanted_bytes": wanted["total_bytes"],
        "got": ",".join(map(str, got)),
        "got_name": known[got[0]]["name"],
        "ref": refs[0],
        "refs": ",".join(map(str, dict.fromkeys(refs))),
    }


def _by_bus(evidence: Evidence, cards: dict[str | None, dict[int, Row]]) -> Iterator[Row]:
    """CUDA programs that list all cards of a host in another order than nvidia-smi does."""
    listed: dict[tuple[Any, ...], dict[int, Row]] = defaultdict(dict)
    for row in evidence.rows("pair_device"):
        if row["bus_id"] is not None:
            listed[(row["host"], row["stream"])].setdefault(row["gpu"], row)
    for (host, _), order in listed.items():
        known = cards.get(host, {})
        index = {card["bus_id"]: gpu for gpu, card in known.items() if card["bus_id"]}
        if set(index) != {row["bus_id"] for row in order.values()}:
            continue
        for gpu, row in order.items():
            place = index[row["bus_id"]]
            if place != gpu and gpu in known and _model(known[place]) != _model(known[gpu]):
                refs = [row["ref"], known[gpu]["ref"], known[place]["ref"]]
                yield _row(host, row, known[gpu], [place], known, refs) | {
                    "cuda_index": gpu,
                    "proof": "bus_id",
                    "failed": False,
                }
                break
