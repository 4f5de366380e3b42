"""Memory of NVIDIA cards by product name, for listings that print no size (``nvidia-smi -L``)."""

from __future__ import annotations

import re

_GB = re.compile(r"([0-9]+) ?GB")
_SIZES = (
    ("RTX 5090", 32),
    ("RTX 4090", 24),
    ("RTX 4080", 16),
    ("RTX 3090", 24),
    ("RTX 3080 Ti", 12),
    ("RTX 3070", 8),
    ("RTX 3060 Ti", 8),
    ("RTX 2080 Ti", 11),
    ("RTX 2080", 8),
    ("RTX 2070", 8),
    ("GTX 1080 Ti", 11),
    ("GTX 1080", 8),
    ("GTX 1070", 8),
    ("TITAN RTX", 24),
    ("TITAN V", 12),
    ("TITAN Xp", 12),
    ("RTX 6000 Ada", 48),
    ("RTX A6000", 48),
    ("RTX A5000", 24),
    ("RTX A4000", 16),
    ("Quadro RTX 8000", 48),
    ("Quadro RTX 6000", 24),
    ("Quadro P400", 2),
    ("T400", 4),
    ("Tesla T4", 16),
    ("Tesla P4", 8),
    ("Tesla P40", 24),
    ("A10G", 24),
    ("L40S", 48),
    ("L40", 48),
    ("A40", 48),
    ("A30", 24),
    ("A10", 24),
    ("A16", 16),
    ("L4", 24),
    ("H200", 141),
)


def size_by_name(name: str | None) -> int | None:
    """Bytes of a card's memory, None for a name that leaves it open (an RTX 3080 has 10 or 12 GB)."""
    if not name:
        return None
    told = _GB.search(name)
    if told:
        return int(told.group(1)) << 30
    for piece, gigabytes in _SIZES:
        if re.search(rf"(?<![\w]){re.escape(piece)}(?![\w])(?! (?:Ti|SUPER))", name):
            return gigabytes << 30
    return None
