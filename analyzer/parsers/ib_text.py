"""Fields of RDMA ports as the tools spell them, brought to one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from analyzer.parsers.base import Line
from analyzer.parsers.values import number

_STATE = re.compile(r"(?:[0-9]+: ?)?(?:PORT_)?([A-Za-z]+)")
_RATE = re.compile(r"([0-9.]+)(?: ?Gb/sec)?(?: ?\(([0-9]+)X)?")
_MTU = re.compile(r"[0-9]+")
_WIDTH = re.compile(r"([0-9]+)X")
_SPEED = re.compile(r"([0-9.]+) Gbps")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LINK = re.compile(r"==\( *([0-9]+)X +([0-9.]+) Gbps +(\w+) */ *(\w+) *\)==>")
_ENDS = re.compile(r'"(?:([\w.-]+) )?((?:mlx|ib|bnxt|hfi)[\w.-]*)"')
_QUERY = re.compile(r"\[(\w+) == ([0-9]+)\]")
_QUERY_PORT = re.compile(r"GUID (0x[0-9a-fA-F]+) port (\w+):")
_COUNTER_NAMES = {
    "symbol_error_counter": "symbol_error",
    "link_downed_counter": "link_downed",
    "link_error_recovery_counter": "link_error_recovery",
}
_KNOWN = frozenset(
    {
        "ca type", "number of ports", "firmware version", "hardware version", "node guid", "system image guid",
        "base lid", "lmc", "sm lid", "capability mask", "port guid", "transport", "fw_ver", "node_guid",
        "sys_image_guid", "vendor_id", "vendor_part_id", "hw_ver", "board_id", "phys_port_cnt", "max_mtu", "sm_lid",
        "port_lid", "port_lmc", "default gid", "port_cap_flags", "max_msg_sz", "gid_tbl_len", "subnet_timeout",
        "init_type_reply", "pkey_tbl_len", "max_vl_num", "bad_pkey_cntr", "qkey_viol_cntr", "sm_sl",
        "counterselect", "port_cap_flags2",
    }
)  # fmt: skip


@dataclass(slots=True)
class Port:
    """One port while its fields come in."""

    line: Line
    device: str | None
    number: int | None
    tool: str
    values: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.tool != "perfquery":
            self.values = {**self.values, "tool": self.tool}

    def row(self) -> dict[str, object]:
        """The columns of ``nic_port``: where the speed is told per lane, the rate is that of all lanes."""
        values = {"device": self.device, "port": self.number, **self.values}
        lane, width = values.pop("lane_gbps", None), values.get("width")
        if isinstance(lane, float) and isinstance(width, int):
            values.setdefault("rate_gbps", lane * width)
        return values


def field_of(name: str, value: str) -> dict[str, object] | None:
    """What a field says, in the columns of ``nic_port``; empty for one that is known and not kept, None for others."""
    if name == "ca type":
        return {"model": value}
    if name == "state":
        found = _STATE.match(value)
        return {"state": found.group(1).lower()} if found else {}
    if name in ("physical state", "phys state", "phys_state", "physical_state"):
        found = _STATE.match(value.replace("_", ""))
        return {"physical_state": found.group(1).lower()} if found else {}
    if name in ("rate", "active_speed", "active_width"):
        return _rate(name, value)
    if name == "active_mtu":
        found = _MTU.match(value)
        return {"mtu_bytes": int(found.group())} if found else {}
    if name in ("link layer", "link_layer"):
        return {"link_layer": value.lower()} if value else {}
    if name in ("base lid", "lid"):
        return {"lid": int(value, 0)} if re.fullmatch("0x[0-9a-fA-F]{1,5}|[1-9][0-9]{0,6}|0", value) else {}
    return {} if name in _KNOWN or name.startswith(("max_", "device_cap", "local_ca", "atomic", "hw_", "odp")) else None


def _rate(name: str, value: str) -> dict[str, object]:
    if name == "active_width":
        width = _WIDTH.match(value)
        return {"width": int(width.group(1))} if width else {}
    if name == "active_speed":
        lane = _SPEED.match(value)
        return {"lane_gbps": float(lane.group(1))} if lane else {}
    found = _RATE.match(value)
    rate = number(found.group(1)) if found else None
    if found is None or rate is None:
        return {}
    return {"rate_gbps": rate, **({"width": int(found.group(2))} if found.group(2) else {})}


def version_of(text: str) -> int | None:
    """RoCE version of the words behind a GID."""
    return 2 if "v2" in text else 1 if "v1" in text or "IB" in text else None


def counter_name(text: str) -> str:
    """``LinkDownedCounter`` as ``link_downed``."""
    name = _WORDS.sub("_", text).lower()
    return _COUNTER_NAMES.get(name, name)


def queried(text: str) -> Iterator[tuple[str, int | None, str, int]]:
    """Counters of a line of ibqueryerrors: GUID, port, name, value."""
    head = _QUERY_PORT.search(text)
    if head is not None:
        port = int(head.group(2)) if head.group(2).isdigit() else None
        for name, value in _QUERY.findall(text):
            yield head.group(1), port, name, int(value)


def link_rows(text: str, near: tuple[str, str] | None) -> list[dict[str, object]]:
    """The ends of a link of iblinkinfo that are adapters: host, adapter and what the link runs at.

    ``near`` is the adapter that the heading above names.
    """
    link = _LINK.search(text)
    if link is None:
        return []
    width, speed, state, physical = link.groups()
    rate = {"width": int(width), "rate_gbps": int(width) * float(speed), "state": state.lower()}
    rate |= {"physical_state": physical.lower(), "link_layer": "infiniband", "tool": "iblinkinfo"}
    ends = [*([near] if near and text.lstrip().startswith("0x") else []), *_ENDS.findall(text)]
    return [{**rate, "device": device, **({"host": host} if host else {})} for host, device in ends]
