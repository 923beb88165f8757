"""Reading the configuration of Tarazu's clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.errors import InputError
from vani.models.pfl import CONFIGURATION_1, CONFIGURATION_2, Component, Layout, parse_buckets
from vani.units import MiB


@pytest.mark.parametrize("layout", [CONFIGURATION_1, CONFIGURATION_2])
def test_written_layout_is_read_back(layout):
    assert parse_buckets(layout.to_ini(), "a.ini") == layout


@given(st.lists(st.integers(1, 50), min_size=0, max_size=5, unique=True), st.integers(1, 40))
def test_every_layout_of_counts_is_restored(ends, count):
    parts = [Component(end * MiB, count) for end in sorted(ends)]
    layout = Layout((*parts, Component(None, count)))
    assert parse_buckets(layout.to_ini(), "a.ini") == layout


def test_comments_after_values_are_ignored():
    text = "; figure 12\n[Client]\nBuckets = 1  #Type the number\n\n[Bucket_1]\nExtent = -1 #-E -1\nStripe = 16 ; all\n"
    assert parse_buckets(text, "a.ini") == Layout((Component(None, 16),))


@pytest.mark.parametrize(
    "text",
    ["", "[Client]", "no section", "[Client]\nBuckets = 1e9", "[Client]\nBuckets = 65", "[Client]\nBuckets = 1\n[Bucket_1]\nExtent = 1X\nStripe = 1"],
)  # fmt: skip
def test_invalid_configuration_is_refused_naming_its_path(text):
    with pytest.raises(InputError) as refused:
        parse_buckets(text, "a.ini")
    assert str(refused.value).startswith("a.ini: ")
    assert "\n" not in str(refused.value)
