r"""Kernel modules and device files of the NVIDIA driver, as shells and nvidia-bug-report show them.

    NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build  (root@build)
    $ lsmod | grep nvidia
    nvidia_uvm           1036288  0
    filename:       /lib/modules/5.15.0-88-generic/updates/dkms/nvidia.ko
    nvidia/535.129.03, 5.15.0-88-generic, x86_64: installed
    crw-rw-rw- 1 root root 195, 255 Jul 16 09:58 /dev/nvidiactl
    ls: cannot access '/dev/nvidia-uvm': No such file or directory

Seen: drivers 390 to 595, kmod 20 to 33, coreutils 8 and 9, dkms 2 and 3. A list of modules that was filtered for a
name and is empty says that this module is not loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.parsers.values import integer
from analyzer.shapes import LineGrammar

Fields = Mapping[str, str]

_PATIENCE = 3
_GAP = 4  # lines between rows of one list
_NVRM = re.compile(r"(?P<flavour>Open )?Kernel Module(?: for \S+)?\s+(?P<version>[0-9][0-9.]*)")
_NODE = re.compile(r"(c[\w-]{9})\S* .*? ([0-9]+), *([0-9]+) .*?((?:/dev/)?(?:nvidia-caps/)?nvidia[^\s]*)$")
_FILTER = re.compile(r"\|\s*(?:grep|egrep|rg)\s+(?:-\w+\s+)*['\"^]*(\w+)")
_DKMS = re.compile(r"(nvidia[\w-]*)[/,] ?([0-9][\w.~-]*), (.*?): (.*)")
_OURS = ("nvidia", "nouveau", "gdrdrv", "nv_peer", "ib_")


class DriverStackSession(Session):
    """Open below a command or a head until lines come that fit neither list."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._block = ""
        self._asked: tuple[Line, str] | None = None
        self._rows = 0
        self._foreign = 0
        self._listing = 0
        self._last = 0
        self._info: tuple[Line, dict[str, object]] | None = None

    def unread(self, line: Line) -> Verdict:
        return self.foreign(line) if self.open else Verdict.UNREAD

    def foreign(self, line: Line) -> Verdict:
        self._foreign += bool(line.text.strip())
        return Verdict.ENDED if self._foreign > _PATIENCE else Verdict.LEFT

    def close(self) -> None:
        """Sends what waits: a module that was asked for and not listed, the fields of modinfo."""
        self._end()
        self._listing = 0
        super().close()

    def _end(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None and not self._rows:
            self.emit("module", asked[0], {"name": asked[1], "loaded": False, "tool": "lsmod"})
        info, self._info = self._info, None
        if info is not None:
            self.emit("module", info[0], {**info[1], "tool": "modinfo"})
        self._block = ""

    def _begin(self, block: str) -> None:
        self._end()
        self._block, self._rows, self._foreign, self._listing = block, 0, 0, 0
        self.open = True

    def _list(self, line: Line) -> int:
        """The list that a row belongs to: rows without a command above them go together where they stand together."""
        if not self._listing or (not self.open and line.ref - self._last > _GAP):
            self._listing = line.ref
        self._last = line.ref
        return self._listing

    def on_nvrm(self, f: Fields, line: Line) -> None:
        found = _NVRM.search(f["text"])
        if found is None:
            return
        version = found.group("version")
        self.emit("version", line, {"component": "NVIDIA kernel module", "value": version})
        flavour = "open" if found.group("flavour") else "proprietary"
        values = {"name": "nvidia", "version": version, "flavour": flavour, "loaded": True}
        self.emit("module", line, values | {"tool": "/proc/driver/nvidia/version"})

    def on_modules_command(self, f: Fields, line: Line) -> None:
        self._begin("modules")
        asked = _FILTER.search(f.get("options", ""))
        self._asked = (line, asked.group(1)) if asked else None

    def on_modules_head(self, f: Fields, line: Line) -> None:
        if self._block != "modules" or self._rows:
            self._begin("modules")

    def on_module(self, f: Fields, line: Line) -> Verdict | None:
        if self._block != "modules":
            return self.foreign(line) if self.open else Verdict.LEFT
        name, _, _, *used_by = line.text.split()
        self._module(line, name, used_by[0] if used_by else None)
        return None

    def _module(self, line: Line, name: str, used_by: str | None) -> None:
        self._rows += 1
        self._foreign = 0
        if name.startswith(_OURS) or name in (used_by or ""):
            row = {"name": name, "loaded": True, "used_by": used_by, "tool": "lsmod", "listing": self._list(line)}
            self.emit("module", line, row)

    def on_proc_module(self, f: Fields, line: Line) -> None:
        name, _, _, used_by, *_ = line.text.split()
        self._module(line, name, None if used_by == "-" else used_by.rstrip(","))

    def on_prompt(self, f: Fields, line: Line) -> Verdict:
        return Verdict.ENDED if self.open else Verdict.LEFT

    def on_nodes_command(self, f: Fields, line: Line) -> None:
        self._begin("nodes")

    def on_node(self, f: Fields, line: Line) -> Verdict | None:
        found = _NODE.search(line.text.split(" -> ")[0])
        if found is None:
            return None if self.open and line.text.startswith("l") else Verdict.LEFT
        mode, major, minor, path = found.groups()
        self._node(line, path, mode=mode, major=integer(major), minor=integer(minor))
        return None

    def _node(self, line: Line, path: str, **values: object) -> None:
        self._foreign = 0
        full = path if path.startswith("/") else f"/dev/{path}"
        self.emit("device_node", line, {"path": full, "present": True, "listing": self._list(line), **values})

    def on_node_names(self, f: Fields, line: Line) -> Verdict | None:
        if line.text.strip().endswith(":") and not self.open:
            return Verdict.LEFT
        for path in line.text.split():
            if not path.endswith((":", "/nvidia-caps")):
                self._node(line, path)
        return None

    def on_bare_node(self, f: Fields, line: Line) -> Verdict | None:
        if self._block != "nodes":
            return self.foreign(line) if self.open else Verdict.LEFT
        for name in line.text.split():
            if not name.endswith((":", "nvidia-caps")):
                self._node(line, name)
        return None

    def on_node_missing(self, f: Fields, line: Line) -> None:
        self._foreign = 0
        self.emit("device_node", line, {"path": f["path"].rstrip("*"), "present": False})

    def on_modinfo_missing(self, f: Fields, line: Line) -> Verdict | None:
        if not f["module"].startswith("nvidia"):
            return Verdict.LEFT
        absent = "installed" if line.text.startswith("modinfo") else "loaded"
        name = f["module"].replace("-", "_")
        self.emit("module", line, {"name": name, absent: False, "tool": line.text.partition(":")[0]})
        return None

    def on_modinfo_file(self, f: Fields, line: Line) -> Verdict | None:
        path = f["text"]
        name = path.rpartition("/")[2].partition(".ko")[0].replace("-", "_")
        if not name.startswith("nvidia"):
            return Verdict.LEFT
        self._begin("modinfo")
        self._info = (line, {"name": name, "installed": True})
        return None

    def on_modinfo_field(self, f: Fields, line: Line) -> Verdict | None:
        if self._info is None:
            return self.foreign(line) if self.open else Verdict.LEFT
        field, _, value = line.text.partition(":")
        if field == "version":
            self._info[1]["version"] = value.strip()
        elif field == "license":
            self._info[1]["flavour"] = "open" if "MIT" in value else "proprietary"
        self._foreign = 0
        return None

    def on_dkms(self, f: Fields, line: Line) -> None:
        found = _DKMS.match(line.text)
        if found:
            name, version, _, state = found.groups()
            values = {"name": "nvidia", "version": version, "installed": state.startswith("installed")}
            self.emit("module", line, values | {"flavour": "open" if "open" in name else None, "tool": "dkms"})


_LITERALS = (
    "NVRM version:",
    "$ lsmod",
    "sudo lsmod",
    "# lsmod",
    "cat /proc/modules",
    "Size  Used by",
    " Live 0x",
    "/dev/nvidia",
    " /dev | grep",
    "modinfo: ERROR: Module nvidia",
    "rmmod: ERROR: Module nvidia",
    "filename:       /lib/modules/",
    "filename: /lib/modules/",
    "_64: installed",
    "aarch64: installed",
)
FORMAT = Format(
    name="driver-stack",
    grammar="driver_stack",
    literals=_LITERALS,
    session=DriverStackSession,
    title="modules and device files of the NVIDIA driver",
    command="cat /proc/driver/nvidia/version; lsmod | grep nvidia; modinfo nvidia; ls -l /dev/nvidia*",
    versions="drivers 390 to 595",
    weak_literals=frozenset(_LITERALS),
)
