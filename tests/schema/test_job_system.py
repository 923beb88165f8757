"""A hand-written job with few keys is enough; formats are recognised by content first."""

from __future__ import annotations

import gzip
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.errors import DocumentError
from vani.schema.dataset_facts import format_of, format_of_head, format_of_name
from vani.schema.document import dumps, loads
from vani.schema.job import DatasetFile, DatasetSample, Job, Mount, is_below
from vani.schema.system import BurstBuffer, FileSystem, Rates, System


def test_job_needs_only_its_schema():
    job = loads("schema: vani.job/1\n", Job)
    assert job == Job()
    assert job.nodes is None
    assert job.pfs_dirs is None
    assert job.size_of("/x") is None
    assert job.mount_of("/x") is None


def test_a_job_is_written_and_read_back(tmp_path):
    job = Job(
        scheduler="slurm",
        nodes=2,
        time_limit_s=3600.0,
        apps={"003-mProject": "mProject"},
        mounts=[Mount(dir="/p/with blank", type="lustre", device="10.0.0.1@o2ib:/p")],
        dataset=DatasetSample(root="/in", files=[DatasetFile(path="/in/a\nb", size=3, dims=[2, 3])]),
        unknown={"dataset": 'it said: "no"'},
    )
    job.save(tmp_path / "job.yaml")
    assert Job.load(tmp_path / "job.yaml") == job


def test_a_size_is_found_by_absolute_and_by_relative_path():
    files = [DatasetFile(path="/in/a/b.h5", size=7), DatasetFile(path="/in/c", size=0)]
    job = Job(dataset=DatasetSample(root="/in", files=files))
    assert job.size_of("/in/a/b.h5") == job.size_of("a/b.h5") == job.size_of("/in/./a/../a/b.h5") == 7
    assert job.size_of("c") == 0
    assert job.size_of("/in/d") is None
    assert job == Job(dataset=DatasetSample(root="/in", files=files))


def test_path_belongs_to_the_longest_mount_point():
    job = Job(mounts=[Mount(dir=folder, type="x") for folder in ("/", "/p", "/p/q")])
    for path, folder in {"/p/q/r": "/p/q", "/p/qq": "/p", "/x": "/", "/": "/"}.items():
        mount = job.mount_of(path)
        assert mount is not None
        assert mount.dir == folder


@pytest.mark.parametrize(
    ("path", "folder", "is_it"),
    [
        ("/a/b", "/a", True),
        ("/a", "/a/", True),
        ("/ab", "/a", False),
        ("/x", "/", True),
        ("/", "/", True),
        ("/a/../b", "/a", False),
    ],
)
def test_being_below_is_decided_by_whole_names(path, folder, is_it):
    assert is_below(path, folder) == is_it


@pytest.mark.parametrize(
    "body",
    [
        "nodes: -1",
        "time_limit_s: -2",
        "mounts: [{dir: /}]",
        "limits: {cgroup: 3}",
        "dataset: {root: /x, files: [{path: a, size: -1}]}",
    ],
)
def test_impossible_figures_are_refused(body):
    with pytest.raises(DocumentError):
        loads(f"schema: vani.job/1\n{body}\n", Job)


counts = st.none() | st.integers(0, 1 << 60)
rates = st.builds(Rates, read=st.none() | st.integers(0, 10**14).map(float), write=st.none() | st.just(0.5))
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
systems = st.builds(
    System,
    name=names,
    file_systems=st.lists(
        st.builds(
            FileSystem,
            name=names,
            type=names,
            mounts=st.lists(names, max_size=2),
            targets=counts,
            max_bandwidth=rates,
        ),
        max_size=3,
    ),
    burst_buffers=st.lists(
        st.builds(
            BurstBuffer,
            name=names,
            kind=st.sampled_from(["node_local", "shared"]),
            type=names,
            request=st.lists(names),
        ),
        max_size=2,
    ),
    sources=st.dictionaries(names, names, max_size=3),
)


@given(systems)
def test_every_machine_is_read_back_the_same(system):
    assert loads(dumps(system), System) == system


def test_source_covers_nested_attributes():
    system = System(name="x", sources={"compute": "a", "file_systems[0].targets": "b", "file_systems": "c"})
    found = {
        path: system.source_of(path)
        for path in ("compute.nodes", "file_systems[0].targets", "file_systems[1].type")
    }
    assert found == {"compute.nodes": "a", "file_systems[0].targets": "b", "file_systems[1].type": "c"}
    assert system.source_of("network.type") is None
    assert System(name="x").node_local() is None


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"\x89HDF\r\n\x1a\n", "hdf5"),
        (b"\0" * 512 + b"\x89HDF\r\n\x1a\n", "hdf5"),
        (b"\0" * 300 + b"\x89HDF\r\n\x1a\n", None),
        (b"CDF\x01", "netcdf"),
        (b"CDF\x02", "netcdf"),
        (b"CDF\x05", "netcdf"),
        (b"CDF\x03", None),
        (b"SIMPLE  =                    T", "fits"),
        (b"\x93NUMPY\x01", "npy"),
        (b"PK\x03\x04", "zip"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"II*\0", "tiff"),
        (b"MM\0*", "tiff"),
        (b"GRIB\0\0\0\x02", "grib"),
        (b"root\0\0", "root"),
        (b"\0" * 257 + b"ustar", "tar"),
        (b"", None),
        (b"text", None),
    ],
)
def test_a_format_is_known_by_its_first_bytes(head, expected):
    assert format_of_head(head) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b.H5", "hdf5"),
        ("x.nc", "netcdf"),
        ("x.tar.gz", "gzip"),
        ("noend", None),
        (".h5", None),
        ("x.unheard", None),
    ],
)
def test_a_format_is_known_by_its_name(path, expected):
    assert format_of_name(path) == expected


def test_content_counts_more_than_the_name(tmp_path):
    hdf5 = b"\x89HDF\r\n\x1a\n" + b"\0" * 100
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("a.npy", b"")
    contents = {
        "a.h5": (hdf5, "hdf5"),
        "a.nc": (hdf5, "netcdf"),
        "a.dat": (hdf5, "hdf5"),
        "b.h5": (b"\0\1\2", "bin"),
        "c.csv": (b"1,2\n", "csv"),
        "d": (b"some words\n", "text"),
        "e": (b"\xff\xfe\0", "bin"),
        "f": (b"", "bin"),
        "g.h5": (b"", "hdf5"),
        "h.bin": (b"abc", "bin"),
        "i.png": (gzip.compress(b"x"), "gzip"),
        "j": ("é" * 2048 + "x").encode()[1:] and ("x" + "é" * 2048, "text"),
    }
    for name, (content, expected) in contents.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        assert format_of(tmp_path / name) == expected, name
    assert format_of(tmp_path / "x.npz") == "npz"


@given(st.binary(max_size=600))
def test_any_bytes_are_accepted_by_the_format_detection(head):
    assert format_of_head(head) is None or isinstance(format_of_head(head), str)
