"""Models behind the rules of MPI-IO, HDF5 and POSIX: small requests, overlap, and which files are data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.advisors.builders import profile, shared, system
from vani.advisors.data_files import Access, Item, is_data
from vani.advisors.small_requests import aggregated, small_share
from vani.models.savings import rest_of
from vani.schema.profile import Sizes
from vani.units import MiB

READS = Access(Item(0, profile([shared()]).files[0]), reads=True)
"""Reads of a file on a machine that is not described."""


def sizes(**known) -> Sizes:
    whole = dict.fromkeys(("min", "p50", "p90", "max"), None) | {"common": [], "histogram": {}} | known
    return Sizes.model_validate(whole)


@pytest.mark.parametrize(
    ("found", "share"),
    [
        (None, None),
        (sizes(), None),
        (sizes(max=10), 1.0),
        (sizes(max=MiB, histogram={"0-1K": 1, "16K-64K": 1, "64K-256K": 2}), 0.5),
        (sizes(max=MiB, p50=10, p90=100), 0.9),
        (sizes(max=MiB, p50=10, p90=MiB), 0.5),
        (sizes(max=MiB, p50=MiB, p90=MiB), 0.0),
        (sizes(histogram={"unknown": 4}), 0.0),
    ],
)
def test_share_of_small_requests(found, share):
    assert small_share(found, 65536) == share


@given(
    moved=st.integers(0, 1 << 50),
    operations=st.integers(0, 1 << 30),
    seconds=st.floats(0, 1e9),
    left=st.integers(0, 1 << 30),
    rate=st.floats(1e6, 5e9),
)
def test_remaining_time_is_a_share(moved, operations, seconds, left, rate):
    expected, best = rest_of(moved, operations, seconds, left, rate)
    assert 0 <= best <= expected <= 1


@given(
    before=st.floats(0, 1e6),
    files=st.lists(
        st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.floats(0, 1e6)), min_size=1
    ),
)
def test_aggregation_saves_at_most_the_available_time(before, files):
    gain = aggregated("t", before, files, READS, system(None))
    if not isinstance(gain, str):
        assert 0 <= gain.best_s <= gain.after_s <= gain.worst_s <= before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lustre/out", True),
        ("out", True),
        ("/dev/shm/out", True),
        ("/dev/infiniband/uverbs0", False),
        ("/etc/romio-hints", False),
        ("/usr/lib/python3/os.py", False),
        ("/opt/env/lib/python3.11/site-packages/numpy/core.py", False),
        ("/user/data", True),
    ],
)
def test_files_of_data_are_recognised_by_name(path, expected):
    assert is_data(path) is expected
