"""Composite layouts: limits of lfs-setstripe(1), notations, and the resulting stripes of files."""

from __future__ import annotations

import configparser
import itertools
import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vani.errors import InputError
from vani.models.pfl import (
    CONFIGURATION_1,
    CONFIGURATION_2,
    MAX_STRIPES,
    STRIPE_UNIT,
    Component,
    Layout,
    layout_for_sizes,
    parse_options,
    usage,
)
from vani.systems import known_systems, load_system
from vani.units import GiB, KiB, MiB, parse_bytes


@st.composite
def layouts(draw):
    """Layouts that Lustre accepts, with ends that grow by whole stripes."""
    size = draw(st.integers(1, 256)) * STRIPE_UNIT
    steps = draw(st.lists(st.integers(1, 1000), max_size=6))
    counts = st.integers(1, 200) | st.just(-1)
    parts, end = [], 0
    for step in steps:
        end += step * size
        parts.append(Component(end, draw(counts), size, pool=draw(st.none() | st.just("flash"))))
    return Layout((*parts, Component(None, draw(counts), size)))


sizes_of_files = st.lists(st.integers(0, 1 << 45), min_size=1, max_size=50)


@given(layout=layouts())
def test_options_are_read_back_as_the_same_components(layout):
    if len(layout.components) == 1:
        assert "-E" not in layout.to_options()
        return
    ends, counts = ([getattr(part, key) for part in layout.components] for key in ("end", "count"))
    found = parse_options(layout.to_options())
    assert [part.end for part in found.components] == ends
    assert [part.count for part in found.components] == counts
    assert [part.size for part in found.components] == [part.size for part in layout.components]


@given(layout=layouts())
def test_the_ini_is_read_back_as_ends_and_counts(layout):
    assert ini_components(layout.to_ini()) == [(part.end, part.count) for part in layout.components]


@given(layout=layouts())
def test_yaml_template_contains_every_component_without_gaps(layout):
    tree = yaml.safe_load(layout.to_yaml())
    assert tree["lcm_entry_count"] == len(layout.components)
    parts = [tree[f"component{i}"] for i in range(len(layout.components))]
    assert parts[0]["lcme_extent.e_start"] == 0
    assert parts[-1]["lcme_extent.e_end"] == "EOF"
    for before, after in itertools.pairwise(parts):
        assert before["lcme_extent.e_end"] == after["lcme_extent.e_start"]
    assert all("lmm_objects" not in part["sub_layout"] for part in parts)


@given(layout=layouts(), size=st.integers(0, 1 << 45), targets=st.integers(1, 500))
def test_a_file_uses_no_more_than_it_is_allocated(layout, size, targets):
    found = usage(layout, size, targets)
    assert found.used <= found.allocated
    assert found.fullest * max(1, found.used) >= size or found.used == 0


@given(sizes=sizes_of_files, targets=st.integers(1, 3000), most=st.none() | st.integers(1, 300))
def test_derived_layouts_are_within_all_limits(sizes, targets, most):
    layout = layout_for_sizes(sizes, targets, most=most)
    ends = [part.end for part in layout.components[:-1]]
    assert ends == sorted(set(ends))
    assert all(end % MiB == 0 for end in ends)
    assert layout.components[-1].end is None
    assert layout.components[0].count == 1
    assert layout.stripes <= MAX_STRIPES
    assert all(1 <= part.count <= min(targets, most or targets) for part in layout.components)
    # Few stripes for small files: the median has one, where it has no more than 1 GiB.
    median = sorted(sizes)[len(sizes) // 2]
    if 0 < median <= GiB:
        assert usage(layout, median).allocated == 1
    # A smaller file never has more stripes in total.
    totals = [usage(layout, size).allocated for size in sorted(sizes)]
    assert totals == sorted(totals)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ((), "0 components"),
        ((Component(MiB),), "does not reach the end"),
        ((Component(None), Component(None)), "has no end"),
        ((Component(2 * MiB), Component(MiB), Component(None)), "not behind"),
        ((Component(MiB), Component(MiB), Component(None)), "not behind"),
        ((Component(100_000), Component(None)), "multiple of 64 KiB"),
        ((Component(None, 1, 100_000),), "multiple of 64 KiB"),
        ((Component(None, 1, 4 * GiB),), "below 4G"),
        ((Component(None, 1, 0),), "64K"),
        ((Component(None, 0),), "0 stripes"),
        ((Component(None, 2001),), "2,001 stripes"),
        ((Component(None, -2),), "-2 stripes"),
        ((Component(MiB, 1500), Component(None, 501)), "2,001 stripes"),
        ((Component(3 * MiB, 1, 2 * MiB), Component(None)), "inside a stripe"),
        ((Component(2 * MiB, 1, 2 * MiB), Component(3 * MiB, 2), Component(None)), "inside a stripe"),
        ((Component(MiB), Component(2 * MiB, None, on_mdt=True), Component(None)), "only the first"),
        ((Component(2 * GiB, None, on_mdt=True), Component(None)), "64K to 1G"),
        ((Component(None, None, on_mdt=True),), "64K to 1G"),
        ((Component(MiB, 2, on_mdt=True), Component(None)), "leave them out"),
        ((Component(None, 1, pool="a pool"),), "a pool has"),
        ((Component(GiB, 1, extension=1), Component(None)), "multiple of 64 KiB"),
    ],
)
def test_layouts_that_lustre_refuses_are_refused(parts, why):
    with pytest.raises(InputError, match=why):
        Layout(tuple(parts))


