"""What NCCL says of the network: adapters, addresses, GPUDirect RDMA, queue pairs, and the faults of all these.

    NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.5<0>
    NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x55 pciPath=/sys/devices/... ar=0
    NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
    NET/IB: Dev 0 Port 1 qpn 218 mtu 3 GID 0 (80FE/20000FEFFA1420E)
    NET/IB : Got completion from peer 10.0.0.6<40846> with error 12, opcode 0, len 0, vendor err 129

Wordings of NCCL 2.3 to 2.30, of the plug-ins for EFA and of RCCL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from analyzer.parsers.gid import MTUS, gid, gid_kind, gid_of_halves
from analyzer.parsers.values import integer

Row = tuple[str, dict[str, object]]

_NIC = re.compile(r"\[([0-9]+)\] ?([\w.+-]+):([0-9]+)(?::-?[0-9]+)*/([A-Za-z]+)")
_SPEED = re.compile(r"\[([0-9]+)\] ([^\s:]+)(?::[^\s:]+)??:([0-9]+)/([A-Za-z]+)(?: provider=\S+)? speed=([0-9]+)")
_ADDRESS = re.compile(r"(?:^|[\s\]])([A-Za-z][\w.@-]*):([0-9a-fA-F:.]+(?:%[\w.-]+)?)<[0-9]+>")
_GDR = re.compile(
    r"GPU Direct RDMA (?:\([\w -]+\) )?([Ee]nabled|[Dd]isabled)"
    r"(?: for (?:HCA ([0-9]+)(?: '([^' ]+))?|GPU ([^\s/]+) / HCA ([0-9a-f]+)(?: '([^' ]+))?))?(?: '[^']*')?"
    r"(?:.*?\(([^)]*)\))?"
)
_DISTANCE = re.compile(r"distance ([0-9]+) [<>=]+ ([0-9]+)")
_QP = re.compile(r"Dev ([0-9]+) Port ([0-9]+) (?:qpn|qp_num) [0-9]+ mtu ([0-9]+)\b(.*)")
_QP_GID = re.compile(r"GID (-?[0-9]+) \(([0-9A-Fa-f]{1,16})/([0-9A-Fa-f]{1,16})\)")
_QP_LID = re.compile(r"\bLID ([0-9]+)")
_COMPLETION = re.compile(r"Got completion(?: from peer (\S+))? with (?:error |status=)(?:[A-Z_]+\()?([0-9]+)")
_VENDOR = re.compile(r"vendor[_ ]err[ =]?([0-9]+)")
_LOCAL_GID = re.compile(r"local ?G(?:id|ID) ?([0-9a-fA-F:.]{2,45})")
_REMOTE_GID = re.compile(r"remote ?G(?:id|ID)s? ?([0-9a-fA-F:.]{2,45})")
_GID_INDEX = re.compile(r"local GID index ([0-9]+)")
_HCA = re.compile(r"\bhca ([\w.+-]+)")
_ON_DEVICE = re.compile(r"on dev ([\w.+-]+):([0-9]+)")
_ERRNO = re.compile(r"failed with(?: error)? (?:([0-9]+) )?([A-Z][\w /-]+)?")
_ASYNC = re.compile(
    r"(?:([\w.+-]+):([0-9]+) )?"
    r"(?:Got (?:non-fatal )?async(?: error)? event|async fatal event[^:]*(?:\([^)]*\)[^:]*)?) ?: ?(.+)"
)
_CODE = re.compile(r"\(([0-9]+)\)$")
_UNABLE = re.compile(r"Unable to open device ([\w.+-]+)")
_MEMORY = re.compile(r"ibv_(?:reg_\w*mr\w*|create_(?:qp|cq)\w*|alloc_pd) failed(?: with(?: error)?(?: [0-9]+)? (.+))?")
_CONNECT = re.compile(
    r"[Cc]onnect(?: to (\S+?)<([0-9]+)>)? (?:failed ?: |returned (?:[0-9]+\()?)([A-Z][A-Za-z ]+?)(?=[),.]|$)"
)
_PEER = re.compile(r"(.*)<([0-9]+)>")
_PROVIDER = re.compile(r"Selected [Pp]rovider is (\w+)")

NOTES = ("NET/", "NET : ", "Bootstrap", "GPU Direct", "Call to ", "socket", "nccl", "Failed to open libibverbs")
"""How the notes begin that ``read_note`` knows something about."""


def read_note(text: str) -> Iterator[Row]:
    """Rows of a message at level INFO."""
    if "Using" in text and ("NET/IB" in text or "NET/Socket" in text or text.startswith(("Bootstrap", "NET : "))):
        yield from _using(text)
    elif "speed=" in text:
        yield from _speeds(text)
    elif "GPU Direct RDMA" in text:
        yield from _gdr(text)
    elif " mtu " in text:
        yield from _queue_pair(text)
    else:
        yield from read_fault(text)


def read_fault(text: str) -> Iterator[Row]:
    """The row of a message that reports a fault, at level WARN or INFO."""
    for words, reader in _FAULTS:
        if words in text:
            values = reader(text)
            if values is not None:
                yield "network_event", {"text": text[:300], **values}
                return


def _using(text: str) -> Iterator[Row]:
    listed, _, oob = text.partition("; OOB ")
    what = "bootstrap" if text.startswith("Bootstrap") else "ib" if oob else "socket"
    for nic, device, port, layer in _NIC.findall(listed) if oob else ():
        yield "nccl_nic", {"nic": int(nic), "device": device, "port": int(port), "link_layer": layer}
    for interface, address in _ADDRESS.findall(oob or text):
        yield "nccl_interface", {"what": what, "name": interface, "address": address}


def _speeds(text: str) -> Iterator[Row]:
    for nic, device, port, layer, speed in _SPEED.findall(text):
        values = {"nic": int(nic), "device": device, "port": int(port), "link_layer": layer, "speed_mbps": int(speed)}
        yield "nccl_nic", values


def _gdr(text: str) -> Iterator[Row]:
    found = _GDR.search(text)
    if found is None:
        return
    state, nic, device, gpu, hca, hca_name, reason = found.groups()
    distance = _DISTANCE.search(reason or "")
    number = integer(nic) if nic else int(hca, 16) if hca else None
    yield (
        "nccl_gdr",
        {
            "nic": number,
            "device": device or hca_name,
            "gpu": gpu,
            "enabled": state.lower() == "enabled",
            "distance": int(distance.group(1)) if distance else None,
            "limit": int(distance.group(2)) if distance else None,
            "reason": reason,
        },
    )


def _queue_pair(text: str) -> Iterator[Row]:
    found = _QP.search(text)
    if found is None:
        return
    nic, port, mtu, rest = found.groups()
    values: dict[str, object] = {"nic": int(nic), "port": int(port), "mtu_bytes": MTUS.get(int(mtu))}
    address, lid = _QP_GID.search(rest), _QP_LID.search(rest)
    if address:
        name = gid_of_halves(address.group(2), address.group(3))
        values |= {"gid_index": int(address.group(1)), "gid": name, "gid_kind": gid_kind(name)}
    elif lid:
        values["lid"] = int(lid.group(1))
    yield "nccl_qp", values


def _part(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found.group(1) if found else None


def _gids(text: str) -> dict[str, object]:
    return {
        "gid_index": integer(_part(_GID_INDEX, text)),
        "local_gid": gid(_part(_LOCAL_GID, text)),
        "remote_gid": gid(_part(_REMOTE_GID, text)),
    }


def _completion(text: str) -> dict[str, object] | None:
    found = _COMPLETION.search(text)
    if found is None:
        return None
    peer = _PEER.fullmatch(found.group(1) or "")
    return {
        "kind": "completion",
        "status": int(found.group(2)),
        "vendor": integer(_part(_VENDOR, text)),
        "device": _part(_HCA, text),
        "peer": peer.group(1) if peer else found.group(1),
        "peer_port": int(peer.group(2)) if peer else None,
        **_gids(text),
    }


def _qp_failed(text: str) -> dict[str, object]:
    device = _ON_DEVICE.search(text)
    errno = _ERRNO.search(text)
    return {
        "kind": "qp_failed",
        "status": integer(errno.group(1)) if errno else None,
        "device": device.group(1) if device else None,
        "port": int(device.group(2)) if device else None,
        **_gids(text),
    }


def _async_event(text: str) -> dict[str, object] | None:
    found = _ASYNC.search(text)
    if found is None:
        return None
    device, port, event = found.groups()
    return {
        "kind": "async_event",
        "device": device,
        "port": integer(port),
        "status": integer(_part(_CODE, event)),
        "text": event.strip(),
    }


def _memory(text: str) -> dict[str, object] | None:
    found = _MEMORY.search(text)
    return {"kind": "memory_failed", "text": f"{found.group(0)}"} if found else None


def _connect(text: str) -> dict[str, object] | None:
    found = _CONNECT.search(text)
    if found is None:
        return None
    peer, port, error = found.groups()
    kind = "connect_retry" if "retrying" in text else "connect_failed"
    return {"kind": kind, "peer": peer, "peer_port": integer(port), "text": error}


def _bind(text: str) -> dict[str, object] | None:
    return {"kind": "bind_failed"} if "Address already in use" in text else None


def _kind(kind: str) -> Callable[[str], dict[str, object]]:
    return lambda text: {"kind": kind}


_FAULTS: tuple[tuple[str, Callable[[str], dict[str, object] | None]], ...] = (
    ("Got completion", _completion),
    ("ibv_modify_qp failed", _qp_failed),
    ("async", _async_event),
    ("NET/IB : No device found", _kind("no_ib_device")),
    ("Unable to open device", lambda text: {"kind": "open_failed", "device": _part(_UNABLE, text)}),
    ("ibv_open_device failed", _kind("open_failed")),
    ("libibverbs.so", _kind("no_verbs_library")),
    ("ibv_", _memory),
    ("bind", _bind),
    ("onnect", _connect),
    ("fi_getinfo() call failed", _kind("provider_empty")),
    ("No eligible providers", _kind("provider_empty")),
    (
        "elected",
        lambda text: {"kind": "provider", "device": _part(_PROVIDER, text)} if _PROVIDER.search(text) else None,
    ),
)
