"""Words of Kubernetes: which reasons of events mean what, and when a container ended."""

from __future__ import annotations

import re
from calendar import timegm
from datetime import datetime

EVENTS = {
    "OOMKilled": "oom",
    "OOMKilling": "oom",
    "SystemOOM": "oom",
    "Evicted": "evicted",
    "EvictionThresholdMet": "evicted",
    "TaintManagerEviction": "evicted",
    "Preempted": "preempted",
    "Preempting": "preempted",
    "FailedScheduling": "unschedulable",
    "UnexpectedAdmissionError": "unschedulable",
    "NodeNotReady": "node_fail",
    "NodeLost": "node_fail",
    "NodeShutdown": "node_fail",
    "Shutdown": "node_fail",
    "DeadlineExceeded": "time_limit",
    "Unhealthy": "probe_failed",
}
"""Reasons that tell why something ended, and the kind of ``scheduler_event`` that they become."""

TOP_FIELDS = frozenset(
    {
        "Namespace", "Priority", "Priority Class Name", "Runtime Class Name", "Service Account", "Node", "Start Time",
        "Labels", "Annotations", "Status", "Reason", "Message", "IP", "IPs", "Controlled By", "Init Containers",
        "Containers", "Ephemeral Containers", "Conditions", "Volumes", "QoS Class", "Node-Selectors", "Tolerations",
        "Events", "SeccompProfile", "NominatedNodeName",
    }
)  # fmt: skip
"""Names at the left margin of ``kubectl describe pod``."""

_AGES = re.compile(r"(?:(?:[0-9]+[smhdy]){1,3}|<[a-z]+>)(?: \(x[0-9]+ over [^)]*\))?\s+")
_FROM = re.compile(r"\S+(?:, \S+)?\s{2,}")


def event_parts(text: str) -> str:
    """The message of an event, without its age and its writer."""
    age = _AGES.match(text)
    rest = text[age.end() :] if age else text
    writer = _FROM.match(rest) if age else None
    return rest[writer.end() if writer else 0 :].strip()


def kind_of_end(reason: str, code: int | None) -> str:
    """The kind of a container's end: its reason, else its exit code."""
    if reason in EVENTS:
        return EVENTS[reason]
    if reason in ("ContainerCannotRun", "StartError"):
        return "aborted"
    if reason == "Completed" or code == 0:
        return "state"
    return "killed" if code == 137 else "exited"


def ended_at(text: str) -> float | None:
    """``Mon, 06 May 2024 10:00:00 +0000`` in seconds since the epoch."""
    try:
        return float(timegm(datetime.strptime(text, "%a, %d %b %Y %H:%M:%S %z").utctimetuple()))
    except ValueError:
        return None
