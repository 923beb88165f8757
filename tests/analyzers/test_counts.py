"""Profiles of counts: what is exact, bounded or null, on invented counters and on logs of Darshan.

Figures of the logs come from `comparison.csv` next to the twins of the Recorder traces.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import vani
from vani.analyzers.counts.times import evened_out
from vani.schema.document import dumps, loads
from vani.schema.profile import Profile

LOGS = Path(__file__).parents[1] / "data" / "darshan"
SHARED_FILE = LOGS / "v3-ior-ssf-posix-8r.darshan"
STRIDED = LOGS / "v3-ior-ssf-posix-strided-4k-8r.darshan"
LIBRARIES = LOGS / "v3-netcdf-pnetcdf-4r.darshan"
WITHOUT_DXT = LOGS / "v3-ior-large16m-ssf-2r.darshan"
SERIAL = LOGS / "v3-posix-mix-1r.darshan"
TWINS = Path(__file__).parents[2].parent / "shared" / "data" / "darshan-twins"

with_twins = pytest.mark.skipif(not TWINS.is_dir(), reason="the shared logs are not here")


# Sums over all ranks


@given(arrays(np.int64, st.integers(1, 20), elements=st.integers(0, 1000)), st.integers(0, 20000))
def test_shared_amounts_add_up_and_respect_certain_minimums(least, total):
    found = evened_out(least, total)
    assert (found >= least).all()
    assert found.sum() == max(total, least.sum())


@given(arrays(np.int64, st.integers(1, 20), elements=st.integers(0, 1000)), st.integers(0, 20000))
def test_no_other_way_to_spread_has_a_smaller_maximum(least, total):
    # The largest has its certain minimum, or the mean of all.
    mean = -(-max(total, int(least.sum())) // len(least))
    assert evened_out(least, total).max() == max(least.max(), mean)


# Profiles


@pytest.fixture(scope="module")
def shared_file() -> Profile:
    return vani.profile(SHARED_FILE)


def test_calls_bytes_and_processes_are_exact(shared_file):
    io, (file,) = shared_file.workflow.io, shared_file.files
    assert (io.bytes.read, io.bytes.written, io.ops.read, io.ops.write) == (134217728, 134217728, 128, 128)
    assert (file.opens, file.processes, file.access, file.readers, file.writers) == (16, 8, "shared", 8, 8)
    assert file.size == 134217728
    # ior -t 1m: the bin up to 1 MiB.
    assert io.transfer_size.write.common == [(1 << 20, 128)]
    assert io.transfer_size.write.histogram == {"100K_1M": 128}


def test_standard_streams_are_counted_separately(shared_file):
    # comparison.csv has 2,203 B on standard output.
    assert shared_file.excluded.files == 1
    assert shared_file.excluded.io.bytes.written == 2203
    assert all(not file.path.startswith("<") for file in shared_file.files)


@pytest.fixture(scope="module")
def without_dxt() -> Profile:
    return vani.profile(WITHOUT_DXT)


def test_attributes_that_counts_do_not_give_are_null_with_a_reason(shared_file, without_dxt):
    assert shared_file.workflow.io.past_end.read is None
    assert "moved" in shared_file.provenance["io.past_end"]
    assert without_dxt.workflow.io.time_s.sync is None
    assert "counted as write time" in without_dxt.provenance["io.time_s.sync"]
    assert [file.role for file in shared_file.files] == [None]
    assert "removals are not counted" in shared_file.provenance["files.role"]
    assert [(folder.creates, folder.makers) for folder in shared_file.folders] == [(None, None)]
    for attribute in ("folders.creates", "folders.makers"):
        assert shared_file.provenance[attribute] == "opens that make their file are not counted apart"


def test_busy_times_have_both_ends(without_dxt, shared_file):
    busy, bounds = without_dxt.workflow.io.busy_s, without_dxt.bounds
    low, high = bounds["workflow.io.busy_s.total"]
    # POSIX_F_SLOWEST_RANK_TIME of the file, and less than POSIX_F_*_TIME together.
    assert busy.total == low == pytest.approx(0.0966668)
    assert low < high < without_dxt.workflow.io.time_s.total
    assert bounds["workflow.io.busy_s.write"][0] == 0, "flushes may have taken all of it"
    assert shared_file.apps[0].balance.slowest_io_time_s == pytest.approx(0.0739133)
    assert shared_file.apps[0].balance.slowest_rank == 4


def _union_s(log: Path, kinds: tuple[str, ...]) -> float:
    """Seconds in which some DXT call reads or writes, from PyDarshan's own records, one after the other."""
    from darshan.backend import cffi_backend  # noqa: PLC0415

    opened = cffi_backend.log_open(str(log))
    calls = []
    while (record := cffi_backend.log_get_dxt_record(opened, "DXT_POSIX")) is not None:
        for kind in kinds:
            calls += [(c["start_time"], c["end_time"]) for c in record[f"{kind}_segments"]]
    cffi_backend.log_close(opened)
    total, reached = 0.0, 0.0
    for start, end in sorted(calls):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


