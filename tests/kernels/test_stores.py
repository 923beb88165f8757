"""A store and the notes next to it have the same bytes with kernels and with numpy."""

from __future__ import annotations

from pathlib import Path

import pytest
from switched import needs_kernels, numpy_alone

import vani
from tests.readers.tiny_traces import TINY, write_tiny
from tests.traces.trace_generator import Workload, generate_trace
from vani.kernels import times_used

pytestmark = needs_kernels
DATA = Path(__file__).resolve().parents[1] / "data"
ABORTED = ("v3-killed-2r", "v3-truncated-s3dio-8r")
REAL = sorted(path for path in (DATA / "traces").iterdir() if path.is_dir() and path.name not in ABORTED)


def stored(trace: Path, folder: Path) -> dict[str, bytes]:
    vani.convert(trace, folder)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def assert_same(trace: Path, folder: Path) -> None:
    by_kernels = stored(trace, folder / "kernels")
    with numpy_alone():
        by_numpy = stored(trace, folder / "numpy")
    assert sorted(by_kernels) == sorted(by_numpy)
    assert [name for name, content in by_kernels.items() if content != by_numpy[name]] == []


@pytest.mark.parametrize("trace", REAL, ids=[trace.name for trace in REAL])
@pytest.mark.slow
def test_store_of_a_real_trace_is_the_same_without_kernels(trace, tmp_path):
    assert_same(trace, tmp_path)


@pytest.mark.parametrize("name", sorted(TINY))
@pytest.mark.sampled(6)
def test_store_of_every_layout_is_the_same_without_kernels(name, tmp_path):
    write_tiny(tmp_path / "trace", name)
    assert_same(tmp_path / "trace", tmp_path)


@pytest.mark.parametrize("pattern", ["consecutive", "strided", "random", "mixed"])
@pytest.mark.parametrize("layout", ["2.5p", "2.5g", "3.0"])
@pytest.mark.sampled(4)
def test_store_of_a_generated_trace_is_the_same_without_kernels(pattern, layout, tmp_path, monkeypatch):
    monkeypatch.setattr("vani.readers.recorder.batches.BATCH_ROWS", 20_000)
    generate_trace(
        tmp_path / "trace",
        Workload(calls=60_000, ranks=2, files=4, pattern=pattern, layout=layout, zlib_level=1),
    )
    before = times_used()
    assert_same(tmp_path / "trace", tmp_path)
    after = times_used()
    assert all(after[kernel][0] > before.get(kernel, (0, 0))[0] for kernel in ("calls", "grammar", "times"))
    assert all(after[kernel][1] == before.get(kernel, (0, 0))[1] for kernel in ("calls", "grammar", "times"))
