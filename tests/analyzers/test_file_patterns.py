"""Name patterns and folders count every file of the run once, listed or not."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from invented import examples
from traces.random_runs import random_run
from traces.recorder_writer import Call, write_trace

import vani
from vani.columns import texts
from vani.errors import VaniError
from vani.models.io_time import costliest
from vani.name_patterns import NamePatterns

DATA = Path(__file__).resolve().parents[1] / "data"
TRACES = sorted(
    path
    for path in [*(DATA / "traces").iterdir(), *(DATA / "darshan").glob("*.darshan")]
    if path.name not in ("README.md", "reference.json", "v2-killed-2r", "v3-killed-2r", "v3-truncated-s3dio-8r")
)


def written(folder, ranks):
    """A trace of calls (function, arguments) of each rank, a millisecond each."""
    calls = [[Call(name, args, start=2 * n, end=2 * n + 1) for n, (name, args) in enumerate(rank)] for rank in ranks]
    write_trace(folder, calls, layout="3.0", resolution=1e-3)
    return folder


def check(profile):
    """Compare patterns and folders with all files, which the profile lists."""
    if profile.patterns is None:
        assert profile.dataset.files is None
        return
    io, files = profile.workflow.io, {file.path: file for file in profile.files}
    assert len(files) == profile.dataset.files
    grouped = NamePatterns(texts(list(files)))
    groups = {grouped.name(i): [list(files.values())[m] for m in grouped.members(i)] for i in range(grouped.count)}
    for pattern in profile.patterns:
        members = groups[pattern.pattern]
        assert pattern.files == len(members)
        assert pattern.reads == sum(file.io.ops.read for file in members)
        assert pattern.writes == sum(file.io.ops.write for file in members)
        assert pattern.flushes == sum(file.io.ops.sync or 0 for file in members)
        assert pattern.opens == sum(file.opens for file in members)
        assert pattern.shared == sum(file.access == "shared" for file in members)
        sizes = [file.size for file in members]
        assert pattern.size == (None if None in sizes else sum(sizes))
        for side in ("read", "written"):
            moved = [getattr(file.io.bytes, side) for file in members]
            assert None in moved or getattr(pattern.bytes, side) == sum(moved)
        if pattern.time_s is not None:
            assert (pattern.metadata_time_s or 0.0) <= pattern.time_s * (1 + 1e-9)
            # Concurrent calls of threads of one process count once in a file's time.
            assert pattern.time_s >= sum(file.io.time_s.total for file in members) * (1 - 1e-9)
        if pattern.processes is not None:
            assert max(file.processes for file in members) <= pattern.processes <= profile.workflow.processes
            assert max(file.writers for file in members) <= pattern.writers <= profile.workflow.processes
        if pattern.writer is not None:
            assert all(file.writers <= 1 for file in members) and any(file.writers for file in members)
    for rows in (profile.patterns, profile.folders):
        complete = sum(row.files for row in rows) == profile.dataset.files
        for side in ("read", "written"):
            moved, whole = [getattr(row.bytes, side) or 0 for row in rows], getattr(io.bytes, side) or 0
            assert sum(moved) <= whole
            assert not complete or sum(moved) == whole
    if len(profile.patterns) < 100:
        assert sum(pattern.files for pattern in profile.patterns) == profile.dataset.files
        assert sum(pattern.reads for pattern in profile.patterns) == io.ops.read
        assert sum(pattern.writes for pattern in profile.patterns) == io.ops.write
    most = costliest(profile)
    assert (most is None) == (not profile.dataset.files)
    if most is not None:
        assert profile.verdict.where == most.name
        assert most.share is None or 0.0 <= most.share <= 1.0


@pytest.mark.parametrize("trace", TRACES, ids=[trace.name for trace in TRACES])
@pytest.mark.slow
def test_patterns_of_a_bundled_trace_add_up_to_its_workload(trace):
    check(vani.profile(trace, files=None, scheduler="synchronous"))


@pytest.mark.parametrize("name", ["v3-cm1like-16r", "v25g-noipc-ior-fpp-4r", "v3-ior-ssf-hdf5-4r", "n2-hdf5-4r"])
def test_patterns_counted_without_times_match_the_full_profile(name):
    full, quick = (
        vani.profile(DATA / "traces" / name, files=None, quick=quick, scheduler="synchronous")
        for quick in (False, True)
    )
    check(quick)
    same = ("files", "bytes", "shared", "reads", "writes", "flushes", "opens")
    of_full = {pattern.pattern: [getattr(pattern, n) for n in same] for pattern in full.patterns}
    assert {pattern.pattern: [getattr(pattern, n) for n in same] for pattern in quick.patterns} == of_full
    assert {pattern.processes for pattern in quick.patterns} == {None}
    assert "--quick" in quick.provenance["patterns.processes"]


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6))
@pytest.mark.slow
def test_patterns_of_a_run_drawn_at_random_add_up_to_its_workload(seed):
    with TemporaryDirectory() as folder:
        random_run(seed).write(Path(folder) / "run")
        try:
            profile = vani.profile(Path(folder) / "run", files=None, scheduler="synchronous")
        except VaniError:
            return
        # The data set counts files that libraries alone move data of, and the profile lists none of them.
        assume(profile.dataset.files in (None, len(profile.files)))
        check(profile)


def numbered(rank, count):
    for number in range(count):
        path = f"/lustre/in/part_{number:04d}.npy"
        yield "open", (path, "0", "0")
        yield "read", (path, "%p", "100")
        yield "close", (path,)


def test_all_files_of_a_pattern_are_counted_and_not_only_listed_ones(tmp_path):
    profile = vani.profile(written(tmp_path / "trace", [numbered(0, 300)]), scheduler="synchronous")
    (pattern,) = profile.patterns
    assert (pattern.pattern, pattern.files, pattern.reads) == ("/lustre/in/part_%04d.npy", 300, 300)
    assert len(profile.files) == 100
    assert "\nWhere  all 300 files: /lustre/in/part_%04d.npy\n" in profile.summary()
    assert profile.verdict.where == "/lustre/in/part_%04d.npy"
