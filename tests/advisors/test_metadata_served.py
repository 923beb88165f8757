"""Requests to a metadata server are distinguished from seeks and flushing."""

from __future__ import annotations

import pytest
from builders import io_stats, profile, shared, system

from vani.advisors.data_files import (
    OPENING,
    SERVED,
    count_of,
    flushes_most,
    share_of,
    time_of,
)
from vani.advisors.judge import advise_document
from vani.schema.profile import IOStats
from vani.units import MiB

KINDS = {"open": (8, 3.0), "close": (8, 1.0), "seek": (100, 4.0), "stat": (4, 2.0)}


def stats(**settings):
    return IOStats.model_validate(io_stats(**settings))


def test_seeks_stay_in_the_client():
    io = stats(metadata_ops=120, metadata_s=10.0, metadata_kinds=KINDS)
    assert (count_of(io, SERVED), count_of(io, OPENING)) == (20, 16)
    assert (share_of([io], SERVED), time_of([io], OPENING)) == (0.6, 4.0)


def test_unknown_kinds_count_all_metadata():
    io = stats(metadata_ops=120, metadata_s=10.0)
    assert (count_of(io, SERVED), share_of([io], SERVED), time_of([io], OPENING)) == (120, 1.0, 10.0)


def test_most_of_the_time_may_be_flushing():
    io = stats(written=MiB, time_s=1.0, sync_s=3.0, sync_ops=2)
    assert flushes_most(io, 0.75)
    assert not flushes_most(io, 0.76)
    assert not flushes_most(stats(), 0.5)


MANY_OPENS = {
    "processes": 8,
    "opens": 80,
    "written": 8 * MiB,
    "metadata_s": 20.0,
    "time_s": 10.0,
    "busy_s": 10.0,
}


def of(rule, a_profile):
    advice = advise_document(a_profile, system(), select=[rule])
    return advice.recommendations, [one.why for one in advice.no_recommendation]


def test_opens_of_files_dominated_by_flushing_do_not_matter():
    found, _ = of("POS003", profile([shared(**MANY_OPENS)]))
    assert len(found) == 1
    found, why = of("POS003", profile([shared(**MANY_OPENS, sync_s=40.0, sync_ops=80)]))
    assert (found, len(why)) == ([], 1)


def test_cost_of_opens_excludes_the_time_of_seeks():
    kinds = {"open": (80, 4.0), "close": (80, 1.0), "seek": (1000, 15.0)}
    a_file = shared(**MANY_OPENS, metadata_ops=1160, metadata_kinds=kinds)
    ((one,), _) = of("POS003", profile([a_file], slowest_s=None, change={"apps[0].io.busy_s.metadata": 10.0}))
    # A quarter of the 10 s in which any process does metadata operations.
    assert one.direction is not None or one.gain.before == pytest.approx(2.5)
    assert "open, close and stat take 17 % of the I/O time" in one.reason
