"""Writes grammars/nccl_notes.lark: how the INFO messages of NCCL begin, from a catalogue of its format strings.

usage: make_nccl_notes.py CATALOGUE.csv > grammars/nccl_notes.lark

The catalogue has one row per format string (columns level, format). A message that begins with fixed words is
known by these; one that begins with a value is known by its whole form.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

_VALUE = re.compile(r"%[-#0 +]*[0-9]*(?:\.[0-9]+)?(?:hh|h|ll|l|z)?[a-zA-Z]")
_SMALLEST_HEAD = 5


def regex_of(format_string: str) -> str | None:
    """The regular expression that recognises a message by its beginning, None for a form without fixed words."""
    text = format_string.split("\\n")[0].strip()
    head = _VALUE.split(text)[0].rstrip(" :'\"([=")
    if len(re.sub(r"[^A-Za-z]", "", head)) >= _SMALLEST_HEAD:
        return _quote(head)
    parts = _VALUE.split(text)
    if sum(len(re.sub(r"[^A-Za-z]", "", part)) for part in parts) < _SMALLEST_HEAD:
        return None
    return r"[^\s]+".join(_quote(part) for part in parts)


def _quote(text: str) -> str:
    return re.sub(r"\\? +", " +", re.escape(text).replace("/", r"\/").replace('"', '\\"'))


def main() -> None:
    """Reads the catalogue, prints the grammar."""
    heads: set[str] = set()
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            regex = regex_of(row["format"])
            if regex:
                heads.add(regex)
    kept = sorted(h for h in heads if not any(h != o and h.startswith(o) for o in heads if len(o) < len(h)))
    print("// Made by scripts/make_nccl_notes.py: how messages begin that carry nothing for a table.\n")
    print("NCCL_NOTE.-2: /(?:" + "|".join(kept + _EXTRA) + ")/")


_EXTRA = [
    r"[A-Z][A-Za-z]+: [0-9]+ Bytes -> Algo",
    r"(?:NET|TUNER|PROFILER|ENV|RAS|COLLNET)\/?[A-Za-z0-9_]*(?: |:|\/)",
    r"Bootstrap",
    r"Setting affinity for GPU",
    r"Plugin Path",
    r"P2P plugin",
    r"Affinity for GPU",
    r"NCCL git version",
    r"Sharp rank",
    r"RCCL version",
    r"\[node_id = ",
    r"initialized internal alternative rsmi",
    r"(?:Kernel|ROCr|HIP|Hip) version",
    r"Enabled GDRCopy equivalent",
    r"Dmabuf feature disabled",
    r"MSCCL",
]

if __name__ == "__main__":
    main()
