"""Darshan logs and texts that miss I/O or lack counters are described correctly."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from traces.darshan_writer import MPIIO, POSIX, STDIO, Layout, Log, Record, log_bytes

import vani
from vani.errors import InputError

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
HEAD = (
    "# darshan log version: 3.41\n# exe: /opt/ior -w\n# uid: 1001\n# jobid: 77\n# start_time: 1725936007\n# nprocs: 4\n"
    "# run time: 10.5\n# metadata: lib_ver = 3.4.4\n# metadata: h = romio_no_indep_rw=true;cb_nodes=4\n"
    "# mount entry:\t/lustre\tlustre\n"
)
COUNTERS = {"OPENS": 4, "WRITES": 8, "BYTES_WRITTEN": 8192, "SIZE_WRITE_100_1K": 8, "F_WRITE_TIME": 2.5}



def counters(module: str = "POSIX", **changes: object) -> str:
    rows = (COUNTERS | changes).items()
    return "".join(f"{module}\t-1\t17\t{module}_{name}\t{value}\t/lustre/out\t/lustre\tlustre\n" for name, value in rows)


def log_at(path: Path, **parts: object) -> Path:
    log = Log(exe="/opt/app -n 3", processes=4, start_s=1_700_000_000, runtime_s=20.0, uid=4711, job_id=9, **parts)
    path.write_bytes(log_bytes(log))
    return path


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("total_POSIX_OPENS: 32\ntotal_POSIX_READS: 0\n", "darshan-parser --total"),
        ("# WARNING: STDIO_OPEN\nS counter includes STDIO_FDOPENS count\n\ntotal_POSIX_OPENS: 3\n", "darshan-parser --total"),
        ("# performance\n# -----------\n# total_bytes: 134217728\n#\n# I/O timing for unique files (seconds):\n", "darshan-parser --perf"),
        ("# files\n# -----\n# total: 1 134217728 134217728\n# read_only: 0 0 0\n", "darshan-parser --file"),
        ("# Per-file summary of I/O activity.\n# -----\n", "darshan-parser --file-list"),
        ("# no DXT module data available for this Darshan log.\n", "darshan-dxt-parser"),
        ("# DXT, file_id: 17, file_name: /lustre/out\n X_POSIX\t0\twrite\t0\t0\t1024\t0.1\t0.2\n", "darshan-dxt-parser"),
    ],
)  # fmt: skip
def test_text_without_counters_is_named_by_the_command_that_printed_it(tmp_path, text, command):
    (tmp_path / "a.txt").write_text(HEAD + text)
    with pytest.raises(InputError, match=f"is text of `{command}` of the run of /opt/ior") as refused:
        vani.profile(tmp_path / "a.txt")
    assert "darshan-parser LOG > FILE" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_text_with_only_a_header_is_not_a_run_without_io(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD)
    with pytest.raises(InputError, match="is the head of a printed Darshan log of the run of /opt/ior, without a counter"):
        vani.profile(tmp_path / "a.txt")


@pytest.mark.parametrize("name", ["a.txt", "a.darshan", "a.log"])
def test_empty_file_is_called_empty(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(InputError, match="is an empty file"):
        vani.profile(tmp_path / name)


@pytest.mark.parametrize(
    "case", ["dxt-text-without-segments.txt", "lammps-cnt.dxt.txt", "darshan-parser-total.txt"]
)
def test_texts_that_users_sent_are_refused(case):
    if not (CASES / case).is_file():
        pytest.skip(f"{case} is not here")
    with pytest.raises(InputError, match=r"is text of `darshan-(dxt-parser|parser --total)` of the run of"):
        vani.profile(CASES / case)


def test_additional_sums_do_not_change_counters(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD + counters())
    (tmp_path / "b.txt.gz").write_bytes(
        gzip.compress((HEAD + counters() + "total_POSIX_OPENS: 4\n# performance\n").encode())
    )
    assert vani.profile(tmp_path / "b.txt.gz").workflow == vani.profile(tmp_path / "a.txt").workflow


def test_warning_that_splits_a_comment_does_no_harm(tmp_path):
    split = "# WARNING: STDIO_OPEN# Warning: no log utility handlers defined\nS counter includes STDIO_FDOPENS count\n"
    (tmp_path / "a.txt").write_text(HEAD + counters() + split)
    assert vani.profile(tmp_path / "a.txt").workflow.io.bytes.written == 8192


def test_uncounted_file_leaves_the_verdict_open(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD + "# no module data available.\n")
    profile = vani.profile(tmp_path / "a.txt")
    assert [entry.kind for entry in profile.unseen] == ["module_off"]
    assert (profile.verdict.matters, profile.verdict.share) == ("open", None)
    assert profile.verdict.sentence.startswith("The log counts no call on a file")


def test_mpiio_files_without_posix_counts_show_that_posix_was_off(tmp_path):
    written = Record(MPIIO, "/scratch/a", -1, {"COLL_WRITES": 40, "BYTES_WRITTEN": 1 << 22, "F_WRITE_TIME": 8.0})
    profile = vani.profile(log_at(tmp_path / "a.darshan", records=[written]))
    (entry,) = profile.unseen
    assert (entry.kind, entry.files, entry.count) == ("module_off", ["/scratch/a"], 1)
    assert "DARSHAN_MOD_ENABLE=POSIX" in entry.see_with
    assert profile.verdict.matters == "open"


def test_stripes_of_a_file_without_counts_show_that_posix_was_off(tmp_path):
    profile = vani.profile(log_at(tmp_path / "a.darshan", layouts=[Layout("/scratch/a", 4, 1 << 20)]))
    assert [(entry.kind, entry.files) for entry in profile.unseen] == [("module_off", ["/scratch/a"])]


DFS = [*(CASES.parent / "data/darshan-logs/ior_daos").glob("snyder_ior-DFS*.darshan")]


@pytest.mark.parametrize("log", DFS, ids=lambda log: log.name[:10])
def test_records_that_vani_does_not_read_leave_the_verdict_open(log):
    """IOR on DAOS makes no call on a file, and its I/O is in the records of DFS."""
    profile = vani.profile(log)
    (entry,) = profile.unseen
    assert (entry.kind, entry.count, profile.verdict.matters) == ("module_off", 2, "open")
    assert profile.verdict.sentence.startswith("I/O by DFS and DAOS is in the log") and "nothing to do" not in profile.summary()


def test_program_using_only_streams_misses_nothing(tmp_path):
    read = Record(STDIO, "/scratch/in", 0, {"OPENS": 1, "READS": 40, "BYTES_READ": 1 << 22, "F_READ_TIME": 0.1})
    printed = Record(STDIO, "<STDOUT>", 0, {"WRITES": 3, "BYTES_WRITTEN": 30})
    assert vani.profile(log_at(tmp_path / "a.darshan", records=[read, printed])).unseen == []
    alone = vani.profile(log_at(tmp_path / "b.darshan", records=[printed]))
    assert [entry.kind for entry in alone.unseen] == ["module_off"]


@pytest.mark.parametrize(
    ("module", "most_s", "matters"), [("POSIX", None, "yes"), ("STDIO", None, "yes"), ("MPI-IO", 0.0, "yes")]
)
def test_module_that_ran_out_of_memory_is_named(tmp_path, module, most_s, matters):
    warning = f"# *ERROR*: The {module} module contains incomplete data!\n"
    (tmp_path / "a.txt").write_text(HEAD + warning + counters())
    profile = vani.profile(tmp_path / "a.txt")
    (entry,) = profile.unseen
    assert (entry.kind, entry.count, entry.most_s) == ("module_partial", 1, most_s)
    assert entry.cause.startswith(f"{module} dropped records")
    assert "DARSHAN_MODMEM" in entry.see_with
    assert (profile.verdict.matters, profile.verdict.is_lower_bound) == (matters, most_s is None)


def test_names_omitted_according_to_a_header_are_reported(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD + "# metadata: DARSHAN_EXCLUDE_DIRS = /scratch/in,/data\n" + counters())
    (entry,) = vani.profile(tmp_path / "a.txt").unseen
    assert (entry.kind, entry.count) == ("names_excluded", 2)
    assert "/scratch/in, /data" in entry.cause


# The header
def test_job_user_and_command_are_in_the_profile(tmp_path):
    written = Record(POSIX, "/scratch/a", -1, {"OPENS": 4, "WRITES": 40, "BYTES_WRITTEN": 1 << 22, "F_WRITE_TIME": 8.0})
    profile = vani.profile(log_at(tmp_path / "a.darshan", records=[written]))
    assert (profile.job.id, profile.job.user, profile.job.command) == ("9", "4711", "/opt/app -n 3")
    assert profile.provenance["job.user"] == "the log's header"


def test_text_shows_job_user_and_command(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD + counters())
    job = vani.profile(tmp_path / "a.txt").job
    assert (job.id, job.user, job.command) == ("77", "1001", "/opt/ior -w")


@pytest.mark.parametrize(("passed", "hints"), [(0, {}), (3, None), (-1, None)])
def test_hints_of_the_log_are_not_those_of_the_program(tmp_path, passed, hints):
    text = counters("MPIIO", HINTS=passed).replace("MPIIO\t", "MPI-IO\t")
    (tmp_path / "a.txt").write_text(HEAD + counters() + text)
    profile = vani.profile(tmp_path / "a.txt")
    (mpiio,) = (interface for interface in profile.interfaces if interface.layer == "mpiio")
    assert mpiio.hints == hints
    why = "MPI_Info_set is in no record" if passed < 0 else f"Darshan counts {passed} opens and views with hints, not which"
    assert profile.provenance["interfaces.hints"].startswith(why)


def test_logs_of_several_jobs_have_no_single_job(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD + counters())
    (tmp_path / "b.txt").write_text(HEAD.replace("jobid: 77", "jobid: 78") + counters())
    profile = vani.profile(tmp_path / "a.txt", tmp_path / "b.txt")
    assert (profile.job.id, profile.job.user) == (None, "1001")
    assert profile.provenance["job.id"] == "the traces have 2 of them"


# Mounts and targets


def on_target(rank: int, target: int, write_s: float) -> str:
    values = {"OPENS": 1, "WRITES": 8, "BYTES_WRITTEN": 8192, "SIZE_WRITE_100_1K": 8, "F_WRITE_TIME": write_s}
    name = f"/lustre/out.{rank}\t/lustre\tlustre\n"
    lustre = {"OSTS": 24, "STRIPE_SIZE": 1048576, "STRIPE_WIDTH": 1, "OST_ID_0": target}
    return "".join(f"POSIX\t{rank}\t{rank + 20}\tPOSIX_{n}\t{v}\t{name}" for n, v in values.items()) + "".join(
        f"LUSTRE\t{rank}\t{rank + 20}\tLUSTRE_{n}\t{v}\t{name}" for n, v in lustre.items()
    )


def test_targets_of_files_are_in_the_profile_slowest_first(tmp_path):
    files = [on_target(0, 3, 1.0), on_target(1, 7, 9.0), on_target(2, 3, 3.0)]
    (tmp_path / "a.txt").write_text(HEAD + "".join(files))
    (mount,) = vani.profile(tmp_path / "a.txt").storage.mounts
    assert (mount.dir, mount.type, mount.targets, mount.used_targets) == ("/lustre", "lustre", 24, 2)
    assert [(use.target, use.files, use.bytes, use.write_s) for use in mount.slowest_targets] == [
        (7, 1, 8192, 9.0),
        (3, 2, 16384, 2.0),
    ]
    assert mount.median_write_s == 5.5


def test_targets_of_a_file_are_read_from_the_log(tmp_path):
    written = Record(POSIX, "/scratch/a", -1, {"OPENS": 4, "WRITES": 40, "BYTES_WRITTEN": 1 << 22, "F_WRITE_TIME": 8.0})
    log = log_at(tmp_path / "a.darshan", records=[written], layouts=[Layout("/scratch/a", 4, 1 << 20)])
    (mount,) = vani.profile(log).storage.mounts
    assert (mount.dir, mount.type, mount.used_targets, mount.targets) == ("/scratch", "lustre", 4, None)
    assert {use.bytes for use in mount.slowest_targets} == {1 << 20}


def test_mount_that_covers_others_gives_no_type(tmp_path):
    table = "# mount entry:\t/lustre\tautofs\n"
    head = HEAD.replace("# mount entry:\t/lustre\tlustre\n", "# mount entry:\t/lustre\tWekaFS\n" + table)
    (tmp_path / "a.txt").write_text(head + counters())
    profile = vani.profile(tmp_path / "a.txt", system="generic-lustre")
    assert [(mount.dir, mount.type) for mount in profile.storage.mounts] == [("/lustre", "wekafs")]
    (tmp_path / "b.txt").write_text(HEAD.replace("# mount entry:\t/lustre\tlustre\n", table) + counters())
    assert vani.profile(tmp_path / "b.txt").storage.mounts == []


# Conclusions from the counts


def test_flushes_are_named_with_the_writes_sharing_their_time(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD + counters(WRITES=100, FSYNCS=104, F_WRITE_TIME=20.0))
    profile = vani.profile(tmp_path / "a.txt")
    assert profile.verdict.cause.sentence == "write and flush: 104 flushes for 100 writes, nearly all of the I/O time."
    rules = {advice.rule: advice for advice in vani.advise(profile, system="generic-lustre").recommendations}
    assert rules["POS010"].recommended["flushes"] == "once per file"


def test_metadata_operations_are_distinguished_by_number(tmp_path):
    (tmp_path / "a.txt").write_text(HEAD + counters(OPENS=40, STATS=120, SEEKS=10, F_META_TIME=20.0))
    cause = vani.profile(tmp_path / "a.txt").verdict.cause
    assert cause.sentence.startswith("open, stat, close and seek: 120 stats, 40 opens, 10 seeks, 89 %")


def test_target_with_much_slower_files_is_named(tmp_path):
    # Two files on each of six targets; those on target 5 take 90 s each.
    files = [on_target(rank, rank % 6, 90.0 if rank % 6 == 5 else 1.5) for rank in range(12)]
    head = HEAD.replace("nprocs: 4", "nprocs: 12").replace("run time: 10.5", "run time: 100")
    (tmp_path / "a.txt").write_text(head + "".join(files))
    advice = vani.advise(vani.profile(tmp_path / "a.txt"), system="generic-lustre")
    (slow,) = (one for one in advice.recommendations if one.rule == "LUS009")
    assert slow.current["slow_target"] == 5
    assert "OST 5 of /lustre take 60 times as long" in slow.reason
    assert {one.rule: one.why for one in advice.no_recommendation}["POS006"].endswith("waits for OST 5: see LUS009")


@pytest.mark.parametrize(
    ("case", "rule", "part"),
    [("slow-ost.txt.gz", "LUS009", "OST 14"), ("ior-fsync-each.txt", "POS010", "25,604 flushes for 25,600 writes")],
)
def test_first_advice_on_a_log_that_users_sent(case, rule, part):
    if not (CASES / case).is_file():
        pytest.skip(f"{case} is not here")
    advice = vani.advise(vani.profile(CASES / case), system="generic-lustre")
    first = next(one for one in advice.recommendations if one.rule != "MAT001")
    assert first.rule == rule
    assert part in first.reason
