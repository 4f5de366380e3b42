"""``crashcart formats``: what can be read, and what prints it."""

from __future__ import annotations

import json

from click.testing import CliRunner

from analyzer.cli import main
from analyzer.parsers import DOCUMENTS, FORMATS

NAMES = sorted([*(fmt.name for fmt in FORMATS), *(document.name for document in DOCUMENTS)])


def test_text_names_every_format_once_and_in_order() -> None:
    output = CliRunner().invoke(main, ["formats"]).output
    assert [line for line in output.splitlines() if not line.startswith(" ")] == NAMES


def test_json_has_one_entry_for_each_format() -> None:
    report = json.loads(CliRunner().invoke(main, ["formats", "--format", "json"]).output)
    assert report["schema"] == "crashcart.formats/1"
    assert [entry["name"] for entry in report["formats"]] == NAMES
    assert all(entry["title"] and entry["versions"] and entry["command"] for entry in report["formats"])
