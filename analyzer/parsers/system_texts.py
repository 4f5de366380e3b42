"""Where a sentence about driver and libraries names its subject, what it found and what it wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Patterns = Sequence[re.Pattern[str]]


class Found(NamedTuple):
    """What a sentence is about; None where it does not say."""

    subject: str | None = None
    found: str | None = None
    wanted: str | None = None


def _all(*patterns: str) -> Patterns:
    return tuple(re.compile(pattern) for pattern in patterns)


_VERSION = r"[0-9]+(?:\.[0-9]+)*"
ABOUT: Mapping[str, Patterns] = {
    "nvml_mismatch": _all(rf"NVML library version: (?P<found>{_VERSION})"),
    "compat_enabled": _all(
        rf"Using CUDA (?P<subject>{_VERSION}) driver version (?P<wanted>{_VERSION}) with kernel driver version"
        rf" (?P<found>{_VERSION})"
    ),
    "compat_unavailable": _all(
        rf"NVIDIA Driver Release (?P<wanted>{_VERSION}) or later, but\s*version (?P<found>{_VERSION})",
        rf"NVIDIA Driver Release (?P<wanted>{_VERSION})",
        rf"version (?P<found>{_VERSION}) was detected",
    ),
    "cuda_library": _all(rf"(?P<subject>/\S*libcuda\.so\.(?P<found>{_VERSION}))"),
    "module_failed": _all(
        r"Module (?P<subject>nvidia[\w-]*)(?:\.ko)? not found in directory (?P<wanted>\S+)",
        r"could not insert '(?P<subject>nvidia[\w-]*)': (?P<found>[^\n]+)",
        r"(?P<subject>nvidia[\w-]*)",
    ),
    "undefined_symbol": _all(
        r"(?P<found>[^\s:'\"]*\.so[.0-9]*): undefined symbol: (?P<subject>[\w@.]+),? version (?P<wanted>\S+)",
        r"(?P<found>[^\s:'\"]*\.so[.0-9]*): undefined symbol: (?P<subject>[\w@.]+)",
        r"undefined symbol: (?P<subject>[\w@.]+)",
    ),
    "library_missing": _all(
        r"library '(?P<subject>[^']+)'", r"(?P<subject>[\w./+-]+\.so[.0-9]*): cannot open shared object"
    ),
    "version_conflict": _all(
        rf"(?P<subject>CuDNN) library: (?P<found>{_VERSION}) but source was compiled with: (?P<wanted>{_VERSION})",
        r"(?P<subject>cuDNN) .*?compiled\s+against \(?(?P<wanted>[0-9][0-9., ]*[0-9])\)? but (?:found|linked against)"
        r" (?:runtime )?version \(?(?P<found>[0-9][0-9., ]*[0-9])",
        rf"(?P<subject>\w+) has CUDA Version=(?P<found>{_VERSION}) and \w+ has CUDA Version=(?P<wanted>{_VERSION})",
        rf"detected (?P<subject>CUDA) version \((?P<found>{_VERSION})\).*?PyTorch \((?P<wanted>{_VERSION})\)",
        r"(?P<subject>CU[A-Z]+)_STATUS",
    ),
    "arch_unsupported": _all(r"(?P<subject>\S.*?) with CUDA capability (?P<wanted>sm_[0-9]+a?)"),
    "arch_list": _all(r"capabilities (?P<found>sm_[0-9]+a?(?:,? (?:sm|compute)_[0-9]+a?)*)"),
    "paging_file": _all(r"Error loading \"(?P<subject>[^\"]+)\""),
    "pin_memory": _all(r"Caught (?P<subject>\w+) in pin memory thread"),
    "shm": _all(r"(?P<subject></?[\w./-]+>|'/dev/shm[^']*'|/\w*torch_\w+)"),
    "allocator_retries": _all(r"num_alloc_retries['\"]?\s*[:=]?\s*(?P<found>[0-9]+)"),
    "allocator_flush": _all(r"(?P<found>[0-9]+) pytorch allocator cache flushes"),
    "persistence_off": _all(
        r"(?P<subject>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", r"GPU (?P<subject>[0-9]+)"
    ),
    "node_denied": _all(r"(?P<subject>/dev/nvidia[\w-]*)"),
}
"""By kind of sentence: the first pattern that occurs is taken."""


def first_match(patterns: Patterns, text: str) -> Found:
    """The groups of the first pattern that the text holds."""
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            groups = match.groupdict()
            return Found(groups.get("subject"), groups.get("found"), groups.get("wanted"))
    return Found()
