"""Requirements on every source of measurements."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from vani.analyzers.assemble import assemble
from vani.analyzers.entities.view import View
from vani.analyzers.measurements import Results
from vani.analyzers.measures.access_pattern import PatternCounts
from vani.analyzers.measures.accesses import AccessTable
from vani.analyzers.measures.busy_time import BusyTimes
from vani.analyzers.measures.extents import ExchangeCounts, ProcessExtents, Touched
from vani.analyzers.measures.io_time import ClockSkew, SpentTime
from vani.analyzers.measures.lengths import BeyondEnds, FileLengths
from vani.analyzers.measures.libraries import LibraryCallTimes, LibraryTimes, LibraryUse
from vani.analyzers.measures.operations import (
    FileBalance,
    FunctionCosts,
    MovedByProcess,
    NamesAndLocks,
    OperationCounts,
    ProcessCounts,
    SizeCounts,
)
from vani.analyzers.passes import measure_workload
from vani.analyzers.passes.measure_workload import all_measures
from vani.cli.profile import characterise
from vani.schema.profile import Profile

DATA = Path(__file__).resolve().parent.parent / "data" / "traces"
TRACE = DATA / "v3-posix-mix-4r"
WHY = "this source does not tell"

NULLS = {
    PatternCounts: ["io.access_pattern", "interfaces.access_pattern", "files.stride"],
    BusyTimes: ["io.busy_s", "io.bandwidth", "workflow.io_time_share", "apps.io_time_share"],
    FunctionCosts: ["io.calls", "io.metadata_kinds"],
    ClockSkew: ["traces.clock_skew_s"],
    ExchangeCounts: ["workflow.app_dependencies", "apps.process_dependencies", "dataset.roles", "files.role"],
    ProcessExtents: ["workflow.app_dependencies", "apps.process_dependencies", "dataset.roles", "files.role"],
    Touched: ["io.footprint"],
    SpentTime: [
        *("io.time_s", "io.time_share", "phases", "workflow.io_time_share_slowest", "interfaces.time_s"),
        *("apps.balance.slowest_rank", "files.first_s", "files.last_s", "folders.metadata_time_s"),
    ],
    FileLengths: ["dataset.size", "dataset.size_distribution", "files.size"],
    LibraryUse: [
        *("interfaces", "apps.interface", "files.interface", "files.format", "dataset.format"),
        *("middleware.libraries", "middleware.granularity", "middleware.access_pattern"),
    ],
    LibraryCallTimes: ["workflow.library_time_s", "apps.library_time_s"],
    LibraryTimes: ["workflow.library_time_s", "apps.library_time_s"],
    BeyondEnds: ["io.past_end"],
    AccessTable: ["accesses"],
    NamesAndLocks: ["lookups", "locks"],
    MovedByProcess: ["apps.balance"],
    SizeCounts: ["io.transfer_size"],
}
"""Attributes that are null, and why, if a source does not give a result."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return characterise(TRACE, store=tmp_path_factory.mktemp("store"), scheduler="synchronous").view.measured


def without(measured, *results: type) -> Profile:
    less = measured.results
    for result in results:
        less = less.without(result, WHY)
    return assemble(View(replace(measured, results=less), None, None), version="0")


def values(profile: Profile, path: str) -> list[object]:
    """Values at an attribute, once per table row; `io` is any block."""
    name, *rest = path.split(".")
    if name == "io":
        found = [profile.workflow.io, *(app.io for app in profile.apps), *(file.io for file in profile.files)]
    else:
        found = [getattr(profile, name)]
    for name in rest:
        rows = [row for one in found for row in (one if isinstance(one, list) else [one])]
        found = [getattr(row, name) for row in rows if row is not None]
    return found


def test_measures_have_distinct_names():
    names = [measure.name for measure in all_measures()]
    assert len(set(names)) == len(names)


def nothing(found: object) -> bool:
    """Whether a value is null, a block of nulls, or 0 where there is no operation."""
    if found is None or isinstance(found, list | dict | int | float | str):
        return found in (None, 0)
    return all(nothing(getattr(found, name)) for name in type(found).model_fields)


def test_every_measure_with_its_own_result_is_looked_up_by_it(measured):
    for measure in all_measures():
        assert measure.result is not None, measure.name
        assert type(measured.of(measure.result)) is measure.result


def test_every_result_that_a_source_may_leave_out_is_tried_below():
    declared = {measure.result for measure in all_measures()} | {BusyTimes}
    # No profile lacks the first two; the last one decides what `unseen` lists.
    assert set(NULLS) == declared - {OperationCounts, ProcessCounts, FileBalance}


@pytest.mark.parametrize("result", NULLS, ids=lambda result: result.__name__)
@pytest.mark.sampled(5)
def test_attribute_missing_in_a_source_is_null_with_a_reason(measured, result, tmp_path):
    profile = without(measured, result)
    profile.save(tmp_path / "profile.yaml")
    assert Profile.load(tmp_path / "profile.yaml").provenance == profile.provenance
    for path in NULLS[result]:
        assert profile.provenance.get(path) == WHY, path
        found = values(profile, path)
        if path != "io.transfer_size":
            assert all(nothing(one) for one in found), path
    assert assemble(View(measured, None, None), version="0").provenance != profile.provenance


def test_source_may_give_only_counts_common_to_all_sources(measured):
    less = replace(measured, results=Results([], otherwise=WHY), unknown={"times": WHY})
    profile = assemble(View(less, None, None), version="0")
    full = assemble(View(measured, None, None), version="0")
    assert profile.workflow.io.ops == full.workflow.io.ops
    assert profile.workflow.io.bytes == full.workflow.io.bytes
    assert profile.workflow.files == full.workflow.files
    for path in {path for paths in NULLS.values() for path in paths}:
        assert profile.provenance.get(path) == WHY, path


def test_operations_without_sizes_in_the_source_have_unknown_size(measured):
    io = without(measured, SizeCounts).workflow.io
    assert io.transfer_size.read.histogram == {"unknown": io.ops.read}
    assert (io.transfer_size.read.p50, io.transfer_size.read.common) == (None, [])
    # The bytes they moved together are a separate matter.
    assert io.bytes == without(measured).workflow.io.bytes


def test_nothing_is_unknown_without_a_reason(measured):
    assert measured.results.why(SpentTime) is None
    with pytest.raises(ValueError, match="SpentTime is measured"):
        measured.why(SpentTime)
    with pytest.raises(ValueError, match="SpentTime is not measured, and no reason is given"):
        Results([]).of(SpentTime)


def test_measurements_do_not_change(measured):
    with pytest.raises(FrozenInstanceError):
        measured.listed = measured.listed
    measured.results.without(SpentTime, WHY)
    assert measured.of(SpentTime) is not None


def test_entities_change_nothing(measured):
    """A profile made twice from the same measurements is the same."""
    view = View(measured, None, None)
    assert (
        assemble(view, version="0")
        == assemble(view, version="0")
        == assemble(View(measured, None, None), version="0")
    )


def test_measure_that_returns_an_undeclared_type_is_named():
    class Wrong:
        name, columns, result = "wrong", frozenset(), SpentTime

    with pytest.raises(TypeError, match="wrong gives int and declares SpentTime"):
        measure_workload._by_type([Wrong()], [7])
