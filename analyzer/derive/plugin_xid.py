"""Xids that only NVIDIA's device plug-in for Kubernetes reported become rows of ``xid``.

The plug-in hears of them from the driver and names the card by its UUID; where a tool listed the card, its bus id is
known as well. An Xid that the kernel log tells itself is left to the kernel log.
"""

from __future__ import annotations

from typing import Any

from analyzer.evidence import Evidence

Row = dict[str, Any]


def derive_plugin_xids(evidence: Evidence) -> None:
    """Adds what the plug-in reported to the table ``xid``."""
    told = [row for row in evidence.rows("scheduler_event") if row["kind"] == "device_unhealthy" and row["code"]]
    known = {row["code"] for row in evidence.rows("xid")}
    cards = {row["uuid"]: row for row in evidence.rows("gpu_device") if row["uuid"]}
    fresh = [_xid(row, cards) for row in told if row["code"] not in known]
    if fresh:
        evidence.set("xid", [*evidence.rows("xid"), *fresh])


def _xid(row: Row, cards: dict[str, Row]) -> Row:
    card = cards.get(str(row["reason"]).rpartition(" on ")[2])
    return {
        "ref": row["ref"],
        "stream": row["stream"],
        "host": row["host"] or (card["host"] if card else None),
        "at": row["at"],
        "bus_id": card["bus_id"] if card else None,
        "code": row["code"],
        "text": row["reason"],
    }
