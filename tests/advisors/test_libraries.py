"""Remedies in the words of the library that does the I/O, and the recommendation for the named cause first."""

from __future__ import annotations

import re

import pytest
from builders import name_pattern, profile, shared, system

from vani.advisors.catalogue import rules
from vani.advisors.judge import judge
from vani.advisors.libraries import LIBRARIES, PROGRAMS
from vani.schema.advice import Advice, ProfileRef, SystemRef
from vani.schema.dataset_facts import libraries_loaded


def advice(*files: dict, **settings: object) -> Advice:
    return judge(
        profile(list(files), **settings),
        system(),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
    )


def numbered(given: Advice) -> list[str]:
    return [entry.rule for entry in given.recommendations if entry.rule != "MAT001" and entry.severity != "info"]


def test_each_remedy_is_for_what_some_rule_settles():
    settled = {rule.settles for rule in rules()}
    for library in LIBRARIES:
        decided = {re.sub("-(read|write)$", "", settles) for settles in library.remedies}
        assert decided <= settled, library.name
        assert library.source.startswith("https://")
    assert {re.sub("-(read|write)$", "", key) for remedies in PROGRAMS.values() for key in remedies} <= settled


def test_loaded_libraries_are_known_by_packages_and_shared_libraries():
    paths = [
        "/sw/env/lib/python3.11/site-packages/zarr/core/array.py",
        "/sw/env/lib/python3.11/site-packages/zarr-3.1.dist-info/METADATA",
        "/usr/lib/x86_64-linux-gnu/libhdf5_mpich.so.103.3.1",
        "/usr/lib/python3.11/sqlite3/dbapi2.py",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/lustre/run/libhdf5.txt",
    ]
    assert libraries_loaded(paths) == ["hdf5", "sqlite3", "zarr"]


OPENED_AGAIN = {"processes": 1, "opens": 500, "written": "4M", "transfer": "8K", "metadata_s": 8, "time_s": 10, "busy_s": 10}


@pytest.mark.parametrize(
    ("path", "format_", "loaded", "words"),
    [
        ("/lustre/stack", "tiff", ["numpy", "tifffile"], "with tifffile.TiffWriter(name) as tif:"),
        ("/lustre/stack", "tiff", ["rasterio"], "rasterio.open(name)"),
        ("/lustre/run.h5", "hdf5", ["h5py", "hdf5"], "with h5py.File(name, mode) as file:"),
        ("/lustre/run.h5part", "bin", [], "with h5py.File(name, mode) as file:"),
        ("/lustre/particles", "bin", ["hdf5"], "with h5py.File(name, mode) as file:"),
        ("/lustre/table.csv", "csv", ["numpy", "pandas"], "pandas.concat(parts).to_csv(name)"),
        ("/lustre/notes", "text", ["hdf5"], "with open(name, mode) as file:"),
        ("/lustre/state.dat", "bin", ["dbm"], "without sync() in it"),
        ("/lustre/md.extxyz", None, ["ase", "numpy"], "traj.write(atoms)"),
        ("/lustre/events.root", "root", ["uproot"], "with uproot.open(name) as file:"),
        ("/lustre/model.safetensors", "bin", ["numpy"], "with safe_open(name, framework='pt') as file:"),
        ("/lustre/reads.bam", "bin", ["numpy"], "with pysam.AlignmentFile(name) as bam:"),
        ("/lustre/genes.fasta", "text", ["Bio"], "records = SeqIO.index(name, 'fasta') once"),
        ("/lustre/c/joblib/m/f/1337ce00fd7fe5ca04573802b97fa373/output.pkl", "bin", ["joblib"], "cache a function of many items"),
        ("/lustre/store.zarr/t/zarr.json", "json", ["zarr"], "zarr.consolidate_metadata(store)"),
    ],
)
def test_a_file_that_is_opened_again_and_again(path, format_, loaded, words):
    file = shared(path, **{**OPENED_AGAIN, "written": 4 << 20, "transfer": 8 << 10}, format=format_)
    given = advice(file, runtime_s=20, change={"middleware.libraries": loaded})
    entry = next(entry for entry in given.recommendations if entry.rule == "POS003")
    assert words in "\n".join(entry.apply)


