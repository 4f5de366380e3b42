"""What a WARN of NCCL says: its class, the bytes and the peer that it names (wordings of NCCL 2.4 to 2.30)."""

from __future__ import annotations

import re
from typing import NamedTuple


class Fault(NamedTuple):
    """Class of a message with the figures in it."""

    kind: str
    bytes: int | None
    peer: str | None


_KINDS: tuple[tuple[str, str], ...] = (
    ("malloc_failed", r"Failed to CUDA (?:malloc|calloc|calloc async|host alloc)|Failed to CUDA \w+"),
    ("cuda_out_of_memory", r"Cuda failure .*out of memory"),
    ("cuda_failure", r"Cuda failure|CUDA error"),
    ("duplicate_gpu", r"Duplicate GPU detected|Multiple Ranks are using the same GPU"),
    ("nvlink_p2p_disabled", r"P2P is disabled between NVLINK connected GPUs"),
    ("nvls_bind_failed", r"Failed to bind NVLink SHARP"),
    ("mnnvl_broken", r"MNNVL .*not working on this system"),
    ("driver_too_old", r"CUDA Driver version found is|driver version is insufficient"),
    ("ipc_failed", r"cudaIpc\w+ failed|failed to open CUDA IPC handle|failed to peer with device"),
    ("no_interface", r"no socket interface found|no interface found|No IP interface found|no device found matching"),
    ("version_mismatch", r"Mismatched NCCL version|Incompatible NCCL versions"),
    ("address_family", r"neither AF_INET"),
    ("topology_unknown", r"Failed to find reverse path|Could not find NVLink|Unknown GPU|unsupported compute cap"),
    ("truncated", r"[Mm]essage truncated"),
    ("rank_count_mismatch", r"mismatch in rank count|has already checked in"),
    ("wrong_magic", r"wrong (?:magic|type)"),
    ("ib_completion", r"Got completion"),
    ("ib_async_event", r"Got (?:async|non-fatal async)|async fatal event"),
    ("ib_qp_failed", r"ibv_modify_qp failed"),
    ("ib_memory", r"ibv_(?:reg_mr|create_qp|create_cq)\w* failed"),
    ("collective_mismatch", r"collective mismatch|Mismatched collective"),
    ("remote_closed", r"Connection closed by remote peer|Connection closed"),
    (
        "connect_failed",
        r"[Cc]onnect (?:to|returned)|Call to connect|exceeded (?:error )?retr|exceeded timeouts|No route to host",
    ),
    ("recv_failed", r"Call to (?:recv|send)\w* .*failed|Call to recv from|recv failed"),
    ("shm_failed", r"shared memory segment|failed to extend|posix_fallocate|No space left on device"),
    ("too_many_files", r"Too many open files"),
    ("no_transport", r"No transport found"),
    ("no_path", r"Could not find a path for pattern"),
    ("proxy_failed", r"\[Proxy Service|Proxy Call|Could not receive type|\[Service thread\]|ncclProxyCall"),
    (
        "usage",
        r"invalid (?:root|type|argument|usage)|is not a valid pointer|allocated on device|already been destroyed",
    ),
    ("host_malloc_failed", r"Failed to malloc"),
    ("aborted", r"^ABORT|abort"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)
_BYTES = re.compile(r"([0-9]+) bytes|size ([0-9]+)|\(size ([0-9]+)")
_PEER = re.compile(r"(?:from peer|by remote peer|recv from|Connect to|connect to|peer) ([^\s,]+<[0-9]+>)")


def classify(text: str) -> Fault:
    """The class of a message; ``other`` for one without a class of its own."""
    kind = next((name for name, pattern in _COMPILED if pattern.search(text)), "other")
    size = _BYTES.search(text)
    peer = _PEER.search(text)
    return Fault(
        kind, int(next(group for group in size.groups() if group)) if size else None, peer.group(1) if peer else None
    )
