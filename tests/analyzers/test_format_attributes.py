"""Tables VI and XI: known facts about the arrays in files and their values, and why the rest is null."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.schema.dataset_facts import Distribution, FormatAttributes
from vani.schema.job import DatasetFile, DatasetSample, Job

TRACES = Path(__file__).resolve().parents[1] / "data/traces"
WHY = "files.format_attributes"


def hdf5_file(path, *made):
    """Calls of a program that creates an HDF5 file, with those between opening and writing it."""
    return [
        ("H5Fcreate", (path, "2", "0", "0"), 0),
        ("open64", (path, "66", "420"), 1),
        *[(name, args, 0) for name, args in made],
        ("H5Dwrite", ("1", "2", "3", "4", "5", "%p"), 0),
        ("pwrite64", (path, "%p", "4096", "0"), 1),
        ("H5Fclose", ("72057594037927936",), 0),
        ("close", (path,), 1),
    ]


def profiles(tmp_path, *calls, job=None):
    """Full and quick, of one rank that makes these calls."""
    ticks, rows = 0, []
    for index, (function, args, depth) in enumerate(calls):
        rows.append(Call(function, args, depth, 0, ticks + depth, ticks + 9 - depth))
        ticks += 0 if index + 1 < len(calls) and calls[index + 1][2] > depth else 10
    write_trace(tmp_path / "t", [rows], layout="3.0")
    return [vani.profile(tmp_path / "t", job=job, quick=quick) for quick in (False, True)]


def create(name, place="72057594037927936"):
    return "H5Dcreate2", (place, name, "216172782113783848", "288230376151711747", "0", "0", "0")


def space(rank):
    return "H5Screate_simple", (str(rank), "%p", "%p")


CHUNKED = ("H5Pset_chunk", ("720575940379279381", "2", "%p"))


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ([space(3), create("u")], {"datasets": 1, "dims": 3, "encoding": "hdf5", "chunks": []}),
        # The same dataset created by every rank together is one; two names are two.
        ([space(2), create("u"), create("u"), create("v")], {"datasets": 2, "dims": 2, "encoding": "hdf5", "chunks": []}),
        # Dataspaces of several ranks: it is unknown which belongs to the file. The shape of a chunk is an
        # array.
        ([space(2), space(1), CHUNKED, create("u")], {"datasets": 1, "encoding": "hdf5"}),
        ([space(1), ("H5Pset_deflate", ("7", "6")), CHUNKED, create("u")], {"datasets": 1, "dims": 1, "encoding": "hdf5, gzip"}),
        # In two groups, or in a file that was created twice.
        ([space(1), create("u"), create("u", "1")], {"dims": 1, "encoding": "hdf5", "chunks": []}),
        # No dataset is created: it is only read, and the rest of the file is unknown.
        ([space(1)], None),
    ],
)
def test_only_hdf5_file_of_an_app_has_its_datasets(tmp_path, made, found):
    for profile in profiles(tmp_path, *hdf5_file("/p/a.h5", *made)):
        (file,) = profile.files
        assert file.format_attributes == (None if found is None else FormatAttributes(**found))
        assert file.interface == "hdf5"


def test_dataset_is_assigned_to_neither_of_two_open_hdf5_files(tmp_path):
    calls = [*hdf5_file("/p/a.h5", space(1), create("u")), *hdf5_file("/p/b.h5", space(1), create("v"))]
    for profile in profiles(tmp_path, *calls):
        assert [file.format_attributes for file in profile.files] == [None, None]
        assert "no call shows in which file it makes an array" in profile.provenance[WHY]
        assert "`vani collect --dataset` reads the headers of files" in profile.provenance[WHY]


def test_values_read_from_the_file_take_precedence(tmp_path):
    attributes = FormatAttributes(datasets=7, dims=4, type="float32", encoding="hdf5, gzip", chunks=[1, 2, 3, 4])
    sample = DatasetSample(
        root="/p",
        files=[
            DatasetFile(path="/p/a.h5", size=4096, format="hdf5", attributes=attributes),
            DatasetFile(path="/p/b.h5", size=4096, format="hdf5"),
        ],
    )
    job = Job(dataset=sample, unknown={"dataset.attributes": "1 file was not examined: no h5py"})
    calls = [*hdf5_file("/p/a.h5", space(1), create("u")), *hdf5_file("/p/b.h5", space(1), create("v"))]
    for profile in profiles(tmp_path, *calls, job=job):
        assert {f.path: f.format_attributes for f in profile.files} == {"/p/a.h5": attributes, "/p/b.h5": None}
        assert profile.provenance[WHY].endswith("1 file was not examined: no h5py")


def test_real_traces():
    def found(name):
        full, quick = (
            {f.path.rpartition("/")[2]: f.format_attributes for f in vani.profile(TRACES / name, quick=q).files}
            for q in (False, True)
        )
        # Quick profiles list paths that were only probed if the order of calls is unknown.
        assert {p: a for p, a in full.items() if a} == {p: a for p, a in quick.items() if a}
        return {path: attributes for path, attributes in full.items() if attributes is not None}

    # IOR writes two segments, each a dataset of one dimension.
    ior = FormatAttributes(datasets=2, dims=1, encoding="hdf5", chunks=[])
    assert found("v3-ior-ssf-hdf5-4r") == {"ior.h5": ior}
    # temp(time, x) by PnetCDF, pres(x) by netCDF-4, both float; Open MPI's files in /tmp are not the
    # program's.
    temp = FormatAttributes(datasets=1, dims=2, type="float32", encoding="netcdf", chunks=[])
    pres = FormatAttributes(datasets=1, dims=1, type="float32", encoding="netcdf")
    assert found("v3-netcdf-pnetcdf-4r") == {"pnc.nc": temp, "nc4.nc": pres}
    assert found("v3-posix-mix-4r") == {}


def test_distribution_of_the_values_comes_from_the_job(tmp_path):
    law = Distribution(name="gamma", closest="gamma", parameters={"shape": 2.0}, test="by hand", values=1000, files=3)
    trace = TRACES / "v3-haccio-ssf-8r"
    for quick in (False, True):
        told = vani.profile(trace, job=Job(dataset=DatasetSample(root="/p", distribution=law)), quick=quick)
        assert (told.dataset.distribution, told.provenance["dataset.distribution"]) == (law, "job.yaml")
        silent = vani.profile(trace, quick=quick)
        assert silent.dataset.distribution is None
        assert "`vani collect --dataset`" in silent.provenance["dataset.distribution"]
        job = Job(dataset=DatasetSample(root="/p"), unknown={"dataset.distribution": "scipy is not installed"})
        without = vani.profile(trace, job=job, quick=quick)
        assert without.provenance["dataset.distribution"] == "job.yaml: scipy is not installed"
