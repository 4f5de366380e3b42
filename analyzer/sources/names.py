"""What a file name says: which rank or host wrote the file, and how a name is shown."""

from __future__ import annotations

import os
import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_RANK = re.compile(r"(?:^|[._/\-])(?:global[._-]?)?rank[._=-]?(\d{1,6})(?=$|[._/\-])", re.IGNORECASE)
_ATTEMPT = re.compile(r"(?:^|/)attempt_\d+/(\d{1,6})/(?:stdout|stderr)(?:\.log)?$")

HOST_WORD = (
    r"(?:[a-z0-9]{1,30}[-_]){0,6}"
    r"(?:[a-z]{0,20}(?:worker|node|host|srv|server|compute|hgx|dgx)-?\d{1,6}(?:-\d{1,6}){0,4}|vm-?\d{1,6}"
    r"|(?:worker|node|host|srv|server)-[a-z]|gpu-(?:\d{2,6}|\d(?=-\d))(?:-\d{1,6}){0,3}|ip(?:-\d{1,3}){4})"
)
"""Host names that are told apart from other words by their form alone: worker-0, node07, srv-b, gpu-12-4."""

_HOST = re.compile(rf"({HOST_WORD})", re.IGNORECASE)
_HOST_FIRST = re.compile(rf"({HOST_WORD})[-_.][a-z][\w-]*", re.IGNORECASE)
# Commands and logs that stand before a host (ip-route-srv-b.txt); any other word belongs to the name of the host.
_COMMAND = (
    r"(?:nvidia-smi|nvidia-bug-report|dmesg|kern|kernel|journal|journalctl|syslog|messages|smi|nccl|topo|p2p|nvlink|"
    r"lspci|lsmod|ibstat|ibstatus|ibv_devinfo|show_gids|rdma|ip|ethtool|sar|ss|ps|free|top|env|hosts|fabricmanager|"
    r"nv-fabricmanager|dcgm|dcgmi|stdout|stderr|log|job|slurm)"
)
_OPTION = r"(?:[-_](?:route|rule|addr|address|link|br|topo|nvlink|p2p|tv|vvv?|[a-z]))?"
_HOST_LAST = re.compile(rf"{_COMMAND}{_OPTION}[-_.]({HOST_WORD})", re.IGNORECASE)
_SOS = re.compile(
    r"(?:^|/)sosreport-([A-Za-z0-9][\w.-]{0,80}?)(?:-\d{5,20})?-(?:\d{4}-\d\d-\d\d-[a-z0-9]{4,12}|\d{14})(?:[./]|$)"
)
_SUFFIXES = re.compile(r"(?:\.(?:log|txt|out|err|gz|zst|json|csv|xml))+$", re.IGNORECASE)


def displayable(name: str) -> str:
    """A file name with its control, bidirectional and undecodable characters escaped."""
    return _CONTROL.sub(lambda found: _escape(found.group()), name)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as os.fsdecode carries it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def name_rank(name: str) -> int | None:
    """The rank that a file or folder name states (``rank3.log``, ``rank-12/stdout.log``, ``attempt_0/3/stderr.log``).

    The name nearest to the file wins.
    """
    name = _posix(name)
    ranks = _RANK.findall(name)
    if ranks:
        return int(ranks[-1])
    found = _ATTEMPT.search(_SUFFIXES.sub("", name))
    return int(found.group(1)) if found else None


def name_host(name: str) -> str | None:
    """The host that a name states: ``node07.log``, ``node07-dmesg.txt``, ``dmesg-node07.txt``, or the folder above.

    Inside a sosreport it is the host that the report is named after (``sosreport-node07-2025-03-14-abcdefg``).
    """
    posix = _posix(name)
    if "sosreport-" in posix and (sos := _SOS.search(posix)):
        return sos.group(1).partition(".")[0]
    *folders, base = posix.split("/")
    stem = _SUFFIXES.sub("", base)
    for pattern in (_HOST_LAST, _HOST, _HOST_FIRST):
        found = pattern.fullmatch(stem)
        if found:
            return found.group(1)
    if folders and _HOST.fullmatch(folders[-1]):
        return folders[-1]
    return None


def _posix(name: str) -> str:
    return name.replace(os.sep, "/").replace("!", "/")