def test_an_old_metadata_target_takes_160_stripes():
    with pytest.raises(InputError, match="at most 160"):
        Layout((Component(None, 161),), max_stripes=160)


def test_data_on_mdt_is_a_first_component_without_stripes():
    layout = Layout((Component(64 * KiB, None, on_mdt=True), Component(None, 1)))
    assert layout.to_options() == "-E 64K -L mdt -E -1 -c 1"
    assert yaml.safe_load(layout.to_yaml())["component0"]["sub_layout"]["lmm_pattern"] == "mdt"
    with pytest.raises(InputError, match=r"Tarazu's \.ini"):
        layout.to_ini()
    assert usage(layout, 1000).allocated == 1


def test_overstriped_components_are_written_with_a_capital_c():
    assert Layout((Component(None, 128, MiB, overstripe=True),)).to_options() == "-C 128 -S 1M"


def test_tarazus_first_configuration_has_the_options_of_its_figure_12():
    assert CONFIGURATION_1.to_options() == "-E 128M -c 1 -E 512M -c 3 -E 2G -c 8 -E -1 -c 16"


FIGURE_12 = """
;config file for PFL Configuration Layout 1
[Client]
Buckets = 4           #Type the number of buckets (here: 4)

[Bucket_1]
Extent = 128M         #-E 128M -c 1
Stripe = 1

[Bucket_2]
Extent = 512M         #-E 512M -c 3
Stripe = 3

[Bucket_3]
Extent = 2G           #-E 2G -c 8
Stripe = 8

[Bucket_4]
Extent = -1           #-E 8G -c 16
Stripe = 16
"""


def ini_components(text):
    """(end, stripes) of each component in Tarazu's .ini, with comments after values as in its figure 12."""
    parser = configparser.ConfigParser(inline_comment_prefixes=("#", ";"))
    parser.read_string(text)
    buckets = [parser[f"Bucket_{n}"] for n in range(1, parser.getint("Client", "Buckets") + 1)]
    ends = [None if one["Extent"] == "-1" else parse_bytes(one["Extent"]) for one in buckets]
    return [(end, int(one["Stripe"])) for end, one in zip(ends, buckets, strict=True)]


def test_tarazus_figure_12_is_its_first_configuration():
    assert ini_components(FIGURE_12) == [(part.end, part.count) for part in CONFIGURATION_1.components]


def test_tarazus_configurations_have_the_stripes_of_its_table_8():
    assert CONFIGURATION_1.stripes == 28
    assert CONFIGURATION_2.stripes == 45


def tarazu_stripe_sizes(layout: Layout, size: int) -> list[int]:
    """Stripe size of each component by Tarazu's rule, length / stripes, for a file that ends at `size`.

    Each target then stores one piece. Lustre refuses a component whose end is not a multiple of its stripe size, so
    these sizes serve only for comparison and not for layouts to set.
    """
    stripe_sizes = []
    for start, part in zip(layout.starts(), layout.components, strict=True):
        end = part.end if part.end is not None else max(size, start + 1)
        stripe_sizes.append(max(1, math.ceil((end - start) / max(1, part.count or 1))))
    return stripe_sizes


def test_tarazus_stripe_sizes_match_its_table_1():
    assert tarazu_stripe_sizes(CONFIGURATION_1, 8 * GiB) == [134217728, 134217728, 201326592, 402653184]


def test_hacc_gets_twelve_stripes_in_the_first_configuration():
    # Tarazu's example (paper-facts 1.6): a file of 1830.4 MB, 4 stripes of 128 MB and 7 of 192 MB.
    size = int(1830.4 * MiB)
    found = usage(CONFIGURATION_1, size, sizes=tarazu_stripe_sizes(CONFIGURATION_1, size))
    assert (found.allocated, found.used, found.fullest) == (12, 11, 192 * MiB)


def test_hacc_gets_thirteen_stripes_in_the_second_configuration():
    size = int(1830.4 * MiB)
    found = usage(CONFIGURATION_2, size, sizes=tarazu_stripe_sizes(CONFIGURATION_2, size))
    # Counted by hand: 1 + 12 allocated; 1702.4 MB in pieces of 160 MB fill 11 of the 12.
    assert (found.allocated, found.used, found.fullest) == (13, 12, 160 * MiB)


@pytest.mark.parametrize("name", known_systems())
def test_composite_layouts_of_sites_can_be_read(name):
    for disk in load_system(name).file_systems:
        if disk.site_pfl:
            assert parse_options(disk.site_pfl).components[-1].end is None


@pytest.mark.parametrize(
    "text", ["", "-c 4", "-E 1G -c", "-E 1G -c 1 --mirror 2", "-E 1G -c x -E -1", "-E '1G -c 1", "-E 1G -c 1"]
)
def test_invalid_layout_is_refused(text):
    with pytest.raises(InputError):
        parse_options(text)


def test_a_layout_needs_sizes_and_targets():
    with pytest.raises(InputError, match="supply both"):
        layout_for_sizes([], 4)
    with pytest.raises(InputError, match="supply both"):
        layout_for_sizes([1], 0)
