"""Promises of the remarks beside the verdict: what keeps the numbers from being what they seem."""

from __future__ import annotations

import pytest
from report_inputs import golden, inputs_of, judged

from vani.render.report.bounds import LEVELS
from vani.render.report.prepared import prepare
from vani.render.report.remarks import library_time, remarks
from vani.render.report.text import text
from vani.schema.advice import NoRecommendation
from vani.schema.profile import AppDependency


def said(profile, advice=None):
    return " ".join(remarks(profile, judged() if advice is None else advice, LEVELS[0]))


def with_layer(layer, seconds, profile=None):
    """A profile whose app spends so many seconds, summed over its 16 processes, in calls of a library."""
    profile = profile or golden()
    one = profile.interfaces[0].model_copy(update={"layer": layer, "time_s": seconds, "app": profile.apps[0].name})
    return profile.model_copy(update={"interfaces": [one, *profile.interfaces]})


# --- time in libraries ---------------------------------------------------------------------------------------


def test_half_of_the_run_in_hdf5_is_told_though_hardly_any_of_it_is_io_time():
    # 16 processes of a run of 31.5 s: 252 s are half of their time; 34.4 ms of it are file-system calls.
    app = golden().apps[0]
    profile = with_layer("hdf5", 0.5 * app.runtime_s * app.processes)
    (one,) = library_time(profile)
    assert one.startswith("On average a process spends 50 % of the run in calls of HDF5, but 0.0068 % in file-system calls")
    assert one in said(profile)


def test_then_nothing_needs_to_be_done_about_storage_alone():
    app = golden().apps[0]
    profile = with_layer("mpiio", 0.5 * app.runtime_s * app.processes)
    assert "Nothing needs to be done about storage." in text(inputs_of(profile))
    assert "Nothing needs to be done." in text(inputs_of(golden()))


@pytest.mark.parametrize(("layer", "share"), [("hdf5", 0.04), ("stdio", 0.5), ("hdf5", None)])
def test_little_or_unknown_time_and_time_of_the_file_system_itself_are_not_told(layer, share):
    app = golden().apps[0]
    seconds = None if share is None else share * app.runtime_s * app.processes
    assert library_time(with_layer(layer, seconds)) == []


def test_a_profile_without_times_says_nothing_about_libraries():
    profile = with_layer("hdf5", 100.0)
    apps = [app.model_copy(update={"runtime_s": None}) for app in profile.apps]
    assert library_time(profile.model_copy(update={"apps": apps})) == []


# --- what is in no number --------------------------------------------------------------------------------------


def test_a_damaged_trace_says_that_its_numbers_lack_something():
    trace = golden().traces[0].model_copy(update={"path": "/t/one", "complete": False, "problems": ["is cut", "rank 3 is lost", "so is rank 4"]})
    profile = golden().model_copy(update={"traces": [trace, trace]})
    words = "/t/one is not complete, and what it lacks is in no number here: is cut (and 2 more problems); 1 more trace is damaged"
    assert words in said(profile)


def test_problems_that_the_table_of_traces_does_not_show_are_counted():
    trace = golden().traces[0].model_copy(update={"complete": False, "problems": [f"rank {i} is lost" for i in range(9)]})
    (row,) = prepare(inputs_of(golden().model_copy(update={"traces": [trace]}))).traces.rows
    assert row.cells[-1].note == "rank 0 is lost; rank 1 is lost; rank 2 is lost; and 6 more"


def test_files_that_are_read_but_were_never_seen_to_be_written_are_told():
    edges = [
        AppDependency(producer="mMakeHdr", consumer="mProject", files=1, bytes_written=0, bytes_read=2882),
        AppDependency(producer="mMakeHdr", consumer="mAdd", files=1, bytes_written=0, bytes_read=2882),
        AppDependency(producer="mProject", consumer="mAdd", files=1, bytes_written=10, bytes_read=10),
    ]
    workflow = golden().workflow.model_copy(update={"app_dependencies": edges})
    words = said(golden().model_copy(update={"workflow": workflow}))
    assert words.startswith("Others read files of mMakeHdr to which no write is in the trace")


def test_why_there_are_no_times_is_said_once():
    why = "--quick does not read time stamps"
    profile = golden().model_copy(
        update={
            "workflow": golden().workflow.model_copy(update={"runtime_s": None}),
            "provenance": {**golden().provenance, "workflow.runtime_s": why},
        }
    )
    assert why in said(profile)
    nothing = [NoRecommendation(rule="MAT001", why=f"workflow.runtime_s is not known ({why})")]
    silent = judged().model_copy(update={"recommendations": [], "no_recommendation": nothing})
    assert why not in said(profile, silent)


# --- the verdict ---------------------------------------------------------------------------------------------------


def test_io_that_matters_without_a_finding_is_no_all_clear():
    first = judged().recommendations[0].model_copy(update={"severity": "high"})
    advice = judged().model_copy(update={"recommendations": [first]})
    assert "\nNo rule knows what to change.\n" in text(inputs_of(golden(), advice))


def test_of_several_traces_the_bar_is_that_of_all_together():
    app = golden().apps[0].model_copy(update={"instances": 3})
    several = prepare(inputs_of(golden().model_copy(update={"apps": [app]}))).verdict
    one = prepare(inputs_of(golden())).verdict
    assert (one.who, several.who) == ("the slowest process", "all traces together")
