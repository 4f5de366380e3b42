"""Addresses of RDMA ports: GIDs as tools and NCCL print them, and what kind of address one is."""

from __future__ import annotations

import ipaddress

MTUS = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
"""MTU in bytes by the number that verbs use for it."""


def gid(text: str | None) -> str | None:
    """``::ffff:10.0.0.5`` or ``fe80:0000:...`` as eight groups of four digits; None where it is none."""
    try:
        return ipaddress.IPv6Address(text.strip()).exploded if text else None
    except ValueError:
        return None


def gid_of_halves(prefix: str, interface: str) -> str:
    """The GID of the two numbers that NCCL prints: both halves in the byte order of the host."""
    digits = "".join((int(half, 16) & (2**64 - 1)).to_bytes(8, "little").hex() for half in (prefix, interface))
    return ":".join(digits[at : at + 4] for at in range(0, 32, 4))


def gid_kind(text: str | None) -> str | None:
    """link_local, ipv4, empty or global, for a GID in eight groups."""
    if text is None:
        return None
    if text.startswith("fe80"):
        return "link_local"
    if text.startswith("0000:0000:0000:0000:0000:ffff:"):
        return "ipv4"
    return "empty" if set(text) <= {"0", ":"} else "global"
