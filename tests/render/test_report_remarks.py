"""Remarks on the verdict: reasons why the numbers may mislead."""

from __future__ import annotations

import pytest
from report_inputs import golden, inputs_of, judged, profiled

from vani.models.verdict import verdict_of
from vani.render.report.facts import remarks
from vani.render.report.model import prepare
from vani.render.report.page import to_html as page
from vani.render.report.tables import LEVELS
from vani.render.report.text import to_text as text
from vani.schema.advice import NoRecommendation
from vani.schema.profile import AppDependency, FileLevelDependencies, LibraryTime, ProcessDependencies


def said(profile, advice=None):
    return " ".join(remarks(profile, judged() if advice is None else advice, LEVELS[0]))


def with_library(layer, share, profile=None):
    """A profile whose slowest process, rank 3, spends this share of the run in calls of a library."""
    profile = profile or profiled("v3-cm1like-16r")
    runtime = profile.workflow.runtime_s
    (app,) = profile.apps
    slow = {"slowest_call_rank": 3, "slowest_call_time_s": None if share is None else share * runtime}
    app = app.model_copy(update={"balance": app.balance.model_copy(update=slow)})
    time = LibraryTime(total=10.0, outside_file_system=7.5, slowest=(share or 0.0) * runtime)
    workflow = profile.workflow.model_copy(update={"library_time_s": {layer: time}})
    return profile.model_copy(update={"apps": [app], "workflow": workflow, "verdict": None})


# --- time in libraries ---------------------------------------------------------------------------------------


def test_time_in_hdf5_is_reported_beside_little_io():
    words = said(with_library("hdf5", 0.5))
    assert "rank 3 is inside HDF5 calls for 50 % of the run; 75 % of that time is exchange and waiting" in words
    assert "On average" not in words


def test_io_of_waiting_libraries_is_not_called_small():
    assert "while I/O takes so little of the run" not in page(inputs_of(with_library("mpiio", 0.5)))
    assert "while I/O takes so little of the run" in page(inputs_of(with_library("mpiio", 0.04)))


def test_missing_advice_is_not_an_all_clear():
    assert "No rule knows what to change." in text(inputs_of(with_library("mpiio", 0.5)))
    assert "Nothing needs to be done." in text(inputs_of(golden()))


@pytest.mark.parametrize("share", [0.04, None])
def test_little_or_unknown_time_in_libraries_is_not_mentioned(share):
    assert "inside" not in said(with_library("hdf5", share))


def test_profile_without_times_has_no_line_about_libraries():
    quick = profiled("v3-ior-ssf-hdf5-4r", quick=True)
    assert "inside" not in said(quick)


# --- what is in no number --------------------------------------------------------------------------------------


def test_hidden_problems_of_traces_are_counted():
    trace = golden().traces[0].model_copy(update={"complete": False, "problems": [f"rank {i} is lost" for i in range(9)]})
    (row,) = prepare(inputs_of(golden().model_copy(update={"traces": [trace]}))).tables["traces"].rows
    assert row.cells[-1].note == "rank 0 is lost; rank 1 is lost; rank 2 is lost; and 6 more"


def test_files_read_without_a_recorded_write_are_reported():
    edges = [
        AppDependency(producer="mMakeHdr", consumer="mProject", files=1, bytes_written=0, bytes_read=2882),
        AppDependency(producer="mMakeHdr", consumer="mAdd", files=1, bytes_written=0, bytes_read=2882),
        AppDependency(producer="mProject", consumer="mAdd", files=1, bytes_written=10, bytes_read=10),
    ]
    workflow = golden().workflow.model_copy(update={"app_dependencies": edges})
    words = said(golden().model_copy(update={"workflow": workflow}))
    assert words.startswith("Others read files of mMakeHdr to which no write is in the trace")
    # A present-day profile states that it does not know the bytes, whether or not it knows the bytes read.
    edges = [
        AppDependency(producer="mImgtbl", consumer="mAdd", files=1, bytes_written=None, bytes_read=None),
        AppDependency(producer="mProject", consumer="mAdd", files=1, bytes_written=10, bytes_read=None),
    ]
    workflow = golden().workflow.model_copy(update={"app_dependencies": edges})
    words = said(golden().model_copy(update={"workflow": workflow}))
    assert words.startswith("Others read files of mImgtbl to which no write is in the trace")


def test_dependencies_say_how_they_are_known():
    edges = [AppDependency(producer="print", consumer="scan", files=1, bytes_written=None, bytes_read=None)]
    level = FileLevelDependencies(edges=56, files=1, pattern="all_to_all")

    def shown(**counts):
        inside = ProcessDependencies(edges=12, files=1, pattern="irregular", **counts)
        (app,) = golden().apps
        profile = golden().model_copy(
            update={
                "workflow": golden().workflow.model_copy(update={"app_dependencies": edges}),
                "apps": [app.model_copy(update={"process_dependencies": inside})],
            }
        )
        between, within = prepare(inputs_of(profile)).tables["dependencies"].rows
        assert [cell.text for cell in between.cells[-2:]] == ["unknown", "unknown"]
        return within.cells[2].note

    assert shown(edges_by_extents=12, file_level=level) == "no regular shape; 12 pairs"
    assert shown(edges_by_extents=10, file_level=level) == "no regular shape; 12 pairs, 2 of them known by the file only"
    assert shown(edges_by_extents=None, file_level=level).endswith("12 pairs, 12 of them known by the file only")
    assert shown() == "no regular shape; 12 pairs", "a profile of an older version"


def test_reason_for_missing_times_is_given_once():
    why = "--quick does not read time stamps"
    profile = golden().model_copy(
        update={
            "workflow": golden().workflow.model_copy(update={"runtime_s": None}),
            "provenance": {**golden().provenance, "workflow.runtime_s": why},
        }
    )
    assert why in said(profile)
    nothing = [NoRecommendation(rule="MAT001", why=f"workflow.runtime_s is not known ({why})")]
    silent = judged().model_copy(update={"recommendations": [], "no_recommendation": nothing, "verdict": None})
    assert why not in said(profile, silent)


# --- the verdict ---------------------------------------------------------------------------------------------------


def test_io_that_matters_is_no_all_clear():
    advice = judged().model_copy(update={"recommendations": judged().recommendations[:1]})
    matters = golden().model_copy(update={"verdict": golden().verdict.model_copy(update={"matters": "yes"})})
    assert "\nNo rule knows what to change.\n" in text(inputs_of(matters, advice))


def test_verdicts_share_is_the_time_of_any_process():
    workflow = profiled().workflow
    share = verdict_of(profiled()).share
    assert share == workflow.io_time_share == pytest.approx(workflow.io.busy_s.total / workflow.runtime_s)
    assert prepare(inputs_of(profiled())).verdict.called_share is None
