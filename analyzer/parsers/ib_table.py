"""What all listings of RDMA ports share: the port that is open, its GIDs, partition keys and counters.

/sys/class/infiniband/mlx5_0/ports/1/pkeys/0:0x7fff
$ cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/1
0x8001
# Port counters: Lid 48 port 1 (CapMask: 0x5300)
LinkDownedCounter:...............3
GUID 0x0000000000000009 port 1: [SymbolErrorCounter == 65535] [LinkDownedCounter == 12]
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Line, Session, Verdict
from analyzer.parsers.gid import gid, gid_kind
from analyzer.parsers.ib_text import Port, counter_name, field_of, queried
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 3
_PKEY_FILE = re.compile(r"/sys/class/infiniband/([\w.-]+)/ports/([0-9]+)/pkeys/([0-9]+)?")


class IbTableSession(Session):
    """Keeps the adapter and the port that the lines below belong to; a port's row goes out when it ends."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._device: str | None = None
        self._model: str | None = None
        self._port: Port | None = None
        self._lid: str | None = None
        self._near: tuple[str, str] | None = None
        self._index: int | None = None
        self._foreign = 0

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.LEFT

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Sends the port that waits."""
        self._send()
        self._device = self._model = self._lid = None
        super().close()

    def _begin(self, device: str | None, model: str | None = None) -> None:
        self._send()
        self._device, self._model, self._lid = device, model, None
        self._foreign = 0
        self.open = True

    def _send(self) -> None:
        port, self._port = self._port, None
        if port is not None and port.values:
            self.emit("nic_port", port.line, port.row())

    def _port_row(self, line: Line, f: Fields, values: Mapping[str, object]) -> None:
        self.emit("nic_port", line, {"device": f["device"], "port": int(f["port"]), **values})

    def _gid(
        self,
        line: Line,
        device: str | None,
        port: int | None,
        index: int,
        address: str,
        version: int | None,
        netdev: str | None,
    ) -> None:
        name = gid(address)
        values = {"device": device, "port": port, "gid_index": index, "gid": name, "gid_kind": gid_kind(name)}
        self.emit("nic_gid", line, {**values, "version": version, "netdev": netdev})

    def _count(self, line: Line, device: str | None, port: int | None, name: str, value: int) -> None:
        values = {"device": device, "port": port, "counter": counter_name(name), "value": value}
        self.emit("nic_counter", line, values)

    def on_counter(self, f: Fields, line: Line) -> Verdict | None:
        if self._lid is None:
            return Verdict.LEFT
        name, _, value = line.text.strip().partition(":")
        count = value.lstrip(".")
        if self._port is not None and count.isdigit():
            self._count(line, self._port.device, self._port.number, name, int(count))
        return None

    def on_counters(self, f: Fields, line: Line) -> None:
        found = re.search(r"Lid (\d+) port (\d+)", f["value"])
        self._begin(f"lid {found.group(1)}" if found else None)
        self._lid = found.group(1) if found else ""
        self._port = Port(line, self._device, int(found.group(2)) if found else None, "perfquery")

    def on_query(self, f: Fields, line: Line) -> None:
        for device, port, name, value in queried(line.text):
            self._count(line, device, port, name, value)

    def on_sysfs(self, f: Fields, line: Line) -> Verdict | None:
        attribute, value = f["attribute"].rstrip(":"), f.get("value", "")
        group, _, last = attribute.rpartition("/")
        if group == "pkeys" and re.fullmatch("0x[0-9a-fA-F]{1,4}", value):
            self._pkey(line, f["device"], int(f["port"]), int(last), int(value, 16))
        elif group == "gids" and gid(value):
            self._gid(line, f["device"], int(f["port"]), int(last), value, None, None)
        elif group in ("counters", "hw_counters") and value.isdigit():
            self._count(line, f["device"], int(f["port"]), last, int(value))
        else:
            found = field_of(attribute, value)
            if not found:
                return Verdict.LEFT
            self._port_row(line, f, {**found, "tool": "sysfs"})
        return None

    def on_command(self, f: Fields, line: Line) -> Verdict | None:
        """A command that prints an attribute of a port; the table of keys is read from its output."""
        found = _PKEY_FILE.search(line.text)
        if found is None:
            return Verdict.LEFT
        self._begin(found.group(1))
        self._port = Port(line, found.group(1), int(found.group(2)), "perfquery")
        self._index = int(found.group(3)) if found.group(3) else None
        return None

    def _pkey(self, line: Line, device: str | None, port: int | None, index: int, key: int) -> None:
        values = {"device": device, "port": port, "pkey_index": index, "pkey": key}
        if key:
            self.emit("nic_pkey", line, {**values, "rank": None})

    def on_pkeys(self, f: Fields, line: Line) -> None:
        first = re.search("[0-9]+", line.text)
        assert first is not None
        self._pkeys(line, int(first.group()), f["value"])

    def on_pkey_list(self, f: Fields, line: Line) -> Verdict | None:
        """A row of smpquery, where what looks like the label of a launcher was the index, or the output of cat."""
        index = line.rank if line.rank is not None else self._index
        if index is None:
            return Verdict.LEFT
        self._pkeys(line, index, f["keys"])
        self._index = None
        return None

    def _pkeys(self, line: Line, first: int, keys: str) -> None:
        device = self._port.device if self._port else self._device
        port = self._port.number if self._port else None
        for place, key in enumerate(re.findall(r"\b0x([0-9a-fA-F]{1,4})\b", keys)):
            self._pkey(line, device, port, first + place, int(key, 16))
