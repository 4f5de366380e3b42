"""What the commands print that tell whether a container or host has RDMA devices, libraries and limits for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

Fact = dict[str, object]

_VERBS = re.compile(r"\b(uverbs[0-9]+|rdma_cm|umad[0-9]+|issm[0-9]+)\b")
_LISTED = re.compile(r"\s*(?:crw\S+\s.*\s)?(?:/dev/infiniband/)?(?:uverbs|rdma_cm|issm|umad)[0-9_a-z]*(?:\s|$)")
_NO_SUCH = re.compile(r"([^\s:'`‘]*/dev/infiniband[^\s:'’]*)['’]?: No such file or directory")
_DRIVER = re.compile(
    r"([\w.-]+)[\s:]+(?:\S*/)?(mlx[45]_core|mlx[45]_ib|efa|irdma|bnxt_re|hfi1|ionic(?:_rdma)?|mana_ib|rdma_rxe|siw|erdma|"
    r"usnic_verbs|qedr|iw_cxgb4)"
)
_PEER_PATH = re.compile(r"(\S*/sys/kernel/mm/memory_peers/(\S+?)(?:/version)?)['’]?(: No such file or directory)?$")
_PORT_RANGE = re.compile(r"(?:ip_local_port_range\s*[=:]?\s*)?([0-9]{1,5})\s+([0-9]{1,5})")
_MEMLOCK = (
    re.compile(r"max locked memory\s+\(kbytes, -l\)\s+(\S+)"),
    re.compile(r"ulimit -l(?:\s*[=:])\s*(\S+)"),
)
_MEMLOCK_BYTES = (
    re.compile(r"Max locked memory\s+(\S+)\s+\S+\s+bytes"),
    re.compile(r"RLIMIT_MEMLOCK is (\S+) bytes"),
    re.compile(r"MEMLOCK\s+max locked-in-memory address space\s+(\S+)"),
)
_TCP = (re.compile(r"^TCP:\s+([0-9]+)"), re.compile(r"TCP: inuse ([0-9]+)"))
_HOSTS = re.compile(r"((?:127|10|172|192)(?:\.[0-9]{1,3}){3})\s+([A-Za-z][\w.-]*(?:\s+[A-Za-z][\w.-]*)*)\s*$")
_NUMBER = re.compile(r"\s*([0-9]+)\s*$")
_PINGED = re.compile(r"([0-9]+) packets transmitted, ([0-9]+) (?:packets )?received")
_OPEN = re.compile(
    r"Connection to (\S+) (?:\(\S+\) )?([0-9]+) port .*succeeded|(?:Ncat: Connected to|Connected to) ([0-9.]+):([0-9]+)"
)
_FIREWALL = (
    (re.compile(r"Status: active"), "ufw"),
    (re.compile(r"^\s*running\s*$"), "firewalld"),
    (
        re.compile(r"^(?:REJECT|DROP)\s+(?:all|tcp|0|6)\s|-A \S+ .*-j (?:REJECT|DROP)|policy (?:DROP|REJECT)\b"),
        "iptables",
    ),
)


def _limit(text: str, unit: int) -> Fact:
    if text == "unlimited":
        return {"kind": "memlock_limit", "value": text}
    return {"kind": "memlock_limit", "value": text, "number": int(text) * unit if text.isdigit() else None}


def anywhere(text: str) -> Iterator[Fact]:
    """Facts of a line that need no command before it."""
    if _LISTED.match(text):
        yield from _devices(text)
    missing = _NO_SUCH.search(text)
    if missing:
        yield {"kind": "device_node", "name": missing.group(1), "present": False}
    for form in _MEMLOCK:
        if found := form.search(text):
            yield _limit(found.group(1), 1024)
    for form in _MEMLOCK_BYTES:
        if found := form.search(text):
            yield _limit(found.group(1), 1)
    if "ip_local_port_range" in text and (found := _PORT_RANGE.search(text.partition("ip_local_port_range")[2])):
        yield _ports(found)
    if found := _PEER_PATH.search(text.strip()):
        yield {"kind": "peer_memory_path", "name": found.group(2), "present": found.group(3) is None}
    if "hostPath" in text and "/dev/infiniband" in text:
        yield {"kind": "host_path", "name": "/dev/infiniband", "present": True}
    if "provider: " in text:
        yield {"kind": "fi_provider", "name": text.partition("provider: ")[2].strip(), "present": True}
    if "fi_getinfo: -" in text:
        yield {"kind": "fi_provider", "name": "efa", "present": False, "value": text.strip()}
    if found := _OPEN.search(text):
        yield {"kind": "reachable", "name": found.group(1) or found.group(3), "present": True, "value": text.strip()}
    if found := _PINGED.search(text):
        yield {"kind": "reachable", "name": "ping", "present": found.group(2) != "0", "value": text.strip()}
    for form in _TCP:
        if found := form.search(text):
            yield {"kind": "tcp_sockets", "number": int(found.group(1)), "value": text.strip()}


def _ports(found: re.Match[str]) -> Fact:
    first, last = int(found.group(1)), int(found.group(2))
    return {"kind": "port_range", "value": f"{first} {last}", "number": max(0, last - first + 1)}


class Command:
    """One command of a transcript: what it looks for, and the facts of its output."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._facts = 0
        self._silent_means = _silent(text)
        self._counts = re.search(r"grep -\w*c|wc -l", text) is not None

    @property
    def known(self) -> bool:
        """Whether the output of this command tells something."""
        return bool(self._silent_means) or any(word in self._text for word in _COMMANDS)

    def said(self) -> None:
        """A line of the output was understood without the command."""
        self._facts += 1

    def output(self, text: str) -> Iterator[Fact]:
        """Facts of one line of the output."""
        for fact in self._read(text):
            self._facts += 1
            yield fact

    def _read(self, text: str) -> Iterator[Fact]:
        count = _NUMBER.match(text)
        if self._counts and count is not None:
            yield from self._counted(int(count.group(1)))
        elif "infiniband" in self._text or "ibv_devices" in self._text:
            yield from _devices(text)
        elif "ulimit -l" in self._text and (count is not None or text.strip() == "unlimited"):
            yield _limit(text.strip(), 1024)
        elif "ip_local_port_range" in self._text and "range" not in text and (found := _PORT_RANGE.match(text.strip())):
            yield _ports(found)
        elif ("getent" in self._text or "/etc/hosts" in self._text) and (hosts := _HOSTS.match(text.strip())):
            for name in hosts.group(2).split():
                yield {"kind": "hosts_entry", "name": name, "value": hosts.group(1)}
        elif self._silent_means and text.strip():
            kind, name = self._silent_means
            absent = "no such" in text.lower() or "not installed" in text or "not found" in text
            yield {"kind": kind, "name": name, "present": not absent, "value": text.strip()[:120]}
        yield from (f for f in _firewall(self._text, text))

    def _counted(self, count: int) -> Iterator[Fact]:
        if re.search(r"\bss\b|netstat|TIME_WAIT|ESTAB", self._text):
            yield {"kind": "tcp_sockets", "number": count, "value": self._text[:120]}
        elif self._silent_means:
            kind, name = self._silent_means
            yield {"kind": kind, "name": name, "present": count > 0, "number": count}

    def end(self) -> Iterator[Fact]:
        """What it means that the command printed nothing."""
        if self._silent_means and not self._facts:
            kind, name = self._silent_means
            yield {"kind": kind, "name": name, "present": False, "value": "no output"}


