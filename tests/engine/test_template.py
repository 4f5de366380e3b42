from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.engine.template import UNITS, TemplateError, format_value, parse_template


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (85_899_345_920, "GiB", "80.00 GiB"),
        (1_572_864, "MiB", "1.5 MiB"),
        (24_500_000_000, "GB", "24.50 GB"),
        (1_000_000, "MB", "1.0 MB"),
        (3.25, "us", "3.2 us"),
        (12, "s", "12.0 s"),
        (0.973, "pct", "97.3 %"),
        (2.6, "int", "3"),
        (2.345, ".1f", "2.3"),
        (2.346, ".2f", "2.35"),
        (7, "", "7"),
        (0.1 + 0.2, "", "0.3"),
        ("text", "", "text"),
        ("text", "GiB", "text"),
        (None, "GiB", "unknown"),
        ("", "", ""),
        (True, "", "1"),
        (float("inf"), "GiB", "inf GiB"),
    ],
)
def test_units(value, unit, expected):
    assert format_value(value, unit) == expected


def test_values_are_not_read_as_templates_again():
    assert parse_template("{a} {b}").render({"a": "{b}", "b": "{a:GiB}"}) == "{b} {a:GiB}"


def test_long_values_are_cut():
    assert len(parse_template("{a}").render({"a": "x" * 10_000})) == 600


@given(st.text())
def test_every_text_renders_or_is_refused(text):
    try:
        template = parse_template(text)
    except TemplateError:
        return
    rendered = template.render({})
    assert all(field.unit in ("", *UNITS) for field in template.fields)
    if not template.fields:
        assert rendered == text.replace("{{", "{").replace("}}", "}")
