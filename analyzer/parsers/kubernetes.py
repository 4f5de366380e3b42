"""What Kubernetes says of pods, containers and nodes: ``kubectl describe pod``, ``get events``, ``get pods``.

    Name:             trainer-0
    Namespace:        ml
    Node:             gpu-node-7/10.0.0.7
    Containers:
      trainer:
        Last State:     Terminated
          Reason:       OOMKilled
          Exit Code:    137
        Limits:
          memory:          64Gi
          nvidia.com/gpu:  8
    Events:
      Warning  Evicted  3m  kubelet  The node was low on resource: memory.

    2m   Warning   SystemOOM   node/gpu-node-7   System OOM encountered, victim process: python, pid: 4711
    XidCriticalError: Xid=79 on Device=GPU-...; marking device as unhealthy.

Seen: kubectl 1.18 to 1.33, NVIDIA device plug-in 0.9 to 0.17.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.kubernetes_texts import EVENTS, TOP_FIELDS, ended_at, event_parts, kind_of_end
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PID = re.compile(r"pid: *([0-9]+)|process ([0-9]+)")
_PODS = ("Containers", "Init Containers", "Ephemeral Containers")


class KubernetesSession(Session):
    """Open over one ``describe pod`` or one table; all other lines stand for themselves."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._forget()

    def _forget(self) -> None:
        self._base = 0
        self._pod: str | None = None
        self._node: str | None = None
        self._section = ""
        self._container: str | None = None
        self._part = ""
        self._end: tuple[Line, dict[str, str]] | None = None

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def close(self) -> None:
        """Sends the end of a container that waits for more."""
        self._send_end()
        self._forget()
        super().close()

    def event(self, line: Line, kind: str, **values: object) -> None:
        """Sends a row of ``scheduler_event``; Kubernetes knows no ranks."""
        common = {"system": "kubernetes", "kind": kind, "rank": None, "text": line.text.strip()}
        self.emit("scheduler_event", line, common | values)

    def on_heading(self, f: Fields, line: Line) -> None:
        self._send_end()
        self._section, self.open = "Events", True

    def on_event(self, f: Fields, line: Line) -> Verdict | None:
        kind = EVENTS.get(f["reason"])
        message = event_parts(f["text"])
        if f["reason"] == "Killing" and "probe" in message:
            kind = "probe_failed"
        if kind is None:
            return None if self.open else Verdict.LEFT
        self._event_row(line, kind, f["reason"], message, self._pod, self._node)
        return None

    def on_listed(self, f: Fields, line: Line) -> None:
        kind = EVENTS.get(f["reason"])
        if kind is not None:
            what, _, name = f["object"].partition("/")
            node = name if what == "node" else None
            self._event_row(line, kind, f["reason"], f["text"].strip(), None if node else name, node)

    def _event_row(self, line: Line, kind: str, reason: str, text: str, pod: str | None, node: str | None) -> None:
        pid = _PID.search(text)
        found = integer(pid.group(1) or pid.group(2)) if pid else None
        self.event(line, kind, job=pod, node=node, state=reason, reason=text, pid=found)

    def on_pod_row(self, f: Fields, line: Line) -> Verdict | None:
        kind = {"OOMKilled": "oom", "Evicted": "evicted"}.get(f["state"].removeprefix("Init:"))
        if kind is None:
            return None if self.open else Verdict.LEFT
        self.event(line, kind, job=f["pod"].split()[-1], state=f["state"])
        return None

    def on_unhealthy(self, f: Fields, line: Line) -> None:
        self.event(line, "device_unhealthy", code=int(f["code"]), reason=f"Xid {f['code']} on {f['device']}")

    def on_victim(self, f: Fields, line: Line) -> None:
        pid = _PID.search(f["text"])
        self.event(line, "oom", pid=int(pid.group(1) or pid.group(2)) if pid else None, reason="SystemOOM")

    def on_unplaced(self, f: Fields, line: Line) -> None:
        self.event(line, "unschedulable", reason=f["text"].strip())

    def on_refused(self, f: Fields, line: Line) -> None:
        self.event(line, "unschedulable", reason=f["text"].strip())

    def on_yaml(self, f: Fields, line: Line) -> None:
        value = f["value"].strip('", ')
        self.event(line, "oom" if value == "OOMKilled" else "evicted", state=value)

    def on_field(self, f: Fields, line: Line) -> Verdict | None:
        name, value = f["field"], f.get("value", "").strip()
        indent = len(line.text) - len(line.text.lstrip())
        if name == "Name" and value and (not self.open or indent <= self._base):
            self.close()
            self._base, self._pod, self.open = indent, value, True
            return None
        if not self.open:
            return Verdict.LEFT
        depth = indent - self._base
        if depth <= 0:
            return self._top(name, value, line)
        if self._section in _PODS:
            self._inside(name, value, depth, line)
        return None

    def _top(self, name: str, value: str, line: Line) -> Verdict | None:
        if name not in TOP_FIELDS:
            return Verdict.LEFT
        self._send_end()
        self._section = name
        if name == "Node":
            self._node = value.partition("/")[0] or None
        elif name == "Reason" and value in EVENTS:
            self.event(line, EVENTS[value], job=self._pod, node=self._node, state=value)
        return None

    def _inside(self, name: str, value: str, depth: int, line: Line) -> None:
        """A line below ``Containers:``: the name of one, what it asks for, or how it ended."""
        if depth <= 2 and not value:
            self._send_end()
            self._container, self._part = name, ""
        elif depth <= 4:
            self._send_end()
            self._part = name
            if name in ("State", "Last State") and value == "Terminated":
                self._end = (line, {})
        elif self._end is not None:
            self._end[1][name] = value
            if name in ("Reason", "Exit Code"):
                self._end = (line if name == "Reason" else self._end[0], self._end[1])
        elif self._part == "Limits" and name in ("memory", "nvidia.com/gpu"):
            label = "limit.memory" if name == "memory" else "limit.gpu"
            self.emit("container_setting", line, {"container": self._pod, "name": label, "value": value, "rank": None})

    def _send_end(self) -> None:
        end, self._end = self._end, None
        if end is None:
            return
        line, values = end
        code = integer(values.get("Exit Code"))
        at = ended_at(values.get("Finished", ""))
        self.event(
            line,
            kind_of_end(values.get("Reason", ""), code),
            job=self._pod,
            step=self._container,
            node=self._node,
            state=values.get("Reason"),
            code=code,
            signal=integer(values.get("Signal")) or (9 if code == 137 else None),
            reason=values.get("Message"),
            **({} if at is None else {"at": at}),
        )


FORMAT = Format(
    name="kubernetes",
    grammar="kubernetes",
    literals=(
        "OOMKilled",
        "OOMKilling",
        "Evicted",
        "Name:       ",
        "Namespace:  ",
        "Last State: ",
        "LAST SEEN",
        "XidCriticalError",
        " nodes are available: ",
        "System OOM encountered",
        "SystemOOM ",
        "Allocate failed due to",
        "FailedScheduling",
        "NodeNotReady",
        "Type     Reason",
        "READY   STATUS",
    ),
    session=KubernetesSession,
    title="pods, containers and nodes as Kubernetes reports them",
    command="kubectl describe pod POD; kubectl get events --sort-by=.lastTimestamp",
    versions="Kubernetes 1.18 to 1.33",
    weak_literals=frozenset(
        {"Name:       ", "Namespace:  ", "Evicted", "LAST SEEN", " nodes are available: ", "READY   STATUS"}
    ),
)
