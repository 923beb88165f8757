"""Limits are read in the units that people write, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.gate.tolerance import parse_quantity, shown


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("1e5", 100_000, None),
        ("0.1", 0.1, None),
        ("4 MiB", 4 << 20, "bytes"),
        ("64KB", 64_000, "bytes"),
        ("64K", 64 << 10, "bytes"),
        ("10 %", 0.1, "share"),
        ("10 s", 10, "seconds"),
        ("0.5 ms", 0.0005, "seconds"),
        ("2 min", 120, "seconds"),
        ("2 GB/s", 2_000_000_000, "rate"),
        (".5", 0.5, None),
    ],
)
def test_a_number_with_its_unit(text, value, dimension):
    found = parse_quantity(text)
    assert (found.value, found.dimension) == (value, dimension)
    assert type(found.value) is type(value)


@pytest.mark.parametrize("text", ["", "x", "1 furlong", "1e999", "1,000", "1 2", "nan", "inf", "--1", "1" * 40, "\u0661"])
def test_invalid_quantity_is_refused(text):
    with pytest.raises(ValueError, match=r"number|unit|large"):
        parse_quantity(text)


@given(st.integers(-(10**15), 10**15))
def test_integers_stay_integers(number):
    assert parse_quantity(str(number)).value == number


@pytest.mark.parametrize(
    ("value", "dimension", "exact", "text"),
    [
        (12345, "count", False, "12,345"),
        (4 << 20, "bytes", False, "4.19 MB"),
        (4 << 20, "bytes", True, "4,194,304 B"),
        (0.25, "share", False, "25 %"),
        (0, "seconds", False, "0 s"),
        (True, "flag", False, "true"),
        (None, "bytes", False, "unknown"),
    ],
)
def test_values_for_people(value, dimension, exact, text):
    assert shown(value, dimension, exact=exact) == text
