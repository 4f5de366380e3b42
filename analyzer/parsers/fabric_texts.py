"""What a message of NVIDIA's fabric manager says: its kind and the device, port, number and versions in it.

    multicast group 7 is allocated.
    failed to allocate a multicast group, no free multicast group is available.
    fabric manager NVIDIA GPU driver interface version 550.90.07 don't match with driver version 550.54.15. ...
    detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 33

Wordings of fabric managers 450 to 580.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.parsers.values import bus_id

Values = dict[str, object]

_MISMATCH = re.compile(r"version ([0-9][0-9.]{2,20}[0-9]).{0,40}?match.{0,60}?version:? ([0-9][0-9.]{2,20}[0-9])", re.I)
_GROUP = re.compile(r"multicast group ([0-9]{1,6}) is (allocated|freed)")
_ERROR = re.compile(r"NVSwitch (fatal|non-fatal) error ([0-9]{4,5})", re.IGNORECASE)
_BUS = re.compile(r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_PORT = re.compile(r"\bport ([0-9]{1,3})")
_FULL = re.compile(
    r"no (?:free |more |available )?multicast (?:group|slot|team)s?|multicast.{0,60}(?:exhaust|in use)", re.I
)
_KINDS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("multicast_failed", r"(?:fail|error|unable|cannot).{0,60}multicast|multicast.{0,60}(?:fail|error)"),
        ("topology_mismatch", r"number of NVSwitches (?:don't|do not|does not) match|not match .{0,40}system topology"),
        ("no_switch", r"NV_WARN_NOTHING_TO_DO|no NVSwitch"),
        ("training_failed", r"train\w*.{0,60}(?:fail|error)|fail.{0,80}train"),
        ("configured", r"Successfully configured all the available"),
        ("gpu_failed", r"(?:fail|error|unable).{0,80}\bGPU\b|\bGPU\b.{0,60}(?:fail|not registered)"),
        ("aborted", r"abort|exiting|terminat"),
        ("stopping", r"received.{0,40}(?:stop|signal)|shutting down|stopping"),
        ("starting", r"version [0-9][0-9.]+ is running|Log initializing"),
    )
)
_QUIET = frozenset({"multicast_failed", "training_failed", "gpu_failed", "aborted"})


def fabric_message(text: str, level: str | None = None) -> Values | None:
    """The fields of table ``fabric_message``; None for a message without interest."""
    values: Values = {"text": text}
    if level is not None:
        values["level"] = level
    kind = _kind(text, values)
    if kind is None or (level in ("INFO", "DEBUG") and kind in _QUIET):
        if level not in ("ERROR", "CRITICAL"):
            return None
        kind = kind or "other"
    bus, port = _BUS.search(text), _PORT.search(text)
    if bus:
        values["bus_id"] = bus_id(bus.group(1))
    if port:
        values["link"] = int(port.group(1))
    return values | {"kind": kind}


def _kind(text: str, values: Values) -> str | None:
    mismatch = _MISMATCH.search(text)
    if mismatch:
        values["found"], values["wanted"] = mismatch.groups()
        return "version_mismatch"
    group = _GROUP.search(text)
    if group:
        values["value"] = int(group.group(1))
        return f"multicast_{group.group(2)}"
    error = _ERROR.search(text)
    if error:
        values["code"] = int(error.group(2))
        return "switch_fatal" if error.group(1).lower() == "fatal" else "switch_non_fatal"
    if _FULL.search(text):
        return "multicast_full"
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), None)
