""""Where the time goes": functions, flushing, kinds of metadata, libraries and folders agree with the profile."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_inputs import Page, inputs_of, profiled

from vani.render.report.markdown import to_markdown as markdown
from vani.render.report.model import prepare
from vani.render.report.page import to_html as page
from vani.render.report.structure import call_table, folder_table, kind_table, library_table, metadata_table
from vani.render.report.tables import LEVELS
from vani.render.report.text import to_text as text
from vani.schema.profile import CallCost, LibraryTime, Profile

LIMITS = LEVELS[0]


def row(table, name):
    """The cells of the row that starts with a name, by column title."""
    found = next(one for one in table.rows if one.cells[0].text == name)
    return dict(zip((column.title for column in table.columns), found.cells, strict=True))


def with_io(profile, **changed):
    io = profile.workflow.io.model_copy(update=changed)
    return profile.model_copy(update={"workflow": profile.workflow.model_copy(update={"io": io})})


# --- kinds ---------------------------------------------------------------------------------------------------------


def test_flushing_has_a_row_of_its_own():
    io = profiled().workflow.io
    cells = row(kind_table(profiled()), "Flushing")
    assert (cells["Calls"].value, cells["I/O time"].value) == (40, io.time_s.sync)
    assert cells["Share"].value == pytest.approx(io.time_share.sync)
    assert cells["Bytes"].text == ""
    # Both write rates: without the time until data is safe, and with it.
    assert row(kind_table(profiled()), "Writing")["Bandwidth"].value == io.bandwidth.write
    assert cells["Bandwidth"].value == io.bandwidth.write_synced == pytest.approx(545e6, rel=0.01)


def test_shares_of_the_kinds_add_up_to_all():
    table = kind_table(profiled())
    assert sum(one.cells[4].value for one in table.rows) == pytest.approx(1)


def test_run_without_flushes_has_no_flush_rate():
    cells = row(kind_table(profiled("v3-cm1like-16r")), "Flushing")
    assert (cells["Calls"].text, cells["Bandwidth"].text) == ("0", "")


@pytest.mark.parametrize("side", ["read", "write"])
def test_an_impossible_rate_is_not_known_and_says_why(side):
    profile = profiled()
    none = {"read": ("read",), "write": ("write", "write_synced")}[side]
    profile = with_io(profile, bandwidth=profile.workflow.io.bandwidth.model_copy(update=dict.fromkeys(none)))
    why = "no rate where each process would have moved more than memory delivers"
    profile = profile.model_copy(update={"provenance": {**profile.provenance, f"io.bandwidth.{side}": why}})
    cell = row(kind_table(profile), {"read": "Reading", "write": "Writing"}[side])["Bandwidth"]
    assert (cell.text, cell.note, cell.value) == ("not known", why, None)
    if side == "write":
        assert row(kind_table(profile), "Flushing")["Bandwidth"].text == "not known"
    assert why in Page(page(inputs_of(profile))).text()
    assert why in " ".join(text(inputs_of(profile)).split()) and why in markdown(inputs_of(profile))


def test_overall_bandwidth_is_shown_despite_a_reason_for_phases():
    # The provenance contains the reason for any phase or file.
    profile = profiled()
    profile = profile.model_copy(update={"provenance": {**profile.provenance, "io.bandwidth.read": "no rate"}})
    assert row(kind_table(profile), "Reading")["Bandwidth"].value == profile.workflow.io.bandwidth.read


# --- functions -----------------------------------------------------------------------------------------------------


def test_functions_match_the_profile_with_most_time_first():
    calls = profiled().workflow.io.calls
    table = call_table(profiled(), LIMITS)
    assert [one.cells[0].text for one in table.rows] == [call.name for call in calls]
    cells = row(table, "fsync")
    assert (cells["Calls"].value, cells["Time"].value, cells["Bytes"].text) == (40, calls[0].time_s, "")
    assert cells["Share"].value == pytest.approx(calls[0].time_s / sum(call.time_s for call in calls))
    assert cells["Mean"].value == pytest.approx(calls[0].time_s / 40)
    assert row(table, "write")["Bytes"].value == 160 << 20


def test_last_row_sums_the_rest():
    calls = profiled().workflow.io.calls
    table = call_table(profiled(), replace(LIMITS, calls=3))
    assert [one.cells[0].text for one in table.rows] == ["fsync", "write", "open", "all others"]
    cells = row(table, "all others")
    assert cells["Calls"].value == sum(call.count for call in calls[3:])
    assert cells["Time"].value == pytest.approx(sum(call.time_s for call in calls[3:]))
    assert cells["Bytes"].value == sum(call.bytes or 0 for call in calls[3:])
    assert sum(one.cells[3].value for one in table.rows) == pytest.approx(1)


def test_summary_row_of_the_profile_is_last():
    rest = CallCost(name=None, count=7, time_s=9.0, bytes=None)
    profile = with_io(profiled(), calls=[*profiled().workflow.io.calls, rest])
    table = call_table(profile, LIMITS)
    assert table.rows[-1].cells[0].text == "all others"
    assert row(table, "all others")["Time"].value == 9.0
    short = row(call_table(profile, replace(LIMITS, calls=3)), "all others")
    assert short["Calls"].value == 7 + sum(call.count for call in profiled().workflow.io.calls[3:])


def test_a_profile_without_times_has_functions_by_their_calls():
    table = call_table(profiled(quick=True), LIMITS)
    assert [column.title for column in table.columns] == ["Function", "Calls", "Bytes"]
    assert row(table, "fsync")["Calls"].value == 40
    assert "most calls first" in table.caption


def test_table_is_omitted_without_functions_and_kinds():
    tree = profiled().model_dump(by_alias=True) | {"folders": None}
    tree["workflow"]["library_time_s"] = None
    tree["workflow"]["io"] |= {"calls": None, "metadata_kinds": None}
    without = Profile.model_validate(tree)
    assert call_table(without, LIMITS) is metadata_table(without) is library_table(without) is folder_table(without, LIMITS) is None
    assert not {"calls", "metadata", "libraries", "folders"} & set(prepare(inputs_of(without)).tables)
    for write in (page, markdown, text):
        assert "all others" not in write(inputs_of(without))


# --- metadata, libraries, folders -----------------------------------------------------------------------------------


def test_metadata_is_split_by_kind_of_operation():
    kinds = profiled().workflow.io.metadata_kinds
    table = metadata_table(profiled())
    assert [one.cells[0].text for one in table.rows] == ["opening", "directory operations", "closing"]
    assert (row(table, "opening")["Calls"].value, row(table, "opening")["Time"].value) == (61, kinds.open.time_s)
    assert sum(one.cells[1].value for one in table.rows) == profiled().workflow.io.ops.metadata
    assert sum(one.cells[3].value for one in table.rows) == pytest.approx(1)


def test_library_time_stands_beside_file_system_time():
    profile = profiled("v3-ior-ssf-hdf5-4r")
    times = profile.workflow.library_time_s
    table = library_table(profile)
    assert [one.cells[0].text for one in table.rows] == ["MPI-IO", "HDF5", "File system"]
    cells = row(table, "HDF5")
    assert [cells[name].value for name in ("In its calls", "Outside the file system", "Slowest process")] == [
        times["hdf5"].total, times["hdf5"].outside_file_system, times["hdf5"].slowest,
    ]  # fmt: skip
    below = row(table, "File system")
    assert below["In its calls"].value == profile.workflow.io.time_s.total
    assert below["Slowest process"].value == max(app.balance.slowest_io_time_s for app in profile.apps)


def test_a_rest_in_the_file_system_is_not_rounded_away():
    profile = profiled("v3-ior-ssf-hdf5-4r")
    time = LibraryTime(total=37.423, outside_file_system=37.288, slowest=4.7)
    workflow = profile.workflow.model_copy(update={"library_time_s": {"mpiio": time}})
    table = library_table(profile.model_copy(update={"workflow": workflow}))
    assert row(table, "MPI-IO")["Share"].text == "> 99 %"


def test_a_run_without_libraries_has_no_table_of_them():
    assert library_table(profiled()) is None


def test_all_folders_are_listed_up_to_a_bound():
    folders = profiled().folders
    table = folder_table(profiled(), LIMITS)
    assert [one.cells[0].text for one in table.rows] == [folder.path for folder in folders]
    cells = row(table, folders[0].path)
    assert [cells[name].value for name in ("Files", "Created", "Entries", "Written", "Metadata time")] == [
        8, 8, 8, 1 << 25, folders[0].metadata_time_s,
    ]  # fmt: skip
    short = folder_table(profiled(), replace(LIMITS, rows=4))
    assert (len(short.rows), short.left_out) == (4, len(folders) - 4)
    assert any("table of folders" in line for line in prepare(inputs_of(profiled()), replace(LIMITS, rows=4)).left_out)


def test_flushed_files_show_their_number_of_flushes():
    table = prepare(inputs_of(profiled())).tables["files"]
    titles = [column.title for column in table.columns]
    place = titles.index("Flushes")
    assert sum(one.cells[place].value for one in table.rows) == 40
    for one in table.rows:
        assert all(len(member.cells) == len(titles) for member in (one, *one.members))
    # A run without flushes has no column of zeros.
    assert "Flushes" not in [column.title for column in prepare(inputs_of(profiled("v3-cm1like-16r"))).tables["files"].columns]


# --- in every format ------------------------------------------------------------------------------------------------


def test_the_page_has_all_tables_with_numbers_to_sort_by():
    made = page(inputs_of(profiled("v3-ior-ssf-hdf5-4r")))
    for name in ("kinds", "calls", "metadata", "libraries", "folders"):
        table = made.partition(f'id="table-{name}" class="sortable"')[2].partition("</table>")[0]
        assert 'data-value="' in table and '<button type="button" class="sort">' in table, name
    folder = profiled("v3-ior-ssf-hdf5-4r").folders[0].path
    assert folder in Page(made.partition('id="table-folders"')[2].partition("</table>")[0]).text()


@pytest.mark.parametrize("write", [markdown, text])
def test_texts_have_a_short_form(write):
    made = write(inputs_of(profiled()))
    lines = made.splitlines()
    assert sum("fsync" in line and "88 %" in line and not re.search(r"Why|open", line) for line in lines) == 1
    assert "all others" in made and "fclose" not in made
    assert "Metadata: opening 61 (37 ms), directory operations 10 (3.21 ms), closing" in " ".join(made.replace("\\", "").split())
    assert sum(line.strip("| ").startswith("Flushing") and "545 MB/s" in line for line in lines) == 1
    assert "HDF5" in write(inputs_of(profiled("v3-ior-ssf-hdf5-4r")))


def test_no_line_of_the_text_is_wider_than_a_terminal():
    for name in ("v3-ior-ssf-hdf5-4r", "v3-ckpt-then-restart-8r", "v3-netcdf-pnetcdf-4r"):
        inputs = inputs_of(profiled(name))
        pasted = {line for one in inputs.advice.recommendations for line in one.apply}
        wide = [line for line in text(inputs).splitlines() if len(line) > 80 and line.strip() not in pasted]
        assert wide == []


@pytest.mark.parametrize("write", [page, markdown, text])
def test_share_of_the_run_matches_the_profile(write):
    workflow = profiled().workflow
    assert f"{100 * workflow.io.busy_s.total / workflow.runtime_s:.0f}" == "33"
    made = write(inputs_of(profiled()))
    words = " ".join((Page(made).text() if write is page else made).split())
    assert "33 % of the run" in words
    if write is not markdown:
        assert "slowest process, rank 5: 109 ms, 11 %" in words
    for other in ("On average a process", "on average a process", "mean of all processes"):
        assert other not in words
