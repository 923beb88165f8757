"""Look-ups of names by folder, search paths and locks. Lines are like those of real strace logs."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import vani
from tests.readers.strace_logs import written

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
has_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")

ABSENT = "= -1 ENOENT (No such file or directory) <0.000010>"
OPEN = 'openat(AT_FDCWD</run>, "/run/out", O_WRONLY|O_CREAT) = 3</run/out> <0.000010>'


def stat(path: str, kind: str = "S_IFREG|0644", took: str = "0.000020") -> str:
    return f'newfstatat(AT_FDCWD</run>, "{path}", {{st_mode={kind}, st_size=3, ...}}, 0) = 0 <{took}>'


def absent(path: str) -> str:
    return f'newfstatat(AT_FDCWD</run>, "{path}", 0x7ffc, 0) {ABSENT}'


def not_opened(path: str) -> str:
    return f'openat(AT_FDCWD</run>, "{path}", O_RDONLY|O_CLOEXEC) {ABSENT}'


def profile_of(folder: Path, *calls: str) -> vani.Profile:
    folder.mkdir(exist_ok=True)
    return vani.profile(written(folder, *(f"7 {call}" for call in (OPEN, *calls))))


def profile_of_case(name: str, folder: Path) -> vani.Profile:
    if (CASES / f"{name}.tgz").is_file():
        with tarfile.open(CASES / f"{name}.tgz") as archive:
            archive.extractall(folder, filter="data")
        return vani.profile(folder / name)
    return vani.profile(CASES / name)


def rows(profile: vani.Profile) -> dict[str, tuple[int, int | None, int]]:
    return {row.folder: (row.calls, row.failed, row.names) for row in profile.lookups}


def test_failed_opens_and_stats_count_for_their_folder(tmp_path):
    profile = profile_of(tmp_path, *[not_opened("/run/a/flag")] * 6, *[absent("/run/a/go")] * 5)
    (row,) = profile.lookups
    assert (row.folder, row.calls, row.failed, row.names, row.most) == ("/run/a", 11, 11, 2, 6)
    assert row.time_s == row.excluded_s == pytest.approx(11 * 10e-6)


def test_stats_of_names_that_are_never_opened_count_and_those_of_opened_files_do_not(tmp_path):
    never = [stat(f"/run/results/{name}.json") for name in "abcdef" for _ in range(2)]
    profile = profile_of(tmp_path, *never, *[stat("/run/out")] * 20)
    (row,) = profile.lookups
    assert (row.folder, row.calls, row.failed, row.names) == ("/run/results", 12, 0, 6)
    assert (row.time_s, row.excluded_s) == (pytest.approx(12 * 20e-6), 0.0)


def test_folders_with_few_look_ups_are_left_out(tmp_path):
    assert rows(profile_of(tmp_path / "9", *[absent("/run/a/flag")] * 9)) == {}
    assert rows(profile_of(tmp_path / "10", *[absent("/run/a/flag")] * 10)) == {"/run/a": (10, 10, 1)}


def test_other_errors_are_no_look_ups(tmp_path):
    denied = 'openat(AT_FDCWD</run>, "/run/a/x", O_RDONLY) = -1 EACCES (Permission denied) <0.000010>'
    assert rows(profile_of(tmp_path, *[denied] * 20)) == {}


def test_similar_folders_are_one_row(tmp_path):
    calls = [stat(f"/run/case_{i:03d}/done") for i in range(40) for _ in range(2)]
    (row,) = profile_of(tmp_path, *calls).lookups
    assert (row.folder, row.folders, row.calls, row.names, row.search_path) == ("/run/case_%03d", 40, 80, 40, None)


def test_a_search_path_has_its_folders_in_order(tmp_path):
    folders = ["/opt/z/lib", "/opt/y/lib", "/opt/x/lib"]
    tried = [not_opened(f"{folder}/lib{name}.so.1") for name in "abcd" for folder in folders]
    (row,) = profile_of(tmp_path, *tried).lookups
    assert (row.folder, row.folders, row.calls, row.search_path) == ("/opt", 3, 12, folders)


def test_names_other_than_libraries_and_modules_do_not_make_a_search_path(tmp_path):
    tried = [absent(f"/opt/{folder}/{name}.h5") for name in "abcd" for folder in "xyz"]
    assert all(row.search_path is None for row in profile_of(tmp_path, *tried).lookups)


def test_folders_that_python_stats_at_each_import_are_a_search_path(tmp_path):
    folders = [f"/sw/{name}" for name in "abc"]
    calls = [stat(folder, "S_IFDIR|0755") for _ in range(12) for folder in folders]
    modules = [
        f'openat(AT_FDCWD</run>, "{folder}/m{i}.py", O_RDONLY|O_CLOEXEC) = 4<{folder}/m{i}.py> <0.000010>'
        for i, folder in enumerate(folders)
    ]
    (row,) = profile_of(tmp_path / "modules", *modules, *calls).lookups
    assert (row.folder, row.calls, row.search_path) == ("/sw", 36, folders)
    assert all(row.search_path is None for row in profile_of(tmp_path / "data", *calls).lookups)


def test_locks_have_their_failures_by_error(tmp_path):
    lock = "fcntl(3</run/out>, {0}, {{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=8}})"
    profile = profile_of(
        tmp_path,
        f"{lock.format('F_SETLKW')} = 0 <0.500000>",
        *[f"{lock.format('F_SETLK')} = -1 EAGAIN (Resource temporarily unavailable) <0.000010>"] * 3,
        "fcntl(3</run/out>, F_GETFL) = 0x8001 (flags O_WRONLY) <0.000010>",
        "flock(3</run/out>, LOCK_EX|LOCK_NB) = -1 ENOLCK (No locks available) <0.000010>",
    )
    fcntl, flock = profile.locks
    assert (fcntl.call, fcntl.calls, fcntl.failed, fcntl.files) == ("fcntl", 4, {"EAGAIN": 3}, ["/run/out"])
    assert fcntl.time_s == pytest.approx(0.50003)
    assert (flock.call, flock.calls, flock.failed) == ("flock", 1, {"ENOLCK": 1})
    first, second = vani.advise(profile, system="generic-lustre").notes
    assert first.startswith("3 calls of fcntl failed with EAGAIN: another process has the lock; locks take 100 % of")
    assert "MPI-IO" not in first and "mount option flock" in second
    assert "would act on it" not in profile.summary(diagnosis=True)


def test_dftracer_records_which_calls_failed(tmp_path):
    def event(number: int, name: str, path: str, **args: int) -> str:
        own = {"id": number, "name": name, "cat": "POSIX", "pid": 7, "tid": 7, "ts": 100 * number, "dur": 5, "ph": "X"}
        return json.dumps(own | {"args": {"fname": path, **args}})

    missing = [event(i, "open64" if i % 2 else "__xstat", "/run/a/flag", ret=-1) for i in range(1, 13)]
    locks = [event(20 + i, "fcntl", "/run/out", cmd=6, ret=-i) for i in range(2)] + [
        event(30, "fcntl", "/run/out", cmd=3, ret=0)
    ]
    events = [event(0, "open64", "/run/out", flags=65, ret=3), *missing, *locks, event(40, "close", "/run/out", ret=0)]
    (tmp_path / "x.pfw").write_text("[\n" + "\n".join(events) + "\n]\n")
    profile = vani.profile(tmp_path / "x.pfw")
    assert rows(profile) == {"/run/a": (12, 12, 1)}
    assert [(lock.calls, lock.failed) for lock in profile.locks] == [(2, {"unknown": 1})]


def test_a_tracer_without_results_gives_no_failures():
    trace = Path(__file__).resolve().parents[1] / "data" / "traces" / "v3-netcdf-pnetcdf-4r"
    profile = vani.profile(trace)
    assert "lookups.failed" in profile.provenance
    quick = vani.profile(trace, quick=True)
    assert (quick.lookups, quick.locks) == (None, None)
    assert {"lookups", "locks"} <= set(quick.provenance)


@has_cases
def test_a_loader_that_searches_forty_folders(tmp_path):
    row = profile_of_case("library-search-strace", tmp_path).lookups[0]
    assert (row.folder, row.folders) == ("/scratch/run/sw", 40)
    assert row.calls == row.failed == 6 * (1220 + 400)
    assert row.search_path == [f"/scratch/run/sw/pkg{i}/lib" for i in range(1, 41)]


@has_cases
def test_look_ups_alone_can_matter(tmp_path):
    profile = profile_of_case("library-search-strace", tmp_path)
    screen, advice = profile.summary(), vani.advise(profile, system="generic-lustre")
    assert "9,720 look-ups of 1,460 names in 40 folders" in screen and "/scratch/run/sw" in screen
    assert (profile.verdict.where, profile.verdict.cause.count) == ("/scratch/run/sw", 9720)
    assert profile.verdict.matters != "no" and "nothing to do" not in screen
    (cure,) = [entry for entry in advice.recommendations if entry.rule == "FLD002"]
    assert cure.severity != "info" and "RPATH" in str(cure.apply) and "library_search" in cure.patterns


@has_cases
def test_a_program_that_looks_for_the_newest_of_600_checkpoints(tmp_path):
    row = profile_of_case("newest-checkpoint-strace", tmp_path).lookups[0]
    assert (row.folder, row.calls, row.failed, row.names) == ("/scratch/run/ckpt", 20 * 600, 0, 600)
    assert (row.listings, row.most, row.search_path) == (20, 20, None)


@has_cases
def test_the_first_screen_names_the_folder_whose_names_are_looked_up(tmp_path):
    profile = profile_of_case("newest-checkpoint-strace", tmp_path)
    assert profile.verdict.where == "/scratch/run/ckpt"
    assert "12,000 look-ups of 600 names, 84 % of the I/O time: /scratch/run/ckpt" in " ".join(profile.summary().split())
    advice = vani.advise(profile, system="generic-lustre")
    cure = next(entry for entry in advice.recommendations if entry.rule != "MAT001")
    assert (cure.rule, cure.target.path) == ("POS003", "/scratch/run/ckpt") and "names only" in str(cure.apply)


@has_cases
def test_the_length_of_mappings_bounds_what_they_moved(tmp_path):
    profile = profile_of_case("mapped-weights-strace", tmp_path)
    (mapped,) = profile.unseen
    assert (mapped.kind, mapped.count, mapped.bytes) == ("memory_mapped", 1, 4 * 209_715_200)
    assert profile.workflow.io.bytes.read < 2_000_000
    assert "POS003" not in {entry.rule for entry in vani.advise(profile, system="generic-lustre").recommendations}


@has_cases
def test_time_in_locks_has_its_cause(tmp_path):
    profile = profile_of_case("hdf5-flush-strace", tmp_path)
    assert [(lock.call, lock.calls, lock.failed) for lock in profile.locks] == [("fcntl", 2 * 252, {})]
    screen = " ".join(profile.summary(diagnosis=True).split())
    assert "locks take 19 % of the I/O time (fcntl: 504 calls)" in screen and "romio_ds_write disable" in screen
    assert "locking, 19 % of the I/O time" in screen
    (note,) = vani.advise(profile, system="generic-lustre").notes
    assert note.startswith("Locks take 19 %") and note.endswith(").")


@has_cases
def test_a_tracer_without_results_does_not_know_which_locks_failed(tmp_path):
    profile = profile_of_case("indep-recorder", tmp_path)
    assert {lock.failed for lock in profile.locks} == {None} and "locks.failed" in profile.provenance


@has_cases
def test_locks_on_files_of_mpi_itself_are_not_the_programs(tmp_path):
    assert profile_of_case("ompvind-recorder", tmp_path).locks == []


@has_cases
def test_pythons_that_import_from_a_shared_folder(tmp_path):
    row = profile_of_case("pystart-strace", tmp_path).lookups[0]
    assert row.folder == "/lustre/sw/env/lib/python3.11/**" and row.calls > 9000
    assert "/lustre/sw/env/lib/python3.11/site-packages" in row.search_path


@has_cases
def test_darshan_counts_stats_of_files_that_were_never_opened():
    profile = vani.profile(CASES / "imbalanced-io.darshan")
    (row,) = profile.lookups
    assert (row.folder, row.calls, row.names, row.failed, row.most) == ("/lus/theta-fs0", 1008, 1008, None, 1)
    # POSIX_F_META_TIME of these 1,008 records.
    assert row.time_s == pytest.approx(0.1716, abs=1e-4)
    assert (profile.locks, profile.provenance["locks"]) == (None, "the source counts no locks")
