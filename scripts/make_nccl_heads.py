"""Writes analyzer/parsers/nccl_heads.py: how the messages of NCCL begin, from a catalogue of its format strings.

usage: make_nccl_heads.py CATALOGUE.csv > analyzer/parsers/nccl_heads.py

The catalogue has one row per format string (column format). Only messages that begin with fixed words are taken.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

_VALUE = re.compile(r"%[-#0 +]*[0-9]*(?:\.[0-9]+)?(?:hh|h|ll|l|z)?[a-zA-Z]")
_SMALLEST_HEAD = 5
_LONGEST = 48
_WIDTH = 118


def head_of(format_string: str) -> str | None:
    """The fixed words at the beginning, with single blanks; None where there are too few letters."""
    text = format_string.split("\\n")[0].strip()
    head = " ".join(_VALUE.split(text)[0].split()).rstrip(" :'\"([=")[:_LONGEST]
    return head if len(re.sub(r"[^A-Za-z]", "", head)) >= _SMALLEST_HEAD else None


def main() -> None:
    """Reads the catalogue, prints the module."""
    heads: set[str] = set()
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            head = head_of(row["format"])
            if head:
                heads.add(head)
    kept = sorted(h for h in heads if not any(h != o and h.startswith(o) for o in heads))
    print('"""How the messages of NCCL 2.3 to 2.30 begin. Made by scripts/make_nccl_heads.py."""\n')
    print("HEADS: tuple[str, ...] = (")
    line = "   "
    for word in (json.dumps(head) + "," for head in kept):
        if len(line) + len(word) >= _WIDTH:
            print(line)
            line = "   "
        line += " " + word
    print(line)
    print(")")


if __name__ == "__main__":
    main()
