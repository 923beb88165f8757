"""Remedies in the words of the library that does the I/O, and the recommendation for the named cause first."""

from __future__ import annotations

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
        assert set(library.remedies) <= settled, library.name
        assert library.source.startswith("https://")
    assert {word for _, decides in PROGRAMS.values() for word in decides.split()} <= settled


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
        ("/lustre/run.h5", "hdf5", ["h5py", "hdf5"], "with h5py.File(name, 'a') as file:"),
        ("/lustre/run.h5part", "bin", [], "with h5py.File(name, 'a') as file:"),
        ("/lustre/particles", "bin", ["hdf5"], "with h5py.File(name, 'a') as file:"),
        ("/lustre/table.csv", "csv", ["numpy", "pandas"], "pandas.concat(parts).to_csv(name)"),
        ("/lustre/notes", "text", ["hdf5"], "open each file once"),
        ("/lustre/state.dat", "bin", ["dbm"], "without sync() in it"),
        ("/lustre/md.extxyz", None, ["ase", "numpy"], "traj.write(atoms)"),
        ("/lustre/events.root", "root", ["uproot"], "with uproot.open(name) as file:"),
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
