"""Messages of drivers in the kernel log that say a fault: a piece of the text and the kind of event it means."""

from __future__ import annotations

from collections.abc import Sequence

Texts = Sequence[tuple[str, str]]

PROBE_TEXTS: Texts = (
    ("fallen off the bus and is not responding", "gpu_lost"),
    ("requires use of the NVIDIA open kernel modules", "open_module_required"),
    ("installed in this system is not supported by", "unsupported_gpu"),
)
"""Ends of a message that began with ``The NVIDIA GPU <bus id>``."""

DRIVER_TEXTS: Texts = (
    ("fallen off the bus", "gpu_lost"),
    ("RmInitAdapter failed", "rm_init_failed"),
    ("rm_init_adapter failed", "rm_init_failed"),
    ("requires use of the NVIDIA open kernel modules", "open_module_required"),
    ("is not supported by the open nvidia.ko", "unsupported_gpu"),
    ("This PCI I/O region assigned to your NVIDIA device is invalid", "bar_invalid"),
    ("probe routine failed", "probe_failed"),
    ("probe routine was not called", "probe_failed"),
    ("None of the NVIDIA", "probe_failed"),
    ("No NVIDIA GPU found", "probe_failed"),
    ("probe of", "probe_failed"),
    ("Rate limiting GSP", "gsp"),
    ("Timeout waiting for RPC from GSP", "gsp"),
    ("GSP firmware", "gsp"),
    ("kgsp", "gsp"),
    ("GSP", ""),
    ("is lost", "nvrm"),
    ("ERROR", "nvrm"),
    ("rror", "nvrm"),
    ("ailed", "nvrm"),
    ("ailure", "nvrm"),
    ("imeout", "nvrm"),
    ("timed out", "nvrm"),
)
"""The first piece that occurs decides; an empty kind means: known, no event."""

NIC_TEXTS: Texts = (
    ("Link down", "nic_link_down"),
    ("Cable unplugged", "nic_link_down"),
    ("Link up", "nic_link_up"),
    ("Cable error", "nic_fault"),
    ("Bad or shorted cable", "nic_fault"),
    ("health", "nic_fault"),
    ("Fatal", "nic_fault"),
    ("Power budget exceeded", "nic_fault"),
    ("High Temperature", "nic_fault"),
    ("device is disconnected", "nic_fault"),
)


def kind_of(text: str, texts: Texts) -> str | None:
    """The kind of the first piece that the text holds, None where it holds none or means nothing."""
    for piece, kind in texts:
        if piece in text:
            return kind or None
    return None
