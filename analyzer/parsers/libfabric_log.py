"""Log of libfabric (``FI_LOG_LEVEL=warn``), and what UCX and libibverbs say of adapters that cannot be opened.

    libfabric:211:1754841200:efa:ep_data:efa_device_construct_gid():47<warn> ibv_open_device failed! errno: 1
    libfabric:211:1754841200:core:core:fi_getinfo_():1391<warn> fi_getinfo: provider efa output empty list
    [1700000000.1] [node:77 :0]  ib_md.c:389 UCX ERROR ibv_open_device(mlx5_0) failed: No such file or directory

Seen: libfabric 1.11 to 2.1, UCX 1.10 to 1.17.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Format, Line, Session, Verdict

Fields = Mapping[str, str]

_PID = re.compile(r"libfabric:([0-9]+):")
_EMPTY = re.compile(r"provider (\w+) (?:output empty list|returned -61)|fi_getinfo: -61|No data available")
_OPEN = re.compile(r"ibv_open_device(?:\((?:\S*/)?([\w.-]+)\))? ?failed")
_ERRNO = re.compile(r"errno: ([0-9]+)|err=-([0-9]+)")


class LibfabricSession(Session):
    """Reads line by line; only refusals become rows."""

    def unread(self, line: Line) -> Verdict:
        """The same words inside a line of another log are left to it."""
        return Verdict.LEFT

    def on_libfabric(self, f: Fields, line: Line) -> None:
        text = f["text"]
        pid = _PID.search(line.text)
        opened, empty, errno = _OPEN.search(text), _EMPTY.search(text), _ERRNO.search(text)
        values: dict[str, object] = {"pid": int(pid.group(1)) if pid else None, "text": text[:300]}
        if errno:
            values["status"] = int(errno.group(1) or errno.group(2))
        if opened:
            self.emit("network_event", line, values | {"kind": "open_failed", "device": opened.group(1)})
        elif empty:
            self.emit("network_event", line, values | {"kind": "provider_empty", "device": empty.group(1)})

    def on_ucx(self, f: Fields, line: Line) -> Verdict | None:
        found = _OPEN.search(line.text)
        if found is None or "NCCL" in line.text:
            return Verdict.LEFT
        values = {"kind": "open_failed", "device": found.group(1), "text": found.string[found.start() :][:300]}
        self.emit("network_event", line, values)
        return None

    def on_verbs_warning(self, f: Fields, line: Line) -> None:
        """Known: limits of locked memory, which another format reads, and providers that are not installed."""
        if "driver" in f["text"] and "couldn't load" in f["text"]:
            self.emit("network_event", line, {"kind": "no_verbs_library", "text": line.text.strip()[:300]})


FORMAT = Format(
    name="libfabric-log",
    grammar="libfabric_log",
    literals=("libfabric:", "ibv_open_device(", "libibverbs: Warning"),
    session=LibfabricSession,
    title="log of libfabric, refusals of UCX and libibverbs",
    command="FI_LOG_LEVEL=warn",
    versions="libfabric 1.11 to 2.1, UCX 1.10 to 1.17",
    weak_literals=frozenset({"libfabric:", "ibv_open_device("}),
    blocks=False,
)
