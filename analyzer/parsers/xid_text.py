"""What the text behind an Xid or SXid number says: link, unit, place on the chip, address, recovery action.

    74   NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)
    145  RLW_REMAP  Nonfatal XC0 i0 Link 05 (0x004b6480 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)
    48   An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr 0x7f ...
    154  GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
    45   Ch 00000008 caused by previous Xid 149
    SXid 20034, Fatal, Link 63 LTSSM Fault Up

Wordings of drivers 450 to 595.
"""

from __future__ import annotations

import re

Values = dict[str, object]

_NVLINK5 = re.compile(r"([A-Z][A-Z0-9_]{2,40}) +(Fatal|Nonfatal|Non-fatal) +XC[0-9] +i[0-9] +Link +(-?[0-9]{1,3})\b")
_LINK = re.compile(r"\b(?:[Ll]ink|[Pp]ort) ([0-9]{1,3})\b")
_PREVIOUS = re.compile(r"caused by previous Xid ([0-9]{1,4})")
_SM = re.compile(r"\(?(GPC [0-9]{1,2}, TPC [0-9]{1,2}(?:, SM [0-9]{1,2})?)\)?")
_PARTITION = re.compile(r"partition ([0-9]{1,3}), subpartition ([0-9]{1,2})")
_FBPA = re.compile(r"FBPA ([0-9]{1,3}) subpartition ([0-9]{1,2})")
_ADDRESS = re.compile(r"(?:physAddr:? |row \(|page[^(]{0,60}\(|address )(0x[0-9a-fA-F]{1,16})")
_ACTION = re.compile(r"recovery action changed from .{0,60} to 0x[0-9a-fA-F]+ \(([^)]{1,40})\)")
_SEVERITIES = {"fatal": "Fatal", "nonfatal": "Nonfatal"}
_LINK_XIDS = frozenset({72, 74, 77, 78, 85, 88, 136, 139, 155, 156})


def xid_details(code: int, text: str) -> Values:
    """The fields of table ``xid`` that the text fills."""
    values: Values = {}
    found = _NVLINK5.search(text)
    if found:
        unit, severity, link = found.groups()
        values |= {"unit": unit, "severity": _SEVERITIES[severity.replace("-", "").lower()]}
        values |= {"link": int(link)} if int(link) >= 0 else {}
    elif code in _LINK_XIDS and (link_found := _LINK.search(text)):
        values["link"] = int(link_found.group(1))
    if previous := _PREVIOUS.search(text):
        values["previous"] = int(previous.group(1))
    if action := _ACTION.search(text):
        values["action"] = action.group(1)
    if address := _ADDRESS.search(text):
        values["address"] = hex(int(address.group(1), 16))
    place = _place(text)
    if place:
        values["place"] = place
    return values


def _place(text: str) -> str | None:
    sm = _SM.search(text)
    if sm:
        return sm.group(1)
    memory = _PARTITION.search(text) or _FBPA.search(text)
    return f"partition {memory.group(1)}, subpartition {memory.group(2)}" if memory else None


def sxid_details(text: str) -> Values | None:
    """The fields of table ``sxid``; None for a line that only carries the data of the event before it."""
    if text.startswith(("Data ", "Severity ", "Data{")):
        return None
    head, comma, rest = text.partition(",")
    severity = _SEVERITIES.get(head.strip().replace("-", "").lower())
    values: Values = {"text": (rest if comma and severity else text).strip()}
    if severity:
        values["severity"] = "Non-fatal" if severity == "Nonfatal" else severity
    link = _LINK.search(text)
    if link:
        values["link"] = int(link.group(1))
    return values
