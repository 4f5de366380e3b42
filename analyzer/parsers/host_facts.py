"""Facts of a host: ``uname -a``, ``numactl -H`` and the NUMA lines of ``lscpu``.

    Linux node-a 5.15.90.1-microsoft-standard-WSL2 #1 SMP Fri Jan 27 02:56:13 UTC 2023 x86_64 GNU/Linux
    node 0 cpus: 0 1 2 3
    node 0 size: 515543 MB
    NUMA node0 CPU(s):   0-47,96-143

Seen: kernels 3.10 to 6.12, numactl 2.0, util-linux 2.23 to 2.40.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session

Fields = Mapping[str, str]

_MIB = 1 << 20


class HostFactsSession(Session):
    """Each line stands for itself; the three lines of a NUMA node become rows of their own."""

    def on_uname(self, f: Fields, line: Line) -> None:
        host = None if f["name"] == "version" else f["name"].split(".", 1)[0]
        self.emit("version", line, {"host": host, "component": "kernel", "value": f["kernel"]})

    def on_node_cpus(self, f: Fields, line: Line) -> None:
        self.emit("numa_node", line, {"node": int(f["node"]), "cpus": ",".join(f.get("words", "").split())})

    def on_node_size(self, f: Fields, line: Line) -> None:
        self.emit("numa_node", line, {"node": int(f["node"]), "total_bytes": int(f["megabytes"]) * _MIB})

    def on_node_free(self, f: Fields, line: Line) -> None:
        self.emit("numa_node", line, {"node": int(f["node"]), "free_bytes": int(f["megabytes"]) * _MIB})

    def on_lscpu_node(self, f: Fields, line: Line) -> None:
        self.emit("numa_node", line, {"node": int(f["node"]), "cpus": f.get("words", "").strip()})

    def on_available(self, f: Fields, line: Line) -> None:
        """Known: the number of nodes, which their lines show."""


_LITERALS = ("GNU/Linux", " cpus: ", "node 0 size: ", "node 1 size: ", "node 0 free: ", "node 1 free: ", "CPU(s): ")
FORMAT = Format(
    name="host-facts",
    grammar="host_facts",
    literals=_LITERALS,
    session=HostFactsSession,
    title="facts of the host (kernel, NUMA nodes)",
    command="uname -a; numactl -H; lscpu",
    versions="kernels 3.10 to 6.12",
    weak_literals=frozenset(_LITERALS),
    blocks=False,
)
