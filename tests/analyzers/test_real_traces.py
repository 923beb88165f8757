"""Profiles of the shared real traces next to the repository; skipped without them.

Expected values: MANIFEST.yaml and reference.json next to the traces, comparison.csv of the Darshan twins, the
README of the CM1 trace.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest
import yaml

import vani
from vani.analyzers.self_check import refuse_contradictions
from vani.errors import TraceError
from vani.schema.profile import FileEntity, Profile

SHARED = Path(__file__).resolve().parents[3] / "shared"
TRACES = SHARED / "traces"
CM1 = SHARED / "traces-parquet" / "cm1-lassen"

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")

MANIFEST = yaml.load((TRACES / "MANIFEST.yaml").read_text(), yaml.CSafeLoader) if SHARED.is_dir() else []
REFERENCE = json.loads((TRACES / "reference.json").read_text()) if SHARED.is_dir() else {}
BROKEN = {"v2-killed-2r", "v3-killed-2r", "v3-truncated-s3dio-8r"}  # by MANIFEST.yaml
LONG = {"v2-medium-smallio-8r", "v3-medium-smallio-8r", "v3-large-smallio-8r", "v3-workflow-montage"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("stores")


@lru_cache(maxsize=8)
def profile_of(path: Path, store: Path) -> Profile:
    return vani.profile(path, store=store, files=None)


def named(profile: Profile, end: str) -> FileEntity:
    (found,) = [f for f in profile.files if f.path.endswith(end)]
    return found


def entry(name: str) -> dict:
    (found,) = [e for e in MANIFEST if e["name"] == name]
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(e["name"], marks=pytest.mark.slow if e["name"] in LONG else ())
        for e in MANIFEST
        if e["name"] not in BROKEN
    ],
)
@pytest.mark.sampled(18)
def test_counts_of_a_shared_trace_equal_its_reference(name, stores):
    profile = profile_of(TRACES / name, stores)
    refuse_contradictions(profile)
    stated = REFERENCE[name]
    steps = stated.get("steps", {name: stated})
    assert (
        sum(t.records for t in profile.traces)
        == sum(s["records_total"] for s in steps.values())
        == entry(name)["records"]
    )
    assert profile.workflow.processes == sum(s["ranks"] for s in steps.values())
    printed = sum(t.functions.get("vfprintf", 0) for t in profile.traces)
    for kind, side in (("read", "read"), ("written", "written")):
        counted = getattr(profile.workflow.io.bytes, side) + getattr(profile.excluded.io.bytes, side)
        wanted = sum(s[f"posix_bytes_{kind}_total"] for s in steps.values())
        # The reference leaves out vfprintf, whose lines are short.
        assert wanted <= counted <= wanted + 1024 * printed


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_undecodable_trace_is_refused_in_one_line(name, stores):
    with pytest.raises(TraceError) as error:
        vani.profile(TRACES / name, store=stores)
    assert "\n" not in str(error.value)


GROUND_TRUTH = [
    (e["name"], kind, truth["expected_from_program_arguments"])
    for e in MANIFEST
    for kind, truth in e.get("ground_truth_bytes", {}).items()
    if "expected_from_program_arguments" in truth and e["name"] not in LONG
]


@pytest.mark.parametrize(("name", "kind", "told"), GROUND_TRUTH)
@pytest.mark.sampled(20)
def test_bytes_match_the_arguments_of_the_program(name, kind, told, stores):
    io = profile_of(TRACES / name, stores).workflow.io
    assert (io.bytes.read if kind == "posix_bytes_read_total" else io.bytes.written) == told


# CM1 on Lassen


def test_cm1_has_the_files_bytes_and_writers_of_the_paper(stores):
    profile = profile_of(CM1, stores)
    # Table III: 737/37; 38 with /dev/null, which is not a data file.
    counts = profile.workflow.files
    assert (counts.total, counts.file_per_process, counts.shared) == (774, 737, 37)
    assert profile.workflow.processes == 1280
    io = profile.workflow.io
    assert (io.bytes.read, io.bytes.written) == (21_508_390_912, 1_230_852_944)
    assert (io.ops.read, io.ops.write) == (1282, 2303)
    assert io.ops.metadata + profile.excluded.io.ops.metadata == 23_878
    balance = profile.apps[0].balance
    assert (
        balance.reading_processes,
        balance.writing_processes,
        balance.busiest_rank,
        balance.slowest_rank,
    ) == (1280, 1, 0, 0)
    assert balance.slowest_io_time_s == pytest.approx(4.1151, abs=5e-4)
    # The paper: 664 s; the last call of the trace ends at 668.3056 s, the first begins at 0.4967 s.
    assert profile.workflow.runtime_s == pytest.approx(668.3056, abs=1e-4)


def test_every_rank_of_cm1_reads_one_small_file(stores):
    found = named(profile_of(CM1, stores), "namelist.input")
    assert (found.access, found.processes, found.role) == ("shared", 1280, "input")
    assert found.io.ops.read == 1281
    assert found.io.transfer_size.read.common == [(16 << 20, 1281)]
    assert found.io.footprint.read == 16 << 20
    assert found.io.past_end.read is None


def test_cm1_begins_with_the_reads_of_all_ranks(stores):
    profile = profile_of(CM1, stores)
    # One rank's clock is two seconds behind, which makes no phase. Opens take 99.9 % of its time.
    first, *others = profile.phases
    assert (first.kind, first.processes, first.count) == ("metadata", 1280, 1)
    assert first.io.ops.read == 1282
    assert first.io.bytes.read == 21_508_390_912
    assert all(p.io.ops.read == 0 for p in others)
    # README: 362 pauses above 1 s between writes, the first after the reads. One process writes.
    writing = [p for p in others if p.kind == "write"]
    assert [(p.processes, p.count) for p in writing] == [(1, 354)]
    assert sum(p.count for p in profile.phases) == 361


def test_cm1_spends_its_io_time_in_open(stores):
    profile = profile_of(CM1, stores)
    io = profile.workflow.io
    # Summed times by call: open 96.1763, write 0.5794, ftruncate 0.1636, close 0.0862, read 0.0396, stat 0.0454.
    assert io.time_s.read == pytest.approx(0.0396, abs=1e-4)
    assert io.time_s.write == pytest.approx(0.5794, abs=1e-4)
    assert io.time_s.metadata == pytest.approx(96.1763 + 0.1636 + 0.0862 + 0.0347 + 0.0107 + 0.0040, abs=0.01)
    assert io.time_share.metadata > 0.99


# Workflows


@pytest.mark.slow
def test_montage_is_a_graph_of_programs_reading_each_others_files(stores):
    profile = profile_of(TRACES / "v3-workflow-montage", stores)
    edges = {(d.producer, d.consumer): d.files for d in profile.workflow.app_dependencies}
    # MANIFEST: mProject -> mDiff -> mFitplane, mProject -> mBackground -> mAdd -> mShrink; 9 images with an
    # area each, 20 differences. Tables are printed and read line by line, which Recorder does not trace; the
    # opens around them show it. By the commands: raw.tbl, proj.tbl, corr.tbl of mImgtbl; template.hdr;
    # diffs.tbl; fits.tbl.
    assert edges == {
        ("mImgtbl", "mMakeHdr"): 1,
        ("mImgtbl", "mOverlaps"): 1,
        ("mImgtbl", "mBgModel"): 1,
        ("mImgtbl", "mAdd"): 1,
        ("mMakeHdr", "mProject"): 1,
        ("mMakeHdr", "mDiff"): 1,
        ("mMakeHdr", "mAdd"): 1,
        ("mOverlaps", "mFitExec"): 1,
        ("mFitExec", "mBgModel"): 1,
        ("mProject", "mImgtbl"): 9,
        ("mProject", "mDiff"): 18,
        ("mProject", "mBackground"): 18,
        ("mDiff", "mFitplane"): 20,
        ("mDiff", "mFitExec"): 20,
        ("mBackground", "mImgtbl"): 9,
        ("mBackground", "mAdd"): 18,
        ("mAdd", "mShrink"): 1,
    }
    assert {a.name: a.instances for a in profile.apps} == {
        "mImgtbl": 3,
        "mMakeHdr": 1,
        "mProject": 9,
        "mOverlaps": 1,
        "mDiff": 20,
        "mFitplane": 20,
        "mFitExec": 1,
        "mBgModel": 1,
        "mBackground": 9,
        "mAdd": 1,
        "mShrink": 1,
    }
    intermediate = {
        f.path.rsplit("/", 2)[-2] + "/" + f.path.rsplit("/", 1)[-1]
        for f in profile.files
        if f.role == "intermediate"
    }
    assert intermediate >= {f"proj/p2mass-atlas-00{i}{area}.fits" for i in range(9) for area in ("", "_area")}
    assert intermediate >= {f"corr/p2mass-atlas-00{i}{area}.fits" for i in range(9) for area in ("", "_area")}
    assert named(profile, "/mosaic.fits").role == "intermediate"
    assert sum(f.startswith("diff/") for f in intermediate) == 20
    assert {f.role for f in profile.files if "/raw/" in f.path} == {"input"}


@pytest.mark.slow
def test_output_of_montage_has_no_size_in_the_trace(stores):
    # mMakeHdr prints template.hdr, 302 B (comparison.csv), but the trace contains no write.
    assert named(profile_of(TRACES / "v3-workflow-montage", stores), "/template.hdr").size is None


def test_coupled_programs_depend_as_the_manifest_tells(stores):
    profile = profile_of(TRACES / "v3-workflow-coupled", stores)
    mib = 1 << 20
    apps = {a.name: a for a in profile.apps}
    sim, weather, analysis, resim = (apps[n] for n in ("sim", "weather", "analysis", "resim"))
    assert sim.io.bytes.written == 4 * (4 * 2 * mib + 4096)
    assert weather.io.bytes.written == 3 * 4 * 12 * 4 * 4096 + 9600
    assert weather.balance.writing_processes == 1
    assert analysis.io.bytes.read == 2 * (4096 + 2 * mib)
    assert resim.io.bytes.written == 6 * (4 * 2 * mib + 4096)
    assert resim.io.bytes.read == 4 * (4096 + 2 * mib)
    (link,) = profile.workflow.app_dependencies
    # The last checkpoint's header and the files of two ranks.
    assert (link.producer, link.consumer, link.files) == (sim.name, analysis.name, 3)
    # Every requested byte existed.
    assert profile.workflow.io.past_end.read == 0


# Access


def test_strided_ranks_are_strided_by_all_ranks_blocks(stores):
    profile = profile_of(TRACES / "v3-ior-ssf-posix-strided-4k-8r", stores)
    found = named(profile, "strided_4k.dat")
    assert found.stride == 8 * 4096
    assert found.io.access_pattern.strided == 1.0


@pytest.mark.parametrize(
    "name",
    ["v3-ior-ssf-posix-8r", "v3-noipc-ior-ssf-posix-8r", "v2-ipc-ior-ssf-posix-8r", "v3-haccio-ssf-8r"],
)
def test_a_shared_file_in_blocks_is_not_random(name, stores):
    io = profile_of(TRACES / name, stores).workflow.io
    # HACC-IO's rank 0 goes back once, to the header at the beginning.
    assert io.access_pattern.random <= 1 / 146
    # IOR -b 4m -t 1m -s 4: 3 of 4 transfers continue the previous one; HACC-IO: all others do.
    assert io.access_pattern.consecutive >= 0.75


def test_random_offsets_are_random(stores):
    assert profile_of(TRACES / "v3-ior-ssf-random-4k-8r", stores).workflow.io.access_pattern.random > 0.9


@pytest.mark.slow
def test_unfulfilled_bytes_of_half_a_million_small_accesses_are_a_lower_bound(stores):
    io = profile_of(TRACES / "v3-medium-smallio-8r", stores).workflow.io
    assert io.bytes.read == 1_892_485_040
    # comparison.csv: Darshan saw 343,584,512 B moved. 24 files are created and read and remain empty: a write
    # to them may have left no record, so their ends are unknown.
    assert 0 < io.past_end.read <= io.bytes.read - 343_584_512


def test_hdf5_transfers_are_collective_if_requested_of_mpiio(stores):
    # `ior -a HDF5 -c`: the trace contains no call that sets the mode, but each H5Dwrite is an
    # MPI_File_write_at_all.
    together = profile_of(TRACES / "v3-ior-hdf5-coll-8r", stores)
    alone = profile_of(TRACES / "v3-ior-ssf-hdf5-4r", stores)
    assert [[i.transfer for i in p.interfaces if i.layer == "hdf5"] for p in (together, alone)] == [["collective"], ["independent"]]
