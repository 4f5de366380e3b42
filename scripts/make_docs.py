"""Writes docs/evidence.md, docs/formats.md and docs/rules.md from the schema, the parsers and the rule files.

usage: make_docs.py [FOLDER]      (default: docs)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from analyzer.analysis import catalogue
from analyzer.engine import load_rules
from analyzer.grammar_store import rules_folder
from analyzer.parsers import DOCUMENTS, FORMATS
from analyzer.schema import COMMON, DERIVED, RAW, Column, Table

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- made by scripts/make_docs.py; edit the sources, not this page -->\n"


def cell(text: str) -> str:
    """Text for one cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def columns(found: tuple[Column, ...]) -> Iterator[str]:
    """Rows of one table's columns."""
    yield "| column | type | what it holds |\n|---|---|---|\n"
    for column in found:
        yield f"| `{column.name}` | {column.type} | {cell(column.doc)} |\n"


def table(found: Table) -> Iterator[str]:
    """One table of the evidence."""
    yield f"\n### {found.name}\n\n{found.doc}\n\n"
    if found.hint:
        yield f"From: {found.hint}\n\n"
    yield from columns(found.columns if found.derived else found.columns[len(COMMON) :])


def evidence_page() -> str:
    """Every table that rules can ask."""
    parts = ["# Evidence: the tables that rules query\n\n", NOTE, "\n## Columns of every raw table\n\n"]
    parts += columns(COMMON)
    parts.append("\n## Raw tables\n")
    parts += [line for found in RAW for line in table(found)]
    parts.append("\n## Derived tables\n")
    parts += [line for found in DERIVED for line in table(found)]
    return "".join(parts)


def formats_page() -> str:
    """Every input format and the command that prints it."""
    parts = ["# Input formats\n\n", NOTE, "\n| format | what | versions | command |\n|---|---|---|---|\n"]
    known = [*FORMATS, *DOCUMENTS]
    parts += [f"| {f.name} | {cell(f.title)} | {cell(f.versions)} | `{cell(f.command)}` |\n" for f in known]
    return "".join(parts)


def rules_page() -> str:
    """Every rule: what it says, what it needs, what to do."""
    parts = ["# Rules\n\n", NOTE]
    for rule in load_rules([rules_folder()], catalogue()):
        needs = ", ".join(" or ".join(f"`{name}`" for name in need) for need in rule.needs)
        parts.append(f"\n## {rule.id}\n\n{cell(rule.title)}\n\n")
        parts.append(f"{rule.role}, {rule.severity}, confidence {rule.confidence}. Needs {needs}.\n\n")
        parts.append(f"{cell(' '.join(rule.message.text.split()))}\n\n")
        parts += [f"- {cell(text.text)}\n" for text in rule.fix]
    return "".join(parts)


PAGES = {"evidence.md": evidence_page, "formats.md": formats_page, "rules.md": rules_page}


def main() -> None:
    """Writes the pages."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