@pytest.mark.parametrize("log", [SHARED_FILE, STRIDED], ids=lambda log: log.stem)
def test_complete_dxt_records_give_exact_busy_times(log):
    profile = vani.profile(log)
    busy = profile.workflow.io.busy_s
    assert busy.read == pytest.approx(_union_s(log, ("read",)), rel=1e-4)
    assert busy.write == pytest.approx(_union_s(log, ("write",)), rel=1e-4)
    assert not {"workflow.io.busy_s.read", "workflow.io.busy_s.write"} & profile.bounds.keys()
    assert busy.total >= _union_s(log, ("read", "write")) * 0.9999
    assert "kept one by one" in profile.provenance["io.busy_s"]


def test_complete_dxt_writes_leave_the_rest_of_their_time_to_flushes(shared_file):
    io, why = shared_file.workflow.io, shared_file.provenance["io.time_s.sync"]
    # POSIX_F_WRITE_TIME, 0.482757 s, less 128 writes of DXT. Recorder's twin spent 0.379 s in fsync.
    assert (io.time_s.write, io.time_s.sync) == pytest.approx((0.108532, 0.374224), abs=1e-6)
    assert io.time_share.sync == pytest.approx(0.75, abs=0.001)
    assert "less that of these writes" in why
    low, high = shared_file.bounds["workflow.io.busy_s.sync"]
    assert io.busy_s.sync == low <= high <= io.time_s.sync + 1e-9
    # Buffered streams leave no calls, so how long standard output took to flush is unknown.
    assert shared_file.excluded.io.ops.sync > 0
    assert shared_file.excluded.io.time_s.sync is None


def test_phases_sizes_and_places_match_the_dxt_calls(shared_file):
    write, read = shared_file.phases
    assert (write.kind, read.kind, write.io.ops.write, read.io.ops.read) == ("write", "read", 128, 128)
    assert write.end_s < read.start_s
    assert shared_file.apps[0].phase_gap_s is not None
    assert "kept one by one" in shared_file.provenance["phases"]
    # ior -t 1m -b 4m -s 4: blocks of four transfers, 8 ranks apart. The Recorder trace of the same run has as many.
    assert shared_file.workflow.io.transfer_size.read.p50 == 1 << 20
    assert shared_file.files[0].io.access_pattern.consecutive == 0.8125
    assert shared_file.job.nodes == 1
    assert "logs name" in shared_file.provenance["job.nodes"]


def test_bounds_are_written_and_read_and_absent_if_missing(without_dxt):
    text = dumps(without_dxt)
    bounds = loads(text, Profile).bounds
    assert bounds.keys() == without_dxt.bounds.keys()
    for attribute, ends in without_dxt.bounds.items():
        assert bounds[attribute] == pytest.approx(ends)
    assert "\nbounds:" in text
    assert "\nbounds:" not in dumps(without_dxt.model_copy(update={"bounds": {}}))


def test_the_stride_of_interleaved_writes_is_from_start_to_start():
    profile = vani.profile(STRIDED)
    (file,) = profile.files
    # ior -b 4k with 8 ranks: each starts 32 KiB after its last block.
    assert file.stride == 8 * 4096
    assert file.io.access_pattern.strided > 0.9


def test_a_serial_run_has_no_shared_files():
    profile = vani.profile(SERIAL)
    assert profile.workflow.processes == 1
    assert profile.workflow.files.shared == 0


def test_opens_are_those_that_recorder_traced():
    # Darshan counts 16 with dup, dup2 and fdopen.
    assert sum(file.opens for file in vani.profile(SERIAL, files=None).files) == 12


def test_files_belong_to_the_outermost_library_that_knows_them():
    profile = vani.profile(LIBRARIES, files=None)
    assert {"hdf5", "pnetcdf"} <= {file.interface for file in profile.files}
    assert {"posix", "mpiio", "hdf5", "pnetcdf"} <= {row.layer for row in profile.interfaces}


@pytest.mark.slow
def test_logs_are_advised_compared_and_reported(shared_file):
    assert vani.advise(shared_file, system="generic-lustre").recommendations
    assert vani.diff(SHARED_FILE, STRIDED)
    assert "ssf_posix.dat" in vani.report(shared_file)


def test_several_logs_are_one_workload():
    profile = vani.profile(SHARED_FILE, STRIDED)
    assert (profile.workflow.processes, profile.apps[0].instances) == (16, 2)
    assert profile.workflow.io.ops.write == 128 + 2048


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.glob("*.darshan")))
def test_every_rule_takes_a_profile_of_counts(name):
    advice = vani.advise(vani.profile(LOGS / name), system="generic-lustre")
    assert advice.no_recommendation


