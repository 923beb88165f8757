"""The output of darshan-parser is read like the log itself."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

import vani
from benchmarks.processes import run
from vani.errors import TraceError

LABELLED = Path(__file__).parents[2].parent / "shared" / "data" / "io500-trace-ds"
HEAD = (
    "# darshan log version: 3.41\n# exe: /opt/ior -w\n# start_time: 1725936007\n# nprocs: 4\n# run time: 10.5\n"
    "# mount entry:\t/lustre\tlustre\n"
)
COUNTERS = {
    "POSIX_OPENS": 4, "POSIX_WRITES": 8, "POSIX_BYTES_WRITTEN": 8192, "POSIX_MAX_BYTE_WRITTEN": 8191,
    "POSIX_SIZE_WRITE_100_1K": 8, "POSIX_ACCESS1_ACCESS": 1024, "POSIX_ACCESS1_COUNT": 8, "POSIX_F_WRITE_TIME": "2.500",
}  # fmt: skip


def line(module: str, counter: str, value: object, name: str = "/lustre/out file", rank: int = -1) -> str:
    return f"{module}\t{rank}\t17\t{counter}\t{value}\t{name}\t/lustre\tlustre\n"


def printed(**changes: object) -> str:
    text = HEAD + "".join(line("POSIX", name, value) for name, value in (COUNTERS | changes).items())
    return text + line("LUSTRE", "LUSTRE_STRIPE_SIZE", 1048576) + line("LUSTRE", "LUSTRE_STRIPE_WIDTH", 2)


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_printed_counters_give_the_profile_of_the_log(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    content = printed().encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    profile = vani.profile(path)
    (trace,), (file,) = profile.traces, profile.files
    assert (trace.tool, trace.format, trace.layout, trace.app) == ("darshan", "3.41", "darshan-parser", "ior")
    assert (profile.workflow.processes, profile.workflow.runtime_s) == (4, 10.5)
    assert (file.path, file.opens, file.size, file.stripe_count) == ("/lustre/out file", 4, 8192, 2)
    assert file.io.transfer_size.write.common == [(1024, 8)]
    assert profile.workflow.io.time_s.write == 2.5
    assert profile.storage.shared.type == "lustre"


def test_components_of_newer_logs_are_layouts(tmp_path):
    parts = {"1_EXT_START": 0, "1_EXT_END": 4096, "1_STRIPE_COUNT": 1, "1_STRIPE_SIZE": 65536,
             "2_EXT_START": 4096, "2_EXT_END": -1, "2_STRIPE_COUNT": 8, "2_STRIPE_SIZE": 131072}  # fmt: skip
    text = HEAD + "".join(line("POSIX", name, value) for name, value in COUNTERS.items())
    text += "".join(line("LUSTRE", f"LUSTRE_COMP{name}", value) for name, value in parts.items())
    (tmp_path / "a.txt").write_text(text)
    (file,) = vani.profile(tmp_path / "a.txt").files
    assert (file.stripe_count, file.stripe_size, file.components) == (8, 131072, 2)


def test_module_with_dropped_records_is_a_problem(tmp_path):
    (tmp_path / "a.txt").write_text(
        "# darshan log version: 3.41\n# *WARNING*: The POSIX module contains incomplete data!\n" + printed()
    )
    assert "records were dropped" in vani.profile(tmp_path / "a.txt").traces[0].problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (printed()[:-120], "line 15 is not a counter of a record"),
        (HEAD.replace("nprocs", "n") + line("POSIX", "POSIX_OPENS", 1), "its head does not contain 'nprocs'"),
        (HEAD.replace("nprocs: 4", "nprocs: 0") + line("POSIX", "POSIX_OPENS", 1), "claims 0 processes"),
        (HEAD.replace("10.5", "-3") + line("POSIX", "POSIX_OPENS", 1), "claims to have run for -3 s"),
        (printed(POSIX_OPENS="many"), "POSIX_OPENS: invalid literal"),
        (printed() + line("POSIX", "POSIX_OPENS", 1, rank=1), "a record of POSIX lacks some of its counters"),
        (printed() + "a\nb", r"line 17 is not a counter of a record: 'a'"),
        (HEAD + line("POSIX", "POSIX_OPENS", 1, rank=9), "has a record of rank 9 of 4"),
    ],
)
def test_impossible_text_is_refused_in_one_line(tmp_path, text, said):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(TraceError, match=said) as caught:
        vani.profile(tmp_path / "a.txt")
    assert "\n" not in str(caught.value)


def test_truncated_compressed_text_is_refused_in_one_line(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(printed().encode())[:-20])
    with pytest.raises(TraceError, match=r"is damaged text of darshan-parser: .*; print the log again"):
        vani.profile(tmp_path / "a.txt.gz")


@pytest.mark.skipif(not LABELLED.is_dir(), reason="the shared logs are not here")
@pytest.mark.parametrize(
    ("name", "joins"),
    [
        (
            "ior-easy/ior-easy_api_POSIX_blockSize_1GB_transferSize_1MB_filePerProc_False_uniqueDir_True__0",
            False,
        ),
        (
            "ior-easy/ior-easy_api_MPIIO_blockSize_1GB_transferSize_1MB_filePerProc_False_uniqueDir_True__0",
            False,
        ),
        ("ior-hard/ior-hard_api_POSIX_segmentCount_100000_collective_False__0", True),
        ("ior-hard/ior-hard_api_MPIIO_segmentCount_100000_collective_False__0", True),
    ],
)
def test_only_labelled_runs_get_advice_on_small_requests(name, joins):
    advice = vani.advise(vani.profile(LABELLED / f"{name}.txt.gz"), system="generic-lustre")
    found = {one.rule for one in advice.recommendations} & {"POS002", "POS009", "MIO001"}
    assert bool(found) is joins


@pytest.mark.skipif(not LABELLED.is_dir(), reason="the shared logs are not here")
def test_reads_through_mpi_io_are_not_counted_as_data_sieving():
    name = "ior-easy/ior-easy_api_MPIIO_blockSize_1GB_transferSize_1MB_filePerProc_False_uniqueDir_True__0.txt.gz"
    advice = vani.advise(vani.profile(LABELLED / name), system="generic-lustre")
    assert "MIO003" not in {one.rule for one in advice.recommendations}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"POSIX_READS": 0, "POSIX_BYTES_READ": 8192}, "bytes read by no call"),
        ({"POSIX_READS": -1, "POSIX_BYTES_READ": 8192}, "bytes read by no call"),
        ({"POSIX_BYTES_READ": 8192}, "bytes read by no call"),
        ({"POSIX_WRITES": 0, "POSIX_SIZE_WRITE_100_1K": 0}, "bytes written by no call"),
        ({"POSIX_SIZE_WRITE_100_1K": 9}, "sizes of more calls than have written"),
    ],
)
def test_contradictory_record_is_named_and_its_values_are_left_out(tmp_path, changes, problem):
    # Formerly "self-check failed, please report", status 3.
    (tmp_path / "a.txt").write_text(printed(**changes))
    profile = vani.profile(tmp_path / "a.txt")
    (trace,), (file,) = profile.traces, profile.files
    assert not trace.complete
    if "no call" in problem:
        side = problem.split()[1]
        assert getattr(file.io.bytes, side) is file.io.bytes.total is getattr(file.io.footprint, side) is None
    else:
        assert file.io.transfer_size.write is None
    attribute = "files.io.bytes" if "no call" in problem else "files.io.transfer_size"
    assert "contradict themselves" in profile.provenance[attribute]
    assert any(
        text.startswith("the POSIX record of /lustre/out file contradicts itself") and problem in text
        for text in trace.problems
    )


def test_counters_that_darshan_does_not_have_are_not_counted(tmp_path):
    (tmp_path / "a.txt").write_text(printed() + line("STDIO", "STDIO_OPENS", 1) + line("STDIO", "STDIO_STATS", 4096))
    assert vani.profile(tmp_path / "a.txt").workflow.io.ops.metadata == 5


@pytest.mark.parametrize("value", [(1 << 60) + 1, 1 << 62, (1 << 63) - 1, 1 << 64])
@pytest.mark.parametrize("counter", sorted(name for name in COUNTERS if "_F_" not in name))
def test_counter_beyond_every_run_is_unknown_with_a_problem_that_names_its_record(tmp_path, counter, value):
    (tmp_path / "a.txt").write_text(printed(**{counter: value}))
    profile = vani.profile(tmp_path / "a.txt")
    (trace,), (file,) = profile.traces, profile.files
    beyond = f"{counter} of /lustre/out file is more than a run can reach: unknown, and left out of its sums"
    assert (trace.complete, beyond in trace.problems) == (False, True)
    assert (file.io.bytes.written is None) == (counter == "POSIX_BYTES_WRITTEN")
    assert (file.size is None) == (counter in {"POSIX_MAX_BYTE_WRITTEN", "POSIX_BYTES_WRITTEN"})
    assert (file.io.footprint.written is None) == (file.size is None)
    assert (file.io.transfer_size.write is None) == (counter in {"POSIX_WRITES", "POSIX_SIZE_WRITE_100_1K"})
    assert profile.workflow.io.ops.all <= 12


def test_sizes_of_an_exbibyte_are_believed_until_their_sum_is_beyond_64_bits(tmp_path):
    largest = {"POSIX_BYTES_WRITTEN": 1 << 60, "POSIX_MAX_BYTE_WRITTEN": (1 << 60) - 1}
    (tmp_path / "a.txt").write_text(printed(**largest))
    assert vani.profile(tmp_path / "a.txt").workflow.io.bytes.written == 1 << 60
    text = printed(**largest)
    for rank in range(4):
        text += "".join(line("POSIX", name, value, rank=rank) for name, value in (COUNTERS | largest).items())
    (tmp_path / "b.txt").write_text(text)
    with pytest.raises(TraceError, match="its counters add up to more than can be counted"):
        vani.profile(tmp_path / "b.txt")


@pytest.mark.slow
def test_a_compressed_bomb_takes_little_more_memory_than_a_small_log(tmp_path):
    # Formerly 4.2 GiB for a file of 1 MB.
    with gzip.open(tmp_path / "bomb.txt.gz", "wb") as file:
        file.write(HEAD.encode())
        for rank in range(4):
            for name, value in COUNTERS.items():
                file.write(line("POSIX", name, value, rank=rank).encode() * 15_000)
    command = [sys.executable, "-m", "vani", "profile", str(tmp_path / "bomb.txt.gz"), "-q", "-o", str(tmp_path / "p.yaml")]
    # A child that this process starts itself counts this process's own memory as its peak.
    done = run(command)
    assert (done.outcome, (tmp_path / "bomb.txt.gz").stat().st_size < 1 << 20) == ("done", True)
    # The text has 30 MB.
    assert done.peak_bytes < 300 << 20, done
