"""Makes ``analyzer/derive/xid_catalogue.csv``: what each Xid and SXid number means, from a table of facts.

    python scripts/make_xid_catalogue.py facts.csv [--driver 595.45.04]

The facts come as CSV with the columns code, kind, mnemonic, meaning, origin, severity, action_class and status (names
and numbers from the driver's headers and NVIDIA's lists, meanings in own words). The result carries a stamp with the
number of entries and a digest of the facts; the same facts give the same file.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
from pathlib import Path

TARGET = Path(__file__).parent.parent / "analyzer" / "derive" / "xid_catalogue.csv"
COLUMNS = ("kind", "code", "mnemonic", "meaning", "origin", "severity", "action", "follower")
FOLLOWERS = frozenset({("Xid", code) for code in (43, 45, 108, 137, 154)})
_FOLLOWER_WORDS = ("ignore as own cause", "ignore, follow")


def entries(text: str) -> list[dict[str, str]]:
    """The entries of the catalogue in the order of kind and number; legacy numbers without a meaning are left out."""
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        if row["meaning"].startswith("legacy code"):
            continue
        follower = (row["kind"], int(row["code"])) in FOLLOWERS or any(
            w in row["action_class"] for w in _FOLLOWER_WORDS
        )
        found.append(
            {
                "kind": row["kind"],
                "code": str(int(row["code"])),
                "mnemonic": row["mnemonic"].split(" / ")[0],
                "meaning": row["meaning"],
                "origin": row["origin"],
                "severity": row["severity"],
                "action": row["action_class"],
                "follower": "1" if follower else "0",
            }
        )
    return sorted(found, key=lambda entry: (entry["kind"] != "Xid", int(entry["code"])))


def render(text: str, driver: str) -> str:
    """The file: a stamp, a header, one line for each entry."""
    rows = entries(text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    out = io.StringIO()
    out.write(f"# made by scripts/make_xid_catalogue.py: {len(rows)} entries, driver {driver}, facts {digest}\n")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def main() -> None:
    """Writes the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facts", type=Path)
    parser.add_argument("--driver", default="595.45.04", help="newest driver whose numbers are in the facts")
    arguments = parser.parse_args()
    TARGET.write_text(render(arguments.facts.read_text(encoding="utf-8"), arguments.driver), encoding="utf-8")


if __name__ == "__main__":
    main()
