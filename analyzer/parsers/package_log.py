"""Logs of package managers: when the driver, its libraries or CUDA were changed.

    2024-04-12 06:14:22 upgrade libnvidia-compute-535:amd64 535.161.07-0ubuntu1 535.171.04-0ubuntu1
    Start-Date: 2024-04-12  06:14:20
    Upgrade: nvidia-utils-535:amd64 (535.161.07-0ubuntu1, 535.171.04-0ubuntu1), curl:amd64 (7.81.0, 7.81.1)
    2024-04-12T06:14:22+0000 SUBDEBUG Upgrade: nvidia-driver-libs-3:535.171.04-1.el9.x86_64
    Apr 12 06:14:22 Updated: 3:nvidia-driver-libs-535.171.04-1.el7.x86_64

Seen: dpkg 1.19 to 1.22, apt 1.6 to 2.9, dnf 4 (``Upgrade`` names the new package, ``Upgraded`` the one that it
replaced), yum 3. Only packages of the driver, CUDA, NCCL and the kernel count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.parsers.base import Emit, Format, Line, Session, Verdict
from analyzer.shapes import LineGrammar
from analyzer.sources.stamp import iso_seconds

Fields = Mapping[str, str]

_KEPT = re.compile(
    r"nvidia|cuda|nccl|^linux-(?:image|modules|headers)|^kernel(?:-core|-modules)?$|fabricmanager|docker|systemd$"
)
_ENTRY = re.compile(r"([a-z0-9][\w.+-]*)(?::\w+)? \(([^()]*)\)")
_RPM = re.compile(r"(?:\d+:)?([A-Za-z][\w+-]*?)-(?:\d+:)?([0-9][\w.~+^]*)-[\w.~+^]+")
_ACTIONS = {
    **{"install": "install", "installed": "install", "reinstall": "install", "installing": "install"},
    **{"upgrade": "upgrade", "upgraded": "upgrade", "updated": "upgrade", "upgrading": "upgrade"},
    **{"updating": "upgrade", "downgrade": "downgrade", "downgraded": "downgrade"},
    **{"remove": "remove", "removed": "remove", "purge": "remove", "erase": "remove", "erased": "remove"},
}


class PackageLogSession(Session):
    """One row for each package; the entries of apt take the time of their block."""

    def __init__(self, grammar: LineGrammar, emit: Emit) -> None:
        super().__init__(grammar, emit)
        self._at: float | None = None

    def unread(self, line: Line) -> Verdict:
        return Verdict.LEFT

    def _send(self, line: Line, tool: str, action: str, name: str, old: str | None, new: str | None) -> Verdict | None:
        name = name.lower().partition(":")[0]
        if not _KEPT.search(name):
            return None
        row: dict[str, object] = {
            "action": _ACTIONS[action.lower()],
            "name": name,
            "old": old,
            "new": new,
            "tool": tool,
        }
        if line.at is None and self._at is not None and tool == "apt":
            row["at"] = self._at
        self.emit("package_event", line, row)
        return None

    def on_dpkg(self, f: Fields, line: Line) -> Verdict | None:
        action = next(word for word in line.text.split() if word in _ACTIONS)
        old, new = (None if value in (None, "<none>") else value for value in (f["old"], f.get("new")))
        return self._send(line, "dpkg", action, f["name"], old, new)

    def on_apt(self, f: Fields, line: Line) -> Verdict | None:
        action = line.text.partition(":")[0]
        for name, versions in _ENTRY.findall(f["packages"]):
            old, _, new = (part.strip() for part in versions.partition(", "))
            if new in ("", "automatic"):
                old, new = (old, "") if _ACTIONS[action.lower()] == "remove" else ("", old)
            self._send(line, "apt", action, name, old or None, new or None)
        return None

    def on_apt_time(self, f: Fields, line: Line) -> None:
        self._at = iso_seconds(" ".join(f["packages"].split()))

    def on_apt_command(self, f: Fields, line: Line) -> None:
        """Known: who changed the packages, and how."""

    def on_dnf(self, f: Fields, line: Line) -> Verdict | None:
        action = line.text.partition(":")[0].split()[-1]
        found = _RPM.match(f["packages"].strip())
        if found is None:
            return Verdict.LEFT
        old, new = (found.group(2), None) if action == "Upgraded" else (None, found.group(2))
        return self._send(line, "dnf", action, found.group(1), old, new)


_LITERALS = (
    " upgrade lib",
    " upgrade nvidia",
    " upgrade linux-",
    " upgrade cuda",
    " install lib",
    " install nvidia",
    " install linux-",
    " remove nvidia",
    " remove lib",
    "Start-Date: ",
    "Upgrade: ",
    "Upgraded: ",
    "Updated: ",
    "Installed: ",
    "Install: ",
)
FORMAT = Format(
    name="package-log",
    grammar="package_log",
    literals=_LITERALS,
    session=PackageLogSession,
    title="logs of package managers (dpkg, apt, dnf, yum)",
    command="grep -e nvidia -e linux-image /var/log/dpkg.log /var/log/apt/history.log",
    versions="dpkg 1.19 to 1.22, apt 1.6 to 2.9, dnf 4, yum 3",
    weak_literals=frozenset(_LITERALS),
)
