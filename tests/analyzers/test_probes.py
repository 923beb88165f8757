"""Probed paths are not files of the data set: a failing open leaves the same record as a successful one."""

from __future__ import annotations

from pathlib import Path

import pytest
from quick_differences import differences, without_reason

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.calls import FileClass
from vani.readers.open import open_trace
from vani.schema.profile import Profile

HINTS = "/etc/romio-hints"
NAMES = [
    "open", "close", "read", "lseek", "fopen", "fileno", "fflush", "access", "__xstat", "__fxstat", "rename", "unlink", "write",
]  # fmt: skip
LAYOUTS = [("2.3", None), ("2.5p", True), ("2.5p", False), ("2.5g", True), ("3.0", True), ("3.0", False)]


def run(*calls: tuple[str, ...]) -> list[Call]:
    return [Call(name, tuple(args), 0, 0, 10 * i, 10 * i + 5) for i, (name, *args) in enumerate(calls)]


DATA = (("open", "/s/x", "577", "420"), ("write", "/s/x", "%p", "100"), ("close", "/s/x"))
LOOK = ("open", HINTS, "0")


def written(folder: Path, *ranks: list[Call], layout: str = "3.0", interprocess: bool | None = None) -> Path:
    write_trace(folder, list(ranks), functions=NAMES, layout=layout, interprocess=interprocess)
    return folder


def classes(trace: Path) -> dict[str, FileClass]:
    table = open_trace(trace).files()
    return {
        p: FileClass(c) for p, c in zip(table["path"].to_pylist(), table["class"].to_pylist(), strict=True)
    }


def profile(folder: Path, *traces: Path) -> Profile:
    full = vani.profile(*traces, store=folder / "store", files=None)
    quick = vani.profile(*traces, quick=True, files=None)
    assert differences(quick, full) == []
    assert without_reason(quick, full) == set()
    return full


@pytest.mark.parametrize(("layout", "interprocess"), LAYOUTS)
def test_open_without_further_calls_is_counted_separately(tmp_path, layout, interprocess):
    trace = written(
        tmp_path / "t", run(LOOK, *DATA), run(*DATA[:1]), layout=layout, interprocess=interprocess
    )
    found = profile(tmp_path, trace)
    assert [f.path for f in found.files] == ["/s/x"]
    assert found.workflow.files.total == found.dataset.files == 1
    assert found.excluded.files == 1
    assert (found.workflow.io.ops.metadata, found.excluded.io.ops.metadata) == (3, 1)


PROOFS = {
    "close": [LOOK, ("close", HINTS)],
    "read by a program that ends without close": [LOOK, ("read", HINTS, "%p", "8")],
    "seek": [LOOK, ("lseek", HINTS, "0", "0")],
    "fstat, which asks about what is open": [LOOK, ("__fxstat", "1", HINTS, "%p")],
    "O_CREAT": [("open", HINTS, "66", "420")],
    "a stream": [("fopen", HINTS, "r"), ("fileno", HINTS)],
    "a rename to it": [LOOK, ("rename", "/etc/new", HINTS)],
    "a rename of it": [LOOK, ("rename", HINTS, "/etc/old")],
}


@pytest.mark.parametrize("proof", PROOFS)
def test_file_known_to_exist_is_not_a_probe(tmp_path, proof):
    assert classes(written(tmp_path / "t", run(*PROOFS[proof])))[HINTS] == FileClass.DATASET


VAIN = {
    "opens of many": [[LOOK], [LOOK, LOOK], [("fopen", HINTS, "r")]],
    "a flush of all streams, which the tracer writes under that name": [
        [("fopen", HINTS, "r"), ("fflush", HINTS)]
    ],
    "asked for by name": [[("access", HINTS, "4"), LOOK, ("__xstat", "1", HINTS, "%p")]],
}


@pytest.mark.parametrize("looks", VAIN)
def test_missing_file_is_a_probe_however_often_it_is_opened(tmp_path, looks):
    ranks = [run(*calls) for calls in VAIN[looks]]
    assert classes(written(tmp_path / "t", *ranks))[HINTS] == FileClass.PROBE


def test_checked_path_keeps_its_class(tmp_path):
    assert classes(written(tmp_path / "t", run(("access", HINTS, "4"))))[HINTS] == FileClass.DATASET


def test_file_used_by_any_process_counts_all_its_failed_opens(tmp_path):
    reads = [LOOK, ("read", HINTS, "%p", "8"), ("close", HINTS)]
    found = profile(tmp_path, written(tmp_path / "t", run(LOOK), run(*reads)))
    (file,) = found.files
    assert (file.path, file.opens, found.excluded.files) == (HINTS, 2, 0)


def test_file_used_in_any_trace_is_a_file_in_all(tmp_path):
    looks = written(tmp_path / "looks", run(LOOK, *DATA))
    makes = written(tmp_path / "makes", run(("open", HINTS, "577", "420"), ("write", HINTS, "%p", "8")))
    found = profile(tmp_path, looks, makes)
    assert {f.path for f in found.files} == {HINTS, "/s/x"}
    assert found.excluded.files == 0


def test_searched_system_path_is_still_a_system_path(tmp_path):
    trace = written(tmp_path / "t", run(("open", "/proc/self/maps", "0")))
    assert classes(trace)["/proc/self/maps"] == FileClass.SYSTEM


DATA_TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
# ROMIO's hints; the missing files of posix_mix (MANIFEST.yaml: "failed open and fopen of missing files");
# settings of netCDF, of which Darshan, which counts successful opens, saw none in the job's folder.
LOOKED_FOR = {
    "v3-ior-ssf-hdf5-4r": {HINTS},
    "v2-ipc-mpiio-mix-4r": {HINTS},
    "v3-posix-mix-nonmpi": {"/no/such/dir/file", "/lustre/scratch/proj/mix/does-not-exist.cfg"},
    "v3-netcdf-pnetcdf-4r": {
        *(f"{folder}/.{name}rc" for folder in ("/home/user", "/lustre/scratch/proj/nc") for name in ("nc", "dap", "dods")),
        "/home/user/.aws/config",
        "/home/user/.aws/credentials",
    },
    "v3-cm1like-16r": set(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKED_FOR)
def test_real_programs_probe_for_these_missing_files(name):
    found = classes(DATA_TRACES / name)
    assert {p for p, c in found.items() if c == FileClass.PROBE} == LOOKED_FOR[name]
