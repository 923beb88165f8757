"""Opening traces: which are recognised, the order of a workload's traces, and messages about the rest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vani.errors import InputError, UnknownFormatError
from vani.readers import open_trace, open_workload
from vani.readers.open import is_trace

TRACES = Path(__file__).parent.parent / "data" / "traces"
CM1 = Path(__file__).parent.parent / "data" / "parquet" / "cm1-lassen"
SMALL = TRACES / "v3-posix-mix-nonmpi"


def place(*folders: Path) -> None:
    for folder in folders:
        shutil.copytree(SMALL, folder)


def paths(workload) -> list[Path]:
    return [r.path for r in workload.readers]


def test_recorder_traces_and_parquet_of_both_converters_open_alike():
    assert open_trace(SMALL).tool == "recorder"
    assert open_trace(CM1).tool == "wisio"


def test_original_is_read_even_with_a_converted_copy_inside(tmp_path):
    place(tmp_path / "run")
    shutil.copytree(CM1, tmp_path / "run" / "_parquet")
    (tmp_path / "run" / "_text").mkdir()
    assert open_trace(tmp_path / "run").tool == "recorder"
    assert [r.tool for r in open_workload([tmp_path / "run"]).readers] == ["recorder"]
    assert open_trace(tmp_path / "run" / "_parquet").tool == "wisio"


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("tautrace.0.0.0.trc", "a TAU trace"),
        ("profile.0.0.0", "a TAU profile"),
        ("profile.cubex", "a profile of Score-P"),
        ("meminfo.HEADER.1700000000", "tables of LDMS"),
    ],
)
def test_foreign_traces_are_named_with_a_remedy(tmp_path, name, tool):
    (tmp_path / name).write_bytes(b"x")
    for path, verb in ((tmp_path, "contains"), (tmp_path / name, "is")):
        with pytest.raises(UnknownFormatError, match=f"{verb} {tool}.*; .*Recorder 2.3 or newer") as caught:
            open_trace(path)
        assert "\n" not in str(caught.value)


def test_folder_without_a_trace_is_reported_with_its_contents(tmp_path):
    for name in ("a.txt", "b.TXT", "c.log", "Makefile", "d.x", "e.y"):
        (tmp_path / name).write_text("x")
    (tmp_path / "data").mkdir()
    said = r"is not a trace, but has 2 \.txt files, .*, 1 other file and 1 folder without a trace; name the folder"
    with pytest.raises(UnknownFormatError, match=said) as caught:
        open_trace(tmp_path)
    assert "1 file without an ending" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("VERSION", "is one file of a Recorder trace; name its folder"),
        ("3.cfg", "is one file of a Recorder trace"),
        ("recorder.dat", "is one file of a Recorder trace; name its folder"),
        ("3.callsites", "is one file of a Recorder trace"),
        ("part.0.parquet", "is one Parquet file; name its folder"),
        ("trace.tar.gz", "is an archive; unpack it"),
        ("profile.yaml", "is a YAML document"),
        ("notes.txt", "is a file, not a trace"),
    ],
)
def test_a_file_in_place_of_a_folder_is_explained(tmp_path, name, said):
    (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match=said):
        open_trace(tmp_path / name)


def test_missing_and_empty_folders_are_explained(tmp_path):
    with pytest.raises(InputError, match="no such file or directory"):
        open_trace(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no such file or directory"):
        open_workload([SMALL, tmp_path / "nowhere"])
    with pytest.raises(InputError, match="is an empty folder"):
        open_trace(tmp_path)
    with pytest.raises(InputError, match="is an empty folder"):
        open_workload([tmp_path])
    with pytest.raises(InputError, match="no trace was given"):
        open_workload([])
    with pytest.raises(InputError, match=r"cannot be examined|no such file"):
        open_trace(tmp_path / ("x" * 300))


def test_foreign_parquet_is_refused_by_its_columns(tmp_path):
    pq.write_table(pa.table({"image": [1], "label": [2]}), tmp_path / "data.parquet")
    with pytest.raises(UnknownFormatError, match="columns image, label: neither WisIO nor recorder2parquet"):
        open_trace(tmp_path)


def test_folder_of_traces_is_not_a_trace_but_lists_its_traces(tmp_path):
    place(tmp_path / "a", tmp_path / "b")
    with pytest.raises(InputError, match=r"is not a trace but contains 2; name one of them, such as .*/a"):
        open_trace(tmp_path)


def test_a_directory_of_traces_is_a_workload_in_natural_order(tmp_path):
    place(tmp_path / "step10", tmp_path / "step9", tmp_path / "step1")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "results").mkdir()
    place(tmp_path / "_text" / "no")
    assert paths(open_workload([tmp_path])) == [tmp_path / "step1", tmp_path / "step9", tmp_path / "step10"]


def test_traces_one_level_deeper_are_found_as_recorder_lays_them(tmp_path):
    day, next_day = tmp_path / "recorder-20240101", tmp_path / "recorder-20240102"
    place(day / "120000.1-h-u-a-2", day / "110000.1-h-u-a-1", next_day / "100000.1-h-u-b-1")
    place(tmp_path / "x" / "y" / "too-deep")
    found = paths(open_workload([tmp_path]))
    assert found == [day / "110000.1-h-u-a-1", day / "120000.1-h-u-a-2", next_day / "100000.1-h-u-b-1"]


def test_several_traces_keep_their_order_and_count_once(tmp_path):
    place(tmp_path / "b", tmp_path / "a")
    (tmp_path / "again").symlink_to(tmp_path / "b")
    given = [tmp_path / "b", tmp_path / "a", tmp_path / "again", tmp_path / "a"]
    assert paths(open_workload(given)) == given[:2]


def test_broken_traces_are_listed_and_the_others_read(tmp_path):
    place(tmp_path / "a", tmp_path / "b")
    shutil.copytree(TRACES / "v3-killed-2r", tmp_path / "killed")
    (tmp_path / "b" / "recorder.mt").write_bytes(b"")
    workload = open_workload([tmp_path])
    assert paths(workload) == [tmp_path / "a"]
    assert [p for p, _ in workload.refused] == [tmp_path / "b", tmp_path / "killed"]
    assert all(isinstance(e, InputError) for _, e in workload.refused)


def test_first_reason_is_raised_if_no_trace_can_be_read(tmp_path):
    shutil.copytree(TRACES / "v3-killed-2r", tmp_path / "killed")
    with pytest.raises(InputError, match="aborted run"):
        open_workload([tmp_path])
    with pytest.raises(UnknownFormatError, match="is a file, not a trace"):
        open_workload([Path(__file__)])


def test_data_and_sources_next_to_traces_are_skipped(tmp_path):
    place(tmp_path / "trace")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "VERSION").write_text("1.2.3")
    (tmp_path / "source" / "index.ts").write_text("x")
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"image": [1]}), tmp_path / "data" / "0.parquet")
    assert not is_trace(tmp_path / "source")
    workload = open_workload([tmp_path])
    assert paths(workload) == [tmp_path / "trace"]
    assert workload.refused == []