@pytest.mark.parametrize(
    ("path", "format_", "loaded", "words"),
    [
        ("/lustre/brain.nii.gz", "gzip", ["nibabel", "numpy"], "numpy.asarray(img.dataobj) once"),
        ("/lustre/reads.fq.gz", "gzip", [], "a seek backwards decompresses all from the start"),
    ],
)
def test_a_compressed_file_that_is_read_from_the_start_again_and_again(path, format_, loaded, words):
    file = shared(path, processes=1, read=1 << 30, footprint_read=32 << 20, transfer=4096, time_s=20, format=format_)
    given = advice(file, runtime_s=40, change={"middleware.libraries": loaded})
    entry = next(entry for entry in given.recommendations if entry.rule == "POS011")
    assert words in "\n".join(entry.apply)


def test_a_database_that_commits_each_row_gets_words_for_one_transaction():
    file = shared("/lustre/t.duckdb.wal", processes=1, written=1 << 20, transfer=128, sync_ops=8000, sync_s=30, time_s=31)
    given = advice(file, runtime_s=40, change={"middleware.libraries": ["duckdb", "numpy"]})
    entry = next(entry for entry in given.recommendations if entry.rule == "POS010")
    assert 'con.execute("BEGIN")' in "\n".join(entry.apply)
    assert "POS002" not in numbered(given)


def test_temporary_file_of_a_database_gets_no_code():
    file = shared("/var/tmp/etilqs_b027e5", processes=1, written=64 << 20, transfer=4096, time_s=20, busy_s=20)
    assert "POS002" not in numbered(advice(file, runtime_s=20, change={"middleware.libraries": ["sqlite3"]}))


def test_a_package_that_python_has_not_loaded_gives_no_words():
    file = shared("/lustre/log.csv", **{**OPENED_AGAIN, "written": 4 << 20, "transfer": 8 << 10}, format="csv")
    row = name_pattern("/usr/lib/python3.11/**", files=90)
    given = advice(file, runtime_s=20, change={"middleware.libraries": None, "patterns": [row]})
    entry = next(entry for entry in given.recommendations if entry.rule == "POS003")
    assert "pandas" not in "\n".join(entry.apply)


@pytest.mark.parametrize(
    ("app", "words"),
    [
        ("append.sh", "for ...; do ...; done >> FILE"),
        ("step.py", "pandas.concat(parts).to_csv(name)"),
        ("simulate", "fd = open(name, flags);"),
    ],
)
def test_words_are_those_of_the_language_and_not_of_a_library_of_python(app, words):
    file = shared("/lustre/t.csv", **{**OPENED_AGAIN, "written": 4 << 20, "transfer": 8 << 10}, format="csv", apps=[app])
    given = advice(file, app=app, runtime_s=20, change={"middleware.libraries": []})
    entry = next(entry for entry in given.recommendations if entry.rule == "POS003")
    assert words in "\n".join(entry.apply)
    assert "broadcast" not in "\n".join(entry.apply)
    assert ("pandas" in "\n".join(entry.apply)) == (app == "step.py")


def test_commands_that_read_a_file_one_after_another_become_one():
    file = shared("/lustre/genes.gff", apps=["grep"], processes=40, read=40 << 26, footprint_read=1 << 26, transfer=98304, time_s=8, busy_s=8)
    change = {"apps[0].balance.mean_io_time_s": 0.2, "traces[0].layout": "processes", "workflow.io.busy_s.total": 8}
    given = advice(file, app="grep", runtime_s=20, processes=40, slowest_s=0.2, functions={"read": 1}, change=change)
    entry = next(entry for entry in given.recommendations if entry.rule == "POS011")
    assert "grep -F -f PATTERNS FILE" in "\n".join(entry.apply)
    assert not {"POS001", "POS009"} & set(numbered(given))


def test_a_pipeline_in_a_loop_reads_with_one_command_after_another():
    file = shared("/lustre/t.gz", apps=["gzip"], format="gzip", processes=36, read=36 << 22, footprint_read=1 << 22, transfer=262144, time_s=8, busy_s=8)
    change = {"apps[0].balance.mean_io_time_s": 8 / 36, "traces[0].layout": "processes", "apps[0].io.busy_s.total": 8}
    given = advice(file, app="gzip", runtime_s=20, processes=36, slowest_s=0.3, functions={"read": 1}, change=change)
    entry = next(entry for entry in given.recommendations if entry.rule == "POS011")
    assert "gzip -dc FILE | grep -F -f PATTERNS" in "\n".join(entry.apply)


