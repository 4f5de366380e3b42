"""Readings that several formats share: bus ids, sizes with units, numbers that a tool prints as N/A."""

from __future__ import annotations

import re
from typing import NamedTuple

_BUS = re.compile(r"(?:PCI:)?(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.([0-7]))?")
_SIZE = re.compile(r"(-?[0-9][0-9,]*(?:\.[0-9]+)?)\s*(bytes|[KMGTPE]?i?B|[KMGTkmg])?")
_UNITS = {
    None: 1,
    "bytes": 1,
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
    "PiB": 1024**5,
    "EiB": 1024**6,
    "K": 1024,
    "k": 1024,
    "M": 1024**2,
    "m": 1024**2,
    "G": 1024**3,
    "g": 1024**3,
    "T": 1024**4,
}


class Size(NamedTuple):
    """A size in bytes and the half width of its rounding."""

    bytes: int
    error: int


def bus_id(text: str | None) -> str | None:
    """``00000000:3B:00.0``, ``PCI:0000:3b:00`` or ``3b:00.0`` as ``0000:3b:00.0``; None where it is none."""
    found = _BUS.fullmatch(text.strip()) if text else None
    if not found:
        return None
    domain, bus, device, function = found.groups()
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function or '0'}"


def nccl_bus_id(text: str | None) -> str | None:
    """NCCL's ``busId`` (domain, bus, device and function as one hexadecimal number) as ``0000:3b:00.0``."""
    if not text:
        return None
    number = int(text, 16)
    return f"{number >> 20:04x}:{(number >> 12) & 0xFF:02x}:{(number >> 4) & 0xFF:02x}.{number & 0xF}"


def size(text: str | None) -> Size | None:
    """A size with its unit (``79.25 GiB``, ``78.5GB``, ``1,234 bytes``) and half of its last printed digit."""
    found = _SIZE.fullmatch(text.strip()) if text else None
    if not found:
        return None
    number, unit = found.group(1).replace(",", ""), found.group(2)
    scale = _UNITS.get(unit)
    if scale is None:
        return None
    decimals = len(number.partition(".")[2])
    error = round(scale / 10**decimals / 2) if scale > 1 else 0
    return Size(round(float(number) * scale), error)


def integer(text: str | None) -> int | None:
    """A decimal integer, None for None and for texts such as N/A."""
    try:
        return int(text) if text else None
    except ValueError:
        return None


def number(text: str | None) -> float | None:
    """A decimal number, None for None and for texts such as N/A."""
    try:
        return float(text) if text else None
    except ValueError:
        return None
