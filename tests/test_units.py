"""Sizes, times and shares as people read them."""

from __future__ import annotations

import pytest

from vani.units import counted, format_bytes, format_number, format_seconds, format_share, parse_bytes


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (4.2e-6, "4.2 µs"),
        (0.00099949, "999 µs"),
        (0.0009996, "1 ms"),
        (0.99949, "999 ms"),
        (0.9996, "1 s"),
        (99.96, "100 s"),
        (250.0, "4 min 10 s"),
        (7500.0, "2 h 5 min"),
        (86_400.0 * 355_055, "355,055 days"),
        (None, "unknown"),
    ],
)
def test_duration_has_three_digits_and_a_matching_unit(seconds, text):
    assert format_seconds(seconds) == text


def test_size_with_too_many_digits_is_invalid():
    # Formerly OverflowError, a fault of Vani, if a layout or an option has such a size.
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes(f"{'9' * 5000}G")


def test_a_size_beyond_petabytes_has_a_unit_of_its_own():
    assert format_bytes(1 << 62) == "4.61 EB"
    assert format_bytes(999.4e15) == "999 PB"


@pytest.mark.parametrize(("share", "text"), [(0.0, "0 %"), (0.0062, "0.62 %"), (0.0999, "10 %"), (0.484, "48 %"), (1.0, "100 %")])
def test_a_share_is_in_percent(share, text):
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (counted(1, "file"), "1 file"),
        (counted(0, "file"), "0 files"),
        (counted(1, "entry"), "1 entry"),
        (counted(2, "entry"), "2 entries"),
        (counted(1234, "process"), "1,234 processes"),
        (counted(1, "file", "was", "were") + " not read", "1 file was not read"),
        (counted(2, "file", "was", "were") + " not read", "2 files were not read"),
    ],
)
def test_one_thing_is_not_written_as_many(written, text):
    # Formerly "1 files were not looked into", "1 rules were asked".
    assert written == text


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [(3360.4, 3, "3,360"), (3364, 2, "3,400"), (112, 2, "110"), (1.86, 3, "1.86"), (2.0, 3, "2"), (0.000012, 2, "0.000012"),
     (999.6, 3, "1,000"), (1.1529e18, 3, "1.15e18"), (float("inf"), 3, "inf"), (-4096.0, 3, "-4,100"), (0.0, 3, "0")],
)  # fmt: skip
def test_a_number_has_no_exponent_that_people_would_have_to_read(number, digits, text):
    assert format_number(number, digits) == text
