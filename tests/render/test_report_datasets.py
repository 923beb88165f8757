"""Datasets: files that belong together are one row, and every file is counted exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from report_inputs import file_at, golden, inputs_of, with_files

from vani.render.report.file_tables import file_groups
from vani.render.report.model import prepare
from vani.render.report.tables import LEVELS
from vani.schema.profile import ByteCounts, NamePattern


def names(paths, **changed):
    return [group.name for group in file_groups([file_at(path, **changed) for path in paths])]


def test_ten_thousand_numbered_files_share_one_row():
    groups = file_groups([file_at(f"/s/out_{i:05d}") for i in range(10_000)])
    assert [(group.name, len(group.files)) for group in groups] == [("/s/out_%05d", 10_000)]


def test_numbers_without_zeros_in_front_have_no_width():
    assert names([f"/s/r{i}.dat" for i in (1, 20, 300)]) == ["/s/r%d.dat"]
    assert names([f"/s/r{i}.dat" for i in (100, 200, 300)]) == ["/s/r%d.dat"]


def test_number_common_to_all_names_is_kept():
    assert names([f"/run42/step{i:03d}/x2.h5" for i in range(4)]) == ["/run42/step%03d/x2.h5"]


def test_two_files_are_two_rows():
    assert names(["/s/a1", "/s/a2"]) == ["/s/a1", "/s/a2"]


def test_differing_words_make_separate_rows():
    assert names(["/s/u1.dat", "/s/v1.dat", "/s/w1.dat"]) == ["/s/u1.dat", "/s/v1.dat", "/s/w1.dat"]


def test_input_and_output_with_one_naming_scheme_are_two_datasets():
    files = [file_at(f"/s/x{i}", role=role) for i, role in enumerate(["input", "output"] * 3)]
    assert [(group.name, len(group.files)) for group in file_groups(files)] == [("/s/x%d", 3), ("/s/x%d", 3)]


def test_files_named_by_digests_share_a_row():
    letters = "abcdefghijklmnopqrst"
    assert names([f"/s/{a}.npz" for a in letters]) == ["/s/*.npz"]
    assert len(names([f"/s/{a}.npz" for a in letters[:-1]])) == 19


def test_groups_are_sorted_by_io_time():
    cheap, dear = file_at("/s/a1", io_time=1.0), file_at("/s/a2", io_time=9.0)
    groups = file_groups([cheap, file_at("/s/z", io_time=50.0), dear, file_at("/s/a3", io_time=2.0)])
    assert [group.name for group in groups] == ["/s/z", "/s/a%d"]
    assert [file.path for file in groups[1].files] == ["/s/a2", "/s/a3", "/s/a1"]


def test_without_times_the_most_bytes_come_first():
    nothing = golden().files[0].io.time_s.model_copy(update={"total": None})

    def timeless(path, moved):
        file = file_at(path, moved=moved)
        return file.model_copy(update={"io": file.io.model_copy(update={"time_s": nothing})})

    assert [group.name for group in file_groups([timeless("/s/small", 1), timeless("/s/large", 2)])] == ["/s/large", "/s/small"]


@given(st.lists(st.from_regex(r"/s/[ab]{1,2}[0-9]{1,3}(\.h5|_[0-9]{2})?", fullmatch=True), unique=True, max_size=60))
def test_every_file_is_in_exactly_one_group(paths):
    groups = file_groups([file_at(path) for path in paths])
    assert sorted(file.path for group in groups for file in group.files) == sorted(paths)


def test_a_row_of_a_dataset_adds_its_files_up():
    files = [file_at(f"/s/deep/x{i}", moved=1000 * i, io_time=float(i)) for i in range(1, 5)]
    row = prepare(inputs_of(with_files(files)), with_plots=False).tables["files"].rows[0]
    columns = {c.title: cell for c, cell in zip(prepare(inputs_of(with_files(files)), with_plots=False).tables["files"].columns, row.cells, strict=True)}
    assert columns["File or dataset"].text == "x%d"
    assert columns["File or dataset"].note == "dataset of 4 files"
    assert (columns["Written"].value, columns["I/O time"].value) == (10_000, 10.0)
    assert columns["Data calls"].value == 4 * (files[0].io.ops.read + files[0].io.ops.write)
    assert [member.cells[0].text for member in row.members] == ["x4", "x3", "x2", "x1"]


def test_row_of_a_dataset_counts_unlisted_files():
    files = [file_at(f"/s/deep/x{i}", moved=1000, io_time=1.0) for i in range(1, 5)]
    pattern = NamePattern(
        pattern="/s/deep/x%d", files=2000, bytes=ByteCounts(read=0, written=2_000_000, total=2_000_000), time_s=2000.0,
        metadata_time_s=0.0, processes=1, writers=1, shared=0, reads=0, writes=4000, opens=2000, size=2_000_000,
    )  # fmt: skip
    profile = with_files(files).model_copy(update={"patterns": [pattern]})
    table = prepare(inputs_of(profile), with_plots=False).tables["files"]
    columns = {column.title: cell for column, cell in zip(table.columns, table.rows[0].cells, strict=True)}
    assert columns["File or dataset"].note == "dataset of 2,000 files, 4 listed"
    figures = ("Size", "Written", "Data calls", "I/O time", "Metadata calls")
    assert [columns[title].value for title in figures] == [2_000_000, 2_000_000, 4000, 2000.0, None]


def test_omissions_of_the_table_are_stated():
    files = [file_at(f"/s/x{i:05d}") for i in range(3000)]
    report = prepare(inputs_of(with_files(files)), LEVELS[0], with_plots=False)
    row = report.tables["files"].rows[0]
    assert len(row.members) + row.unlisted == 3000
    assert len(row.members) == LEVELS[0].members
    assert f"{row.unlisted:,} files of datasets: their dataset's row counts them." in report.left_out