def test_listing_a_folder_again_and_again_gets_options_of_ls():
    row = {"folder": "/lustre/out", "folders": 1, "names": 5000, "calls": 200000, "failed": 0, "most": 40, "listings": 40, "time_s": 80.0, "excluded_s": 0.0}
    given = advice(app="ls", runtime_s=20, change={"lookups": [row]})
    entry = next(entry for entry in given.recommendations if entry.rule == "POS003")
    assert "ls -f or ls -1 -U" in "\n".join(entry.apply)


@pytest.mark.parametrize(
    ("loaded", "moved", "words", "never"),
    [
        (["joblib"], {"written": 1 << 30, "footprint_written": 32 << 20}, "open(name, 'ab') before the loop", "once, before"),
        (["pyarrow"], {"read": 1 << 30, "footprint_read": 32 << 20, "written": 1 << 30, "footprint_written": 32 << 20}, "pq.ParquetWriter(name", "columns"),
        (["netCDF4"], {"read": 1 << 30, "footprint_read": 32 << 20}, "nccopy -c time/100", "enddef"),
        (["netCDF4"], {"written": 1 << 30, "footprint_written": 32 << 20}, "nc_enddef", "nccopy"),
        (["zarr"], {"read": 1 << 30, "footprint_read": 32 << 20}, "block = array[i : i + array.chunks[0]]", "assign"),
        (["numpy", "tables"], {"written": 1 << 30, "footprint_written": 32 << 20}, "table.append(rows)", "dset"),
    ],
)
def test_reading_again_and_writing_again_have_words_of_their_own(loaded, moved, words, never):
    format_ = {"netCDF4": "netcdf", "zarr": None, "joblib": None, "pyarrow": "parquet"}.get(loaded[0], "hdf5")
    path = {"zarr": "/lustre/s.zarr/c/0/0", "joblib": "/lustre/r.pkl", "pyarrow": "/lustre/r.parquet"}.get(loaded[0], "/lustre/file")
    file = shared(path, processes=1, transfer=600_000, time_s=20, format=format_, apps=["step.py"], **moved)
    given = advice(file, app="step.py", runtime_s=40, change={"middleware.libraries": loaded})
    text = "\n".join(next(entry for entry in given.recommendations if entry.rule == "POS011").apply)
    assert words in text
    assert never not in text


def test_a_zarr_store_is_opened_for_each_chunk_by_design():
    file = shared("/lustre/a.zarr/c/0/1", **{**OPENED_AGAIN, "written": 4 << 20, "transfer": 8 << 10})
    given = advice(file, runtime_s=20, change={"middleware.libraries": ["zarr"]})
    assert "POS003" not in numbered(given)
    assert "by design" in next(entry.why for entry in given.no_recommendation if entry.rule == "POS003")


def test_a_loaded_library_silences_no_rule_on_files_that_are_not_its_own():
    file = shared("/lustre/data", processes=1, written=64 << 20, transfer=1000, time_s=20, busy_s=20)
    for loaded in (["sqlite3"], ["lmdb"], ["zarr"]):
        assert "POS002" in numbered(advice(file, runtime_s=20, change={"middleware.libraries": loaded}))


def test_a_known_program_gets_its_own_option_and_no_code():
    file = shared("/lustre/a.tar", apps=["tar"], processes=1, written=64 << 20, transfer=10240, time_s=20, busy_s=20)
    given = advice(file, app="tar", runtime_s=20)
    (entry,) = [entry for entry in given.recommendations if entry.rule == "POS002"]
    assert "--blocking-factor" in "\n".join(entry.apply)
    assert "setvbuf" not in "\n".join(line for entry in given.recommendations for line in entry.apply)


@pytest.mark.parametrize(("app", "staged"), [("cp", False), ("git", False), ("cdo", True), ("sort", True)])
def test_a_program_that_only_copies_needs_no_copy_of_its_input(app, staged):
    file = shared("/lustre/in/all.nc", apps=[app], processes=1, read=200 << 20, footprint_read=100 << 20, transfer=4096, time_s=40, busy_s=40)
    given = advice(file, app=app, runtime_s=50)
    lines = "\n".join(line for entry in given.recommendations if entry.rule == "BB001" for line in entry.apply)
    assert bool(lines) == staged
    assert ("sort -S 4G -T $TMPDIR" in lines) == (app == "sort")
