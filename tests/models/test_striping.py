"""Stripe counts and sizes from the models, without a rule around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.models.striping import (
    STRIPE_UNIT,
    mean_run,
    parted,
    step_distance,
    whole_stripes,
    whole_transfers,
)
from vani.units import GiB, KiB, MiB


@pytest.mark.parametrize(("block", "segments"), [(16 * MiB, 64), (8 * MiB, 128)])
def test_distance_of_segments_is_the_size_of_their_blocks(block, segments):
    # IOR -t 1m: a process has a run per segment, and jumps between them.
    operations = segments * (block // MiB) * 128
    jumps = (segments - 1) * 128 / operations
    run = mean_run(moved=operations * MiB, operations=operations, jumps=jumps, streams=128)
    found = step_distance(
        stride=None, shares=(1 - jumps, 0, 0), footprint=operations * MiB, processes=128, mean_run=run
    )
    assert found == block


def test_a_block_of_each_process_is_the_distance():
    run = mean_run(moved=8 * GiB, operations=8192, jumps=0.0, streams=8)
    shares = (1.0, 0.0, 0.0)
    assert step_distance(stride=None, shares=shares, footprint=8 * GiB, processes=8, mean_run=run) == GiB


def test_rewritten_bytes_change_no_distance():
    once = mean_run(moved=8 * GiB, operations=8192, jumps=0.0, streams=8)
    again = mean_run(moved=16 * GiB, operations=16384, jumps=8 / 16384, streams=8)
    assert once == again == GiB


def test_processes_that_read_the_same_bytes_have_no_distance():
    run = mean_run(moved=8 * GiB, operations=8192, jumps=0.0, streams=8)
    assert step_distance(stride=None, shares=(1.0, 0, 0), footprint=GiB, processes=8, mean_run=run) is None


def test_strided_records_share_the_span_of_a_step():
    shares = (0.0, 1.0, 0.0)
    assert step_distance(stride=512 * KiB, shares=shares, footprint=MiB, processes=8, mean_run=None) == 64 * KiB


@pytest.mark.parametrize(
    ("distance", "processes", "count", "size"),
    [
        (256 * MiB, 128, 24, 256 * MiB),
        (32 * MiB, 2, 4, 16 * MiB),
        (32 * MiB, 2, 8, 16 * MiB),
        (4 * MiB, 4, 6, 4 * MiB),
    ],
)
def test_runs_are_parted_until_a_step_reaches_the_targets(distance, processes, count, size):
    assert parted(distance, processes, count, 16 * MiB) == size


@given(
    distance=st.integers(1, 1 << 40),
    processes=st.integers(1, 4096),
    count=st.integers(1, 2000),
    least=st.integers(MiB, GiB),
)
def test_parts_are_neither_short_nor_too_many(distance, processes, count, least):
    part = parted(distance, processes, count, least)
    assert part == distance or part >= least
    assert part == distance or (distance // part // 2) * processes < count


@given(distance=st.integers(1, 1 << 45), least=st.integers(1, GiB))
def test_stripes_are_multiples_of_the_unit_that_lustre_takes(distance, least):
    size = whole_stripes(distance, least)
    assert size % STRIPE_UNIT == 0
    assert STRIPE_UNIT <= size < 4 * GiB


@pytest.mark.parametrize(
    ("distance", "transfer", "found"),
    [
        (3604480, MiB, 4 * MiB),
        (3 * MiB, MiB, 3 * MiB),
        (MiB + 1, None, MiB + 1),
        (int(2.6 * MiB), MiB, int(2.6 * MiB)),
        (4096, MiB, 4096),
    ],
)
def test_distance_of_about_whole_transfers_is_rounded_to_them(distance, transfer, found):
    assert whole_transfers(distance, transfer) == found
