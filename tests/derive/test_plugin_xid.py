"""Xids that only the device plug-in of Kubernetes reported."""

from __future__ import annotations

from pathlib import Path

from analyzer.analysis import gather
from analyzer.derive.plugin_xid import derive_plugin_xids

UUID = "GPU-00000000-1111-2222-3333-444444444444"
PLUGIN = (
    f"I0506 10:00:00.123456 1 health.go:100] XidCriticalError: Xid=79 on Device={UUID}; marking device as unhealthy.\n"
)
KERNEL = "[  130.456250] NVRM: Xid (PCI:0000:cb:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
LIST = f"""index, uuid, pci.bus_id
3, {UUID}, 00000000:CB:00.0
"""


def _xids(folder: Path, **files: str) -> list[tuple[object, object]]:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    evidence = gather([str(folder)], 1)
    derive_plugin_xids(evidence)
    return [(row["code"], row["bus_id"]) for row in evidence.rows("xid")]


def test_the_plugin_alone(tmp_path: Path) -> None:
    assert _xids(tmp_path, plugin=PLUGIN) == [(79, None)]


def test_the_card_that_a_tool_listed(tmp_path: Path) -> None:
    assert _xids(tmp_path, plugin=PLUGIN, cards=LIST) == [(79, "0000:cb:00.0")]


def test_the_kernel_log_comes_first(tmp_path: Path) -> None:
    assert _xids(tmp_path, plugin=PLUGIN, dmesg=KERNEL) == [(79, "0000:cb:00.0")]
