"""Transcripts of commands that show what a container or host has for RDMA: devices, drivers, libraries, limits.

    $ ls /dev/infiniband
    issm0  rdma_cm  umad0  uverbs0
    $ ldconfig -p | grep ibverbs
    $ ulimit -l
    64
    # container
    $ fi_info -p efa
    fi_getinfo: -61 (No data available)

A command that looks for one thing and prints nothing says that it is not there. A comment line, or docker and kubectl
in the command, tell where it ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.fact_text import Command, Fact, anywhere
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 12
_INSIDE = (
    "container",
    "pod",
    "image",
    "docker ",
    "kubectl exec",
    "podman ",
    "crictl ",
    "enroot",
    "apptainer",
    "singularity",
)


class SystemFactSession(Session):
    """Keeps the command whose output comes, and the place that a comment named."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._command: Command | None = None
        self._place: str | None = None
        self._line: Line | None = None
        self._foreign = 0

    def offer(self, line: Line, called: bool) -> Verdict:
        """Lines of NCCL's log name the same devices and are left to their own parser."""
        if "NCCL INFO" in line.text or "NCCL WARN" in line.text:
            return Verdict.LEFT
        return super().offer(line, called)

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """The last command ended."""
        self._end()
        self._place = None
        self._foreign = 0
        super().close()

    def _end(self) -> None:
        command, self._command = self._command, None
        if command is not None and self._line is not None:
            self._send(self._line, command.end())

    def _send(self, line: Line, facts: Iterable[Fact]) -> bool:
        sent = False
        for fact in facts:
            values = {**fact, "place": self._place}
            if fact["kind"] == "kernel_module":
                values = {"name": fact["name"], "loaded": fact["present"], "tool": "lsmod"}
                self.emit("module", line, values)
            else:
                self.emit("system_fact", line, values)
            sent = True
        return sent

    def on_place(self, f: Fields, line: Line) -> None:
        self._end()
        self._place = "container" if any(word in line.text.lower() for word in _INSIDE) else "host"
        self._foreign = 0
        self.open = True

    def on_command(self, f: Fields, line: Line) -> Verdict | None:
        self._end()
        command = Command(f["command"])
        if not command.known:
            return self.foreign(line) if self.open else Verdict.LEFT
        if any(word in f["command"] for word in _INSIDE[3:]):
            self._place = "container"
        self._command, self._line = command, line
        self._foreign = 0
        self.open = True
        return None

    def on_text(self, f: Fields, line: Line) -> Verdict | None:
        facts = [*anywhere(line.text)]
        if not facts and self._command is not None:
            facts = [*self._command.output(line.text)]
        elif self._command is not None:
            self._command.said()
        if not self._send(line, facts):
            return self.foreign(line) if self.open else Verdict.LEFT
        self._foreign = 0
        return None


FORMAT = Format(
    name="system-fact",
    grammar="system_fact",
    literals=(
        "/dev/infiniband",
        "/sys/class/infiniband",
        "uverbs0",
        "grep ibverbs",
        "libibverbs",
        "rdma-core",
        "ulimit -l",
        "max locked memory",
        "Max locked memory",
        "RLIMIT_MEMLOCK",
        "max locked-in-memory",
        "ip_local_port_range",
        "getent hosts",
        "getent ahosts",
        "/etc/hosts",
        "fi_info",
        "fi_getinfo: -",
        "provider: efa",
        "memory_peers",
        "peermem",
        "nv_peer_mem",
        "ufw status",
        "firewall-cmd",
        "iptables -",
        "ss -s",
        "ss -t",
        "TCP: inuse",
        " packets transmitted, ",
        " port [tcp/",
        "# container",
        "# Container",
        "# host",
        "# Host",
        "# instance",
        "# pod",
        "# inside",
        "# in the ",
    ),
    session=SystemFactSession,
    title="devices, libraries and limits for RDMA (transcripts of ls, lsmod, ldconfig, ulimit, fi_info ...)",
    command="ls /dev/infiniband; lsmod | grep peermem; ldconfig -p | grep ibverbs; ulimit -l; fi_info -p efa",
    versions="any",
    weak_literals=frozenset(),
)
