r"""Interfaces and routes of a host: ``ip`` with addr, link and route, ``ethtool``, ``sar -n DEV``.

    2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000
        inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0
    eth0             UP             10.230.1.4/24 fe80::1/64
    192.168.0.0/20 dev eth1 proto kernel scope link src 192.168.5.21 metric 100
    Settings for eth0:
    \tSpeed: 10000Mb/s
    11:20:02         eth0    812.00  81022.00     60.11 119871.22      0.00      0.00      0.00     98.20

Seen: iproute2 4 to 6, ethtool 4 to 6, sysstat 10 to 12. A line of a loop may name host and interface before "Speed:".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 6
_MTU = re.compile(r"\bmtu ([0-9]+)")
_STATE = re.compile(r"\bstate (\w+)")
_ADDRESS = re.compile(r"([0-9a-fA-F:.]{2,45})/([0-9]{1,3})")
_WORD = re.compile(r"\b(dev|via|src|metric) (\S+)")
_SPEED = re.compile(r"([0-9]+) ?([MG])b/s")


class HostNetSession(Session):
    """Keeps the interface that the lines below belong to, and the titles of a table of loads."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._name: str | None = None
        self._titles: list[str] = []
        self._position = 0
        self._foreign = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """The listing ended: no interface is current any more."""
        self._name = None
        self._titles = []
        self._position = 0
        self._foreign = 0
        super().close()

    def _taken(self) -> None:
        self._foreign = 0
        self.open = True

    def _fact(self, line: Line, name: str | None, tool: str, values: Mapping[str, object]) -> None:
        self._taken()
        self.emit("interface", line, {"name": name.partition("@")[0] if name else None, "tool": tool, **values})

    def on_link(self, f: Fields, line: Line) -> None:
        self._name = f["name"]
        mtu, state = _MTU.search(f["text"]), _STATE.search(f["text"])
        values = {"mtu_bytes": int(mtu.group(1)) if mtu else None, "state": state.group(1).lower() if state else None}
        self._fact(line, self._name, "ip link", values)

    def on_address(self, f: Fields, line: Line) -> Verdict | None:
        found = _ADDRESS.fullmatch(f["address"])
        if self._name is None or found is None:
            return Verdict.LEFT
        self._fact(line, self._name, "ip addr", {"address": found.group(1), "prefix": int(found.group(2))})
        return None

    def on_brief(self, f: Fields, line: Line) -> Verdict | None:
        text = f.get("text", "")
        state = line.text.split()[1].lower()
        found = _ADDRESS.findall(text)
        if not found and text and "<" not in text:
            return Verdict.LEFT
        if not found and not text and not self.open:
            return Verdict.LEFT
        for address, prefix in found or [(None, None)]:
            values = {"state": state, "address": address, "prefix": int(prefix) if prefix else None}
            self._fact(line, f["name"], "ip -br", values)
        return None

    def on_route(self, f: Fields, line: Line) -> Verdict | None:
        words = dict(_WORD.findall(line.text))
        if "dev" not in words:
            return Verdict.LEFT
        self._taken()
        metric = words.get("metric", "")
        values = {
            "destination": f["destination"],
            "gateway": words.get("via"),
            "device": words["dev"],
            "source": words.get("src"),
            "metric": int(metric) if metric.isdigit() else None,
            "position": self._position,
        }
        self._position += 1
        self.emit("route", line, values)
        return None

    def on_local_route(self, f: Fields, line: Line) -> None:
        """Known: the host's own address."""

    def on_settings(self, f: Fields, line: Line) -> None:
        self._name = f["name"]
        self._taken()

    def on_speed(self, f: Fields, line: Line) -> Verdict | None:
        speed = _speed(f["text"])
        if self._name is None or speed is None:
            return Verdict.LEFT
        self._fact(line, self._name, "ethtool", {"speed_mbps": speed})
        return None

    def on_host_speed(self, f: Fields, line: Line) -> Verdict | None:
        speed = _speed(f["text"])
        words = f["words"].rstrip(":").split()
        if speed is None:
            return Verdict.LEFT
        values: dict[str, object] = {"speed_mbps": speed}
        if len(words) == 2:
            values["host"] = words[0].rstrip(":")
        self._fact(line, words[-1].rstrip(":"), "ethtool", values)
        return None

    def on_mtu(self, f: Fields, line: Line) -> None:
        """A line of a loop: interface, perhaps the host before it, and the MTU."""
        *words, _, mtu = line.text.replace(":", " ").split()
        values: dict[str, object] = {"mtu_bytes": int(mtu)}
        if len(words) == 2:
            values["host"] = words[0]
        self._fact(line, words[-1], "ip link", values)

    def on_load_head(self, f: Fields, line: Line) -> None:
        self._titles = line.text.partition("IFACE")[2].split()
        self._taken()

    def on_load(self, f: Fields, line: Line) -> Verdict | None:
        numbers = f["numbers"].split()
        if not self._titles or len(numbers) != len(self._titles):
            return Verdict.LEFT
        load = dict(zip(self._titles, map(float, numbers), strict=True))
        values = {
            "rx_mbps": round(load["rxkB/s"] * 8.192 / 1000, 3) if "rxkB/s" in load else None,
            "tx_mbps": round(load["txkB/s"] * 8.192 / 1000, 3) if "txkB/s" in load else None,
            "util_percent": load.get("%ifutil"),
        }
        self._fact(line, f["name"], "sar", values)
        return None


def _speed(text: str) -> int | None:
    found = _SPEED.match(text)
    return int(found.group(1)) * (1000 if found.group(2) == "G" else 1) if found else None


FORMAT = Format(
    name="host-net",
    grammar="host_net",
    literals=(
        " mtu ",
        "127.0.0.1/8",
        " UP ",
        " DOWN ",
        "Speed: ",
        "Settings for ",
        " scope link",
        "default via ",
        " proto kernel",
        " metric ",
        "IFACE ",
    ),
    session=HostNetSession,
    title="interfaces and routes of a host (ip, ethtool, sar)",
    command="ip -br addr; ip link; ip route; ethtool IF; sar -n DEV 1 5",
    versions="iproute2 4 to 6, ethtool 4 to 6, sysstat 10 to 12",
    weak_literals=frozenset(
        {" mtu ", " UP ", " DOWN ", "Speed: ", "Settings for ", " proto kernel", " metric ", "IFACE "}
    ),
)