_COMMANDS = (
    "/dev/infiniband", "class/infiniband", "ulimit -l", "ip_local_port_range", "getent", "/etc/hosts", "fi_info",
    "ss -", "netstat", "ufw ", "firewall-cmd", "iptables", "nft list", "memory_peers", "ibv_devices", "ibv_devinfo",
    "hostname",
)  # fmt: skip


def _silent(command: str) -> tuple[str, str] | None:
    """Kind and name of what a command would have printed if it were there."""
    if "ibverbs" in command or "rdma-core" in command:
        return "library", "libibverbs"
    if "lsmod" in command or "/proc/modules" in command:
        found = re.search(r"nvidia[_.\\-]*peer\w*|nv_peer_mem|peer_?mem\w*|ib_\w+|mlx5_\w+|efa", command)
        name = found.group() if found else None
        return ("kernel_module", "nvidia_peermem" if name and "peer" in name else name) if name else None
    return None


def _devices(text: str) -> Iterator[Fact]:
    for name in _VERBS.findall(text):
        yield {"kind": "device_node", "name": f"/dev/infiniband/{name}", "present": True}
    found = _DRIVER.fullmatch(text.strip())
    if found:
        yield {"kind": "rdma_driver", "name": found.group(1), "value": found.group(2), "present": True}


def _firewall(command: str, text: str) -> Iterator[Fact]:
    for form, name in _FIREWALL:
        if name[:4] in command.replace("firewall-cmd", "firewalld") and form.search(text):
            yield {"kind": "firewall", "name": name, "present": True, "value": text.strip()[:120]}