def test_function_missing_from_counts_may_have_been_called():
    advice = vani.advise(vani.profile(LIBRARIES), system="generic-lustre")
    assert "HD5003" not in {one.rule for one in advice.recommendations}
    assert any("which functions of HDF5" in one.why for one in advice.no_recommendation if one.rule == "HD5003")


@pytest.mark.parametrize("rule", ["GPF002", "GPF003"])
def test_rules_about_new_files_state_that_files_are_not_counted(shared_file, rule):
    several = shared_file.model_copy(update={"job": shared_file.job.model_copy(update={"nodes": 2})})
    (found,) = vani.advise(several, system="generic-gpfs", select=[rule]).no_recommendation
    assert "not known; Recorder records it" in found.why


# Runs before and after tuning


AIIO = TWINS.parent / "aiio-darshan"
PAIRS = {
    "ior": ("66186370", "66184525"),
    "h5bench": ("66082102", "66089597"),
    "write_3d_nc4": ("66168155", "66168349"),
}
JOINS = {"POS002", "POS009", "MIO001"}
"""Rules that join small requests."""


@pytest.mark.skipif(not AIIO.is_dir(), reason="the shared logs are not here")
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_joining_small_writes_is_advised_only_before_tuning(pair):
    def numbered(job: str) -> list[str]:
        profile = vani.profile(next(AIIO.glob(f"*_id{job}-*.darshan")))
        advice = vani.advise(profile, system="generic-lustre").recommendations
        return [one.rule for one in advice if one.rule != "MAT001" and one.severity != "info"]

    before, after = (numbered(job) for job in pair)
    assert JOINS & {*before[:2]}
    assert not JOINS & {*after}


# Twins


def _twins() -> list[dict[str, str]]:
    if not TWINS.is_dir():
        return []
    with (TWINS / "comparison.csv").open() as file:
        return [row for row in csv.DictReader(file) if "/" not in row["trace"]]


_UNLISTED = {
    "v3-mpiio-mix-4r": {"bytes_read": 304, "bytes_written": 160, "reads": 40, "writes": 20, "opens": 8, "files": 1},
    "v3-netcdf-pnetcdf-4r": {"opens": 20, "files": 8},
    "v3-posix-mix-1r": {"opens": 4},
    "v3-posix-mix-4r": {"opens": 16},
    "v3-posix-mix-fork-1r": {"opens": 4},
    "v3-posix-mix-nonmpi": {"opens": 4},
}
"""What Darshan counts of files of MPI, which are no data, and opens that it counts for dup, dup2 and fdopen."""


@with_twins
@pytest.mark.parametrize("twin", _twins(), ids=lambda row: row["trace"])
@pytest.mark.slow
def test_totals_of_a_twin_match_the_comparison(twin):
    name = twin["trace"]
    logs = [TWINS / f"{name}.darshan", *sorted(TWINS.glob(f"{name}.[0-9]*.darshan"))]
    profile = vani.profile(*(log for log in logs if log.exists()), files=None)
    files = [
        f for f in profile.files if f.path.startswith("/lustre/scratch/proj") or not f.path.startswith("/")
    ]
    found = {
        "bytes_read": sum(f.io.bytes.read for f in files),
        "bytes_written": sum(f.io.bytes.written for f in files),
        "reads": sum(f.io.ops.read for f in files),
        "writes": sum(f.io.ops.write for f in files),
        "opens": sum(f.opens for f in files),
        "files": sum(f.opens > 0 for f in files),
    }
    assert found == {key: int(twin[f"darshan_{key}"]) - _UNLISTED.get(name, {}).get(key, 0) for key in found}
    assert profile.workflow.processes == int(twin["ranks"]) * int(twin["darshan_logs"])


@with_twins
def test_no_rank_is_the_slowest_if_records_of_all_ranks_fit_an_even_share():
    profile = vani.profile(TWINS / "v3-dl-train-noexclusion-2r.darshan")
    balance = profile.apps[0].balance
    # 205 records of both ranks name either of them as the slowest, and the sums leave the same time for each.
    assert (balance.slowest_rank, balance.slowest_call_rank) == (None, None)
    assert balance.slowest_io_time_s == pytest.approx(balance.mean_io_time_s)
    assert profile.provenance["apps.balance.slowest_rank"] == "every process takes as long as the others"
    assert "in every process" in profile.verdict.sentence and "rank" not in profile.verdict.sentence


@with_twins
def test_records_of_single_ranks_decide_with_those_of_all_ranks():
    balance = vani.profile(TWINS / "v3-posix-mix-4r.darshan").apps[0].balance
    # One record of all ranks, in which rank 1 is the slowest, and 64 records of single ranks.
    assert balance.slowest_rank == 1 and balance.slowest_io_time_s > balance.mean_io_time_s
