r"""Ports of RDMA adapters: ibstat, ibstatus, ibv_devinfo, show_gids, ibdev2netdev, rdma link, iblinkinfo, sysfs.

    CA 'mlx5_0'                                  hca_id: mlx5_0
    \tCA type: MT4129                            \t\tport:\t1
    \tPort 1:                                    \t\t\tstate:\t\t\tPORT_ACTIVE (4)
    \t\tState: Active                            \t\t\tactive_mtu:\t\t4096 (5)
    \t\tRate: 400                                \t\t\tGID[  3]:\t\t::ffff:10.0.0.5, RoCE v2
    Infiniband device 'mlx5_0' port 1 status:    mlx5_0  1  3  0000:...:0a46:0105 10.70.1.5  v2  eth2
    mlx5_0 port 1 ==> ib0 (Up)                   link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2
    /sys/class/infiniband/mlx5_0/ports/1/pkeys/0:0x7fff

Seen: rdma-core 15 to 55, OFED 4 and 5, iproute2 4.14 to 6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Verdict
from analyzer.parsers.ib_table import IbTableSession
from analyzer.parsers.ib_text import Port, field_of, link_rows, version_of

Fields = Mapping[str, str]

_NETDEV = re.compile(r"(\S+) \((\w+)\)")
_NEAR = re.compile(r"([\w.-]+) ([\w.-]+):")
_RDMA = re.compile(r"(state|physical_state|netdev) (\S+)")
_ROW_TAIL = re.compile(r"(?:(?P<ipv4>[0-9.]{7,15})\s+)?(?P<version>v[12])\s*(?P<netdev>\S+)?")


class IbPortSession(IbTableSession):
    """Reads the listings of the tools field by field."""

    def on_adapter(self, f: Fields, line: Line) -> None:
        self._begin(f["quoted"].strip("'"))

    def on_verbs(self, f: Fields, line: Line) -> None:
        self._begin(f["device"])

    def on_status(self, f: Fields, line: Line) -> None:
        self._begin(f["quoted"].strip("'"))
        self._port = Port(line, self._device, int(f["port"]), "ibstatus")

    def on_port(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open or self._device is None:
            return Verdict.LEFT
        self._send()
        tool = "ibstat" if line.text.lstrip().startswith("Port") else "ibv_devinfo"
        self._port = Port(line, self._device, int(f["port"]), tool, {"model": self._model} if self._model else {})
        self._foreign = 0
        return None

    def on_field(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open:
            return Verdict.LEFT
        name, _, value = line.text.strip().partition(":")
        found = field_of(name.strip().lower(), value.strip())
        if found is None:
            return self.foreign(line)
        if "model" in found:
            self._model = str(found["model"])
        elif self._port is not None:
            self._port.values.update(found)
        self._foreign = 0
        return None

    def on_gid_line(self, f: Fields, line: Line) -> Verdict | None:
        if not self.open or self._port is None:
            return Verdict.LEFT
        address, _, kind = f["value"].partition(",")
        self._gid(line, self._port.device, self._port.number, int(f["gid_index"]), address, version_of(kind), None)
        self._foreign = 0
        return None

    def on_gid_head(self, f: Fields, line: Line) -> None:
        self._begin(None)

    def on_rule(self, f: Fields, line: Line) -> Verdict | None:
        return None if self.open else Verdict.LEFT

    def on_gid_row(self, f: Fields, line: Line) -> Verdict | None:
        tail = _ROW_TAIL.fullmatch(f["value"].strip())
        if tail is None or not self.open:
            return Verdict.LEFT
        version = int(tail["version"][1])
        self._gid(line, f["device"], int(f["port"]), int(f["gid_index"]), f["gid"], version, tail["netdev"])
        self._foreign = 0
        return None

    def on_gids_found(self, f: Fields, line: Line) -> Verdict | None:
        self.close()
        return None

    def on_netdev(self, f: Fields, line: Line) -> Verdict | None:
        found = _NETDEV.match(f["value"])
        if found is None:
            return Verdict.LEFT
        state = "active" if found.group(2) == "Up" else found.group(2).lower()
        self._port_row(line, f, {"netdev": found.group(1), "state": state, "tool": "ibdev2netdev"})
        return None

    def on_rdma_link(self, f: Fields, line: Line) -> Verdict | None:
        found = {name: value.lower() for name, value in _RDMA.findall(f["value"])}
        if "state" not in found:
            return Verdict.LEFT
        physical = found.get("physical_state", "").replace("_", "") or None
        values = {"state": found["state"], "physical_state": physical, "netdev": found.get("netdev")}
        self._port_row(line, f, {**values, "tool": "rdma link"})
        return None

    def on_link_host(self, f: Fields, line: Line) -> Verdict | None:
        found = _NEAR.fullmatch(f["value"].strip())
        self._near = (found.group(1), found.group(2)) if found else None
        return None if found else Verdict.LEFT

    def on_link(self, f: Fields, line: Line) -> Verdict | None:
        rows = link_rows(line.text, self._near)
        for values in rows:
            self.emit("nic_port", line, values)
        return None if rows else Verdict.LEFT

    def on_failed(self, f: Fields, line: Line) -> None:
        """The tool found no adapter."""
        values = {"kind": "rdma_driver", "name": "ibstat", "present": False, "value": line.text.strip()}
        self.emit("system_fact", line, values)


FORMAT = Format(
    name="ib-port",
    grammar="ib_port",
    literals=(
        "CA '",
        "Infiniband device '",
        "hca_id:",
        "PORT    INDEX",
        "PORT\tINDEX",
        "PORT INDEX",
        "n_gids_found=",
        "==> ",
        " physical_state ",
        "# Port counters:",
        "# Port extended counters:",
        "[SymbolErrorCounter",
        "[LinkDownedCounter",
        "[PortRcvErrors",
        "/sys/class/infiniband/",
        "pkeys/",
        "pkey[",
        ": 0x7fff",
        ": 0xffff",
        ": 0x80",
        "CA: ",
        "==( ",
        "ibpanic: ",
    ),
    session=IbPortSession,
    title="ports of RDMA adapters (ibstat, ibstatus, ibv_devinfo, show_gids, rdma link, sysfs)",
    command="ibstat; ibv_devinfo -v; show_gids; rdma link",
    versions="rdma-core 15 to 55",
    weak_literals=frozenset(
        {
            "CA '",
            "CA: ",
            "==> ",
            " physical_state ",
            "/sys/class/infiniband/",
            "pkeys/",
            "pkey[",
            ": 0x7fff",
            ": 0xffff",
            ": 0x80",
            "==( ",
        }
    ),
)
