"""Traces in a strace log of data that moves without a call. Lines are from real logs."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

import vani
from tests.preload.building import compiler
from tests.readers.strace_logs import read, strace_or_skip, written
from vani.collect.tracing.line import STRACE
from vani.readers import open_trace
from vani.readers.strace import MARK
from vani.readers.strace.system_calls import WANTED

OPEN = 'openat(AT_FDCWD</run>, "a.dat", O_RDWR|O_CREAT) = 3</run/a.dat> <0.000377>'
REQUEST = (
    "{{aio_data=0, aio_lio_opcode=IOCB_CMD_{0}, aio_fildes=3</run/a.dat>, aio_buf={1}, aio_nbytes={2}, aio_offset={3}}}"
)

ON_ONE_HOST = ("one_host", [], 1)
"""The fact that strace sees the processes of one host."""


def test_requests_of_libaio_are_reads_and_writes(tmp_path):
    two = ", ".join(
        [REQUEST.format("PWRITE", '""...', 262144, 0), REQUEST.format("PREAD", "0x7f998dd6d000", 4096, 262144)]
    )
    vector = (
        "{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITEV, aio_fildes=3</run/a.dat>, "
        'aio_buf=[{iov_base=""..., iov_len=30}, {iov_base=""..., iov_len=12}], aio_offset=500}'
    )
    sync = "{aio_data=0, aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=3</run/a.dat>}"
    log = read(
        written(
            tmp_path,
            f"7 {OPEN}",
            f"7 io_submit(0x7f998e05b000, 2, [{two}]) = 2 <0.000200>",
            # The kernel accepted only the first.
            f"7 io_submit(0x7f998e05b000, 2, [{two}]) = 1 <0.000100>",
            f"7 io_submit(0x7f998e05b000, 1, [{vector}]) = 1 <0.000100>",
            f"7 io_submit(0x7f998e05b000, 1, [{sync}]) = 1 <0.000100>",
            f"7 io_submit(0x7f998e05b000, 1, [{two}]) = -1 EAGAIN (Resource temporarily unavailable) <0.000100>",
            "7 +++ exited with 0 +++",
        )
    )
    assert log.rows[1:] == [
        (0, "io_submit:write", "/run/a.dat", 0, 262144),
        (0, "io_submit:read", "/run/a.dat", 262144, 4096),
        (0, "io_submit:write", "/run/a.dat", 0, 262144),
        (0, "io_submit:write", "/run/a.dat", 500, 42),
        (0, "io_submit:sync", "/run/a.dat", None, None),
    ]
    assert log.table["duration_ns"].to_pylist()[1:3] == [100_000, 100_000]
    assert (log.reader.facts(), log.reader.problems) == ([ON_ONE_HOST], [])


def test_calls_that_hide_their_data_are_counted(tmp_path):
    log = read(
        written(
            tmp_path,
            f"7 {OPEN}",
            "7 io_uring_setup(8, {flags=0}) = 4<anon_inode:[io_uring]> <0.000100>",
            "7 io_uring_enter(4<anon_inode:[io_uring]>, 1, 0, 0, NULL, 8) = 1 <0.000100>",
            "7 io_uring_enter(4<anon_inode:[io_uring]>, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 0 <0.000100>",
            "7 io_submit(0x7f998e05b000, 1, [...]) = 1 <0.000100>",
            "7 +++ exited with 0 +++",
        )
    )
    assert sorted(log.reader.facts()) == [
        ("io_submit", ["undecoded"], 1),
        ("io_uring_enter", [], 2),
        ("io_uring_setup", [], 1),
        ON_ONE_HOST,
    ]
    assert log.reader.problems == [
        "4 calls of io_uring or io_submit: reads and writes through them are not recorded"
    ]
    assert [row[1] for row in log.rows] == [
        "openat",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_enter",
        "io_submit",
    ]


def test_maps_of_the_data_sets_files_are_facts(tmp_path):
    shared = "PROT_READ|PROT_WRITE, MAP_SHARED, 3</run/a.dat>"
    reader = open_trace(
        written(
            tmp_path,
            f"7 {OPEN}",
            f"7 mmap(NULL, 8192, {shared}, 0) = 0x7efd27563000 <0.000014>",
            f"7 mmap(NULL, 8192, {shared}, 0x2000) = 0x7efd27565000 <0.000014>",
            f"7 mmap(NULL, 8192, {shared}, 0x4000) = -1 ENODEV (No such device) <0.000014>",
            "7 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3</run/a.dat>, 0) = 0x7efd27567000 <0.000014>",
            "7 mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE, 3</run/a.dat>, 0) = 0x7efd27567000 <0.000014>",
            "7 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 4</opt/lib/x>, 0) = 0x7efd27569000 <0.000014>",
            "7 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 4</usr/lib/locale/C.utf8/LC_CTYPE>, 0) = 0x7efd <0.000014>",
        )
    )
    assert reader.facts() == [
        ON_ONE_HOST,
        ("mmap", ["NULL", "8192", "shared_write", "/run/a.dat"], 2),
        ("mmap", ["NULL", "8192", "read", "/run/a.dat"], 1),
    ]


def test_a_flush_of_mapped_memory_belongs_to_the_mapped_file(tmp_path):
    a, b = (f"PROT_READ|PROT_WRITE, MAP_SHARED, {n}</run/{name}>" for n, name in ((3, "a.dat"), (4, "b.dat")))
    log = written(
        tmp_path,
        f"7 {OPEN}",
        '7 openat(AT_FDCWD</run>, "/run/b.dat", O_RDWR) = 4</run/b.dat> <0.000010>',
        f"7 mmap(NULL, 8192, {a}, 0) = 0x7efd27563000 <0.000014>",
        f"7 mmap(NULL, 4096, {b}, 0) = 0x7efd27565000 <0.000014>",
        *["7 msync(0x7efd27564000, 4096, MS_SYNC) = 0 <0.001000>"] * 2,
        "7 msync(0x7efd27565000, 4096, MS_SYNC) = 0 <0.003000>",
        # No shared mapping has this address.
        "7 msync(0x7efd27566000, 4096, MS_SYNC) = 0 <0.005000>",
        # The address is that of another file from here on.
        f"7 mmap(NULL, 8192, {b}, 0) = 0x7efd27563000 <0.000014>",
        "7 msync(0x7efd27564000, 4096, MS_SYNC) = 0 <0.007000>",
    )
    files = vani.profile(log, store=tmp_path / "store").files
    assert {file.path: (file.io.ops.sync, file.io.time_s.sync) for file in files} == {
        "/run/a.dat": (2, pytest.approx(0.002)), "/run/b.dat": (2, pytest.approx(0.01)),
    }  # fmt: skip


def test_a_seek_past_the_end_hides_nothing_where_all_calls_are_recorded(tmp_path):
    log = written(
        tmp_path,
        f"7 {OPEN}",
        "7 write(3</run/a.dat>, ..., 100) = 100 <0.001000>",
        "7 lseek(3</run/a.dat>, 5000000, SEEK_SET) = 5000000 <0.000010>",
        *["7 write(3</run/a.dat>, ..., 0) = 0 <0.400000>"] * 3,
    )
    assert vani.profile(log, store=tmp_path / "store").unseen == []


def test_strace_records_all_reads():
    asked = next(option for option in STRACE if option.startswith("trace=")).removeprefix("trace=")
    assert {name.lstrip("?") for name in asked.split(",")} == set(WANTED)


LIBAIO = r"""
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int n, char **words) {
  static char buffer[8192] = "secret";
  aio_context_t context = 0;
  int file = open(words[n - 1], O_CREAT | O_RDWR, 0600);
  struct iocb write_ = {0}, *list[1] = {&write_};
  struct io_event event;
  write_.aio_fildes = file;
  write_.aio_lio_opcode = IOCB_CMD_PWRITE;
  write_.aio_buf = (unsigned long)buffer;
  write_.aio_nbytes = sizeof buffer;
  if (syscall(SYS_io_setup, 4, &context)) return 77;
  for (int step = 0; step < 5; step++) {
    write_.aio_offset = step * sizeof buffer;
    if (syscall(SYS_io_submit, context, 1L, list) != 1) return 1;
    syscall(SYS_io_getevents, context, 1L, 1L, &event, 0);
  }
  return 0;
}
"""


def test_strace_shows_sizes_of_libaio_and_no_contents(tmp_path):
    strace, cc = strace_or_skip(), compiler()
    if cc is None or shutil.which(cc) is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "aio.c").write_text(LIBAIO)
    built = subprocess.run([cc, "-o", "aio", "aio.c"], cwd=tmp_path, capture_output=True, check=False)
    if built.returncode:
        pytest.skip("there are no headers of Linux")
    log = tmp_path / "log"
    done = subprocess.run([strace, *STRACE, "-o", str(log), "./aio", "out"], cwd=tmp_path, check=False)
    if done.returncode == 77:
        pytest.skip("this kernel has no io_setup")
    assert done.returncode == 0
    assert b"secret" not in log.read_bytes()
    moved = [row[1:] for row in read(log).rows if row[4] is not None and row[2] == str(tmp_path / "out")]
    assert moved == [("io_submit:write", str(tmp_path / "out"), 8192 * step, 8192) for step in range(5)]


def test_command_recorded_by_vani_trace_is_the_job_command(tmp_path):
    (tmp_path / "strace.7").write_text(f"1700000000.001000 {OPEN}\n")
    (tmp_path / MARK).write_text(json.dumps({"command": ["/opt/sim", "-o", "my out"]}))
    profile = vani.profile(tmp_path)
    assert (profile.job.command, profile.job.user) == ("/opt/sim -o 'my out'", None)


@pytest.mark.parametrize(
    ("between", "kinds"),
    [
        # All system calls of a process are in the log, so a file without a write is empty.
        ([], []),
        (["7 io_uring_enter(4<anon_inode:[io_uring]>, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1 <0.000100>"], ["asynchronous"]),
    ],
)
def test_unwritten_file_is_empty_unless_data_came_unseen(tmp_path, between, kinds):
    log = written(tmp_path, f"7 {OPEN}", *between, "7 close(3</run/a.dat>) = 0 <0.5>", "7 +++ exited with 0 +++")
    profile = vani.profile(log, store=tmp_path / "store")
    assert [entry.kind for entry in profile.unseen] == kinds


def test_layers_that_strace_cannot_record_are_not_said_to_be_unused(tmp_path):
    lines = [f"7 {OPEN}", *['7 write(3</run/a.dat>, ""..., 100) = 100 <0.000010>'] * 50, "7 +++ exited with 0 +++"]
    profile = vani.profile(written(tmp_path, *lines), store=tmp_path / "store")
    assert profile.middleware.libraries is None
    assert "strace sees system calls only" in profile.provenance["middleware.granularity"]
    silent = {entry.rule: entry.why for entry in vani.advise(profile).no_recommendation}
    assert not [why for why in silent.values() if "no app uses" in why]
    for rule, library in (("MIO001", "MPI-IO"), ("HD5001", "HDF5"), ("POS012", "stdio")):
        assert silent[rule].startswith(f"calls of {library} are not recorded: strace sees system calls only")
