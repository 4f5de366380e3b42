"""The host of files whose lines name none: by a host that other evidence knows, or by what stands beside a command.

``ibstat-dd-0.txt`` is of dd-0 where a log speaks of dd-0. Where nothing else names a host, files of network state
that are called after a command and one more word (``ibstat-dd-0.txt``, ``b17-show_gids.txt``) are told apart by it.
"""

from __future__ import annotations

import re
from collections import defaultdict

from analyzer.evidence import Evidence
from analyzer.schema import RAW

_STATE = (
    "nic_port", "nic_gid", "nic_pkey", "nic_counter", "interface", "route", "system_fact", "network_test", "topo_link",
    "module",
)  # fmt: skip
_SUFFIXES = re.compile(r"(?:\.(?:log|txt|out|err|gz|zst))+$", re.IGNORECASE)
_COMMANDS = re.compile(
    r"(?<![A-Za-z0-9])(?:ibstatus|ibstat|ibv_devinfo|ibv-devinfo|devinfo|show_gids|show-gids|gids|rdma|perfquery|ibdev2netdev|"
    r"iblinkinfo|ip-br|ip_br|ip|route|routes|addr|link|ethtool|sar|lsmod|modules|topo|mtu|pkeys?|nvidia-smi|smi|m|net|counters)"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z][\w-]*[0-9]|[A-Za-z][\w-]*-[a-z]|[A-Z]")
_HOSTLESS = re.compile(
    r"(?i)(?:run|test|try|step|rank|gpu|job|case|attempt|part|phase|v|eth|ib|mlx|bond|en[opsx])[-_]?[0-9_]*"
)


def derive_file_hosts(evidence: Evidence) -> None:
    """Fills the host of rows that have none, by the name of their file."""
    files = {row["stream"]: row["input"] for row in evidence.rows("stream")}
    known = _known(evidence)
    hosts: dict[int, str] = {}
    state = _state_inputs(evidence, files)
    for number, entry in enumerate(evidence.inputs):
        stem = _SUFFIXES.sub("", entry.file.replace("!", "/").rsplit("/", 1)[-1])
        host = _named(stem, known) or (_beside_command(stem) if number in state else None)
        if host:
            hosts[number] = host
    streams = {stream: hosts[number] for stream, number in files.items() if number in hosts}
    if not streams:
        return
    for table in RAW:
        if evidence.has(table.name) and table.name != "host_pair":
            frame = evidence[table.name]
            missing = frame["host"].isna()
            if missing.any():
                frame["host"] = frame["host"].where(~missing, frame["stream"].map(streams)).astype(object)
                frame["host"] = frame["host"].where(frame["host"].notna(), None)
    evidence.edited()


def _known(evidence: Evidence) -> set[str]:
    found: set[str] = set()
    for table in RAW:
        if evidence.has(table.name) and table.name != "stream":
            found |= set(evidence[table.name]["host"].dropna())
    return {host for host in found if not host.replace(".", "").isdigit()}


def _state_inputs(evidence: Evidence, files: dict[int, int]) -> set[int]:
    found: dict[int, int] = defaultdict(int)
    for name in _STATE:
        if evidence.has(name):
            frame = evidence[name]
            for stream in set(frame[frame["host"].isna()]["stream"].dropna()):
                found[files.get(int(stream), -1)] += 1
    return set(found)


def _named(stem: str, known: set[str]) -> str | None:
    """The known host that stands in a file name as a word of its own; the longest wins."""
    fitting = [h for h in known if re.search(rf"(?<![A-Za-z0-9]){re.escape(h)}(?![A-Za-z0-9])", stem)]
    return max(fitting, key=len, default=None)


def _beside_command(stem: str) -> str | None:
    rest = _COMMANDS.sub("", stem).strip("-_.")
    if rest == stem or not _NAME.fullmatch(rest) or _HOSTLESS.fullmatch(rest):
        return None
    return rest
