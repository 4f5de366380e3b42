"""Names and values of the fields of ``nvidia-smi``.

Which fields matter for a diagnosis, what they are called today, what stands for "no value" and what for a broken
device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Sections and fields kept as health rows, by the first parts of their path.
_KEPT = (
    "addressing_mode",
    "applications_clocks.",
    "bar1_memory_usage.",
    "c2c_mode",
    "capabilities.",
    "clocks.",
    "clocks_event_reasons.",
    "clocks_event_reasons_counters.",
    "compute_mode",
    "ecc_errors.",
    "ecc_mode.",
    "fabric.",
    "gpu_memory_power_readings.",
    "gpu_power_readings.",
    "gpu_recovery_action",
    "gpu_reset_status.",
    "max_clocks.",
    "mig_mode.",
    "module_power_readings.",
    "pci.gpu_link_info.",
    "pci.replay_number_rollovers",
    "pci.replays_since_reset",
    "performance_state",
    "persistence_mode",
    "remapped_rows.",
    "retired_pages.",
    "temperature.",
    "utilization.",
    "vbios_version",
)
_SECTIONS = {
    "clocks_throttle_reasons": "clocks_event_reasons",
    "power_readings": "gpu_power_readings",
}
_FIELDS = {
    "gpu_power_readings.power_draw": "gpu_power_readings.average_power_draw",
    "gpu_power_readings.power_limit": "gpu_power_readings.requested_power_limit",
    "gpu_power_readings.enforced_power_limit": "gpu_power_readings.current_power_limit",
    "retired_pages.pending": "retired_pages.pending_page_blacklist",
}
_ABSENT = frozenset(
    {
        "",
        "n/a",
        "not supported",
        "not found",
        "function not found",
        "insufficient permissions",
        "not available in wddm driver model",
        "requested functionality has been deprecated",
    }
)
_FAULT = re.compile(
    r"\[?(?:GPU is lost.*|Unknown Error|GPU requires re(?:set|start).*|ERR!|Driver Not Loaded|Timeout"
    r"|Interrupt Request Issue|Corrupted infoROM|GPU access blocked by the operating system)\]?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ?(?:x|C|W|MHz|KiB|MiB|us|ms|s|%|bank\(s\)|KB/s|mV)?")


def part(title: str) -> str:
    """A section title or key as a part of a field name."""
    return "_".join(title.lower().split())


def field_name(parts: Sequence[str]) -> str | None:
    """The field at the end of a path, by its newest name; None for a field that no diagnosis needs."""
    name = ".".join((_SECTIONS.get(parts[0], parts[0]), *parts[1:]))
    name = _FIELDS.get(name, name)
    return name if name.startswith(_KEPT) else None


def absent(text: str) -> bool:
    """True where the tool says that there is no value (N/A, not supported, no permission)."""
    return text.strip().strip("[]").lower() in _ABSENT


def fault(text: str) -> str | None:
    """The error text that stands in place of a value, None for a value."""
    found = _FAULT.fullmatch(text.strip())
    return found.group().strip("[]") if found else None


def reading(text: str) -> float | None:
    """A value as a number in its printed unit (16x, 37 C, 93.84 W, 512 bank(s)); None where it is no number."""
    found = _NUMBER.fullmatch(text.strip())
    return float(found.group(1)) if found else None
