"""strace logs. Expected values were counted by hand in the lines, or by the traced program itself."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import vani
from tests.readers.strace_logs import read, strace_or_skip, written
from vani.calls import FileClass, Flag
from vani.errors import TraceError
from vani.readers import open_trace
from vani.readers.programs import app_of
from vani.readers.strace import lines
from vani.readers.strace.processes import command_in

OPEN = 'openat(AT_FDCWD</run>, "out", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</run/out> <0.000010>'


def test_bytes_are_the_return_values_and_determine_the_offsets(tmp_path):
    log = written(
        tmp_path,
        f"7 {OPEN}",
        '7 write(3</run/out>, ""..., 100) = 60 <0.000020>',
        '7 write(3</run/out>, ""..., 40) = 40 <0.000020>',
        "7 lseek(3</run/out>, -10, SEEK_CUR) = 90 <0.000001>",
        '7 read(3</run/out>, ""..., 4096) = 10 <0.000005>',
        '7 pwrite64(3</run/out>, ""..., 8, 1000) = 8 <0.000005>',
        '7 writev(3</run/out>, [{iov_base=""..., iov_len=3}, {iov_base=""..., iov_len=4}], 2) = 7 <0.000005>',
        '7 preadv2(3</run/out>, [{iov_base=""..., iov_len=5}], 1, 20, 0) = 5 <0.000005>',
        '7 pwritev2(3</run/out>, [{iov_base=""..., iov_len=5}], 1, -1, RWF_DSYNC) = 5 <0.000005>',
        "7 +++ exited with 0 +++",
    )
    found = read(log)
    assert found.moved == [
        ("/run/out", 0, 60),
        ("/run/out", 60, 40),
        ("/run/out", 90, 10),
        ("/run/out", 1000, 8),
        ("/run/out", 100, 7),
        ("/run/out", 20, 5),
        ("/run/out", 107, 5),
    ]
    assert found.table["start_ns"].to_pylist() == [i * 1_000_000 for i in range(9)]
    assert found.table["duration_ns"].to_pylist()[:2] == [10_000, 20_000]
    assert found.reader.start_unix_s == 1700000000
    assert not found.reader.problems


def test_overlapping_calls_of_threads_are_merged(tmp_path):
    log = written(
        tmp_path,
        f"7 {OPEN}",
        "7 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88 <unfinished ...>",
        '8 write(3</run/out>, ""..., 5 <unfinished ...>',
        "7 <... clone3 resumed> => {parent_tid=[8]}, 88) = 8 <0.000050>",
        "7 pread64(3</run/out>,  <unfinished ...>",
        "8 <... write resumed>) = 5 <0.003000>",
        '7 <... pread64 resumed>""..., 9, 4) = 1 <0.002000>',
        "8 +++ exited with 0 +++",
        "7 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---",
        "7 +++ exited with 0 +++",
    )
    found = read(log)
    assert found.rows == [
        (0, "openat", "/run/out", None, None),
        (0, "write", "/run/out", 0, 5),
        (0, "pread64", "/run/out", 4, 1),
    ]
    assert found.table["thread"].to_pylist() == [7, 8, 7]
    assert found.table["duration_ns"].to_pylist() == [10_000, 3_000_000, 2_000_000]


@pytest.mark.slow
def test_lines_divided_between_blocks_are_joined(tmp_path, monkeypatch):
    log = written(
        tmp_path,
        f"7 {OPEN}",
        *(
            line
            for number in range(50)
            for line in (
                f'7 write(3</run/out>, ""..., {number} <unfinished ...>',
                "8 read(0<pipe:[1]>,  <unfinished ...>",
                f"7 <... write resumed>) = {number} <0.000001>",
                '8 <... read resumed>"", 1) = 0 <0.000001>',
            )
        ),
    )
    whole = read(log)
    monkeypatch.setattr(lines, "_BLOCK", 97)
    pieces = read(log)
    assert pieces.table.equals(whole.table)
    assert sum(size or 0 for _, _, size in whole.moved) == sum(range(50))


def test_reused_process_number_is_another_process(tmp_path):
    log = written(
        tmp_path,
        "7 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000010>",
        f"8 {OPEN}",
        "8 +++ exited with 0 +++",
        "7 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000010>",
        f"8 {OPEN}",
        "8 +++ exited with 0 +++",
        f"7 {OPEN}",
        "7 +++ exited with 0 +++",
    )
    found = read(log)
    assert found.reader.ranks == 3
    assert not found.reader.problems


def test_relative_names_are_resolved_in_the_folder_of_the_process(tmp_path):
    log = written(
        tmp_path,
        f"7 {OPEN}",
        '7 unlink("a") = 0 <0.000001>',
        '7 chdir("sub") = 0 <0.000001>',
        '7 unlink("b") = 0 <0.000001>',
        "7 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000010>",
        '8 mkdir("c", 0777) = 0 <0.000001>',
        "7 fchdir(4</other>) = 0 <0.000001>",
        '7 rename("d", "/e") = 0 <0.000001>',
        '7 renameat2(5</x>, "f", AT_FDCWD</other>, "g", RENAME_NOREPLACE) = 0 <0.000001>',
        '8 openat(6</y>, "h", O_RDONLY) = 3</real/h> <0.000001>',
    )
    assert [row[2] for row in read(log).rows] == [
        "/run/out",
        "/run/a",
        "/run/sub",
        "/run/sub/b",
        "/other",
        "/other/d",
        "/x/f",
        "/run/sub/c",
        "/real/h",
    ]


def test_names_with_quotes_brackets_and_other_letters_are_whole(tmp_path):
    name = r"we\"ird \74n\76) = 5\n\303\251"
    log = written(
        tmp_path,
        rf'7 openat(AT_FDCWD</run>, "we\"ird <n>) = 5\n\303\251", O_WRONLY|O_CREAT, 0644) = 4</run/{name}> <0.000377>',
        rf'7 write(4</run/{name}>, "\") = 9 <0.1>", 12) = 12 <0.000441>',
        rf'7 write(4</run/{name}>(deleted), ""..., 1) = 1 <0.000441>',
    )
    assert read(log).moved == [('/run/we"ird <n>) = 5\né', 0, 12), ('/run/we"ird <n>) = 5\né', 12, 1)]


def test_data_copied_from_file_to_file_is_read_and_written(tmp_path):
    log = written(
        tmp_path,
        '7 openat(AT_FDCWD</run>, "in", O_RDONLY) = 3</run/in> <0.000010>',
        '7 openat(AT_FDCWD</run>, "out", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4</run/out> <0.000010>',
        "7 copy_file_range(3</run/in>, NULL, 4</run/out>, NULL, 9223372035781033984, 0) = 1000 <0.000441>",
        "7 copy_file_range(3</run/in>, [64] => [74], 4</run/out>, [5] => [15], 10, 0) = 10 <0.000441>",
        "7 sendfile(4</run/out>, 3</run/in>, [0] => [500], 500) = 500 <0.000028>",
        "7 sendfile(5<socket:[9]>, 3</run/in>, NULL, 20) = 20 <0.000028>",
    )
    assert read(log).rows[2:] == [
        (0, "copy_file_range:read", "/run/in", 0, 1000),
        (0, "copy_file_range", "/run/out", 0, 1000),
        (0, "copy_file_range:read", "/run/in", 64, 10),
        (0, "copy_file_range", "/run/out", 5, 10),
        (0, "sendfile:read", "/run/in", 0, 500),
        (0, "sendfile", "/run/out", 1000, 500),
        (0, "sendfile:read", "/run/in", 1000, 20),
        (0, "sendfile", "socket:[9]", None, 20),
    ]


def test_failed_calls_move_no_bytes(tmp_path):
    log = written(
        tmp_path,
        '7 openat(AT_FDCWD</run>, "none", O_RDWR|O_CREAT) = -1 EACCES (Permission denied) <0.000010>',
        '7 newfstatat(AT_FDCWD</run>, "looked", 0x7ff, 0) = -1 ENOENT (No such file or directory) <0.000010>',
        '7 newfstatat(AT_FDCWD</run>, "folder", {st_mode=S_IFDIR|0755, st_size=4096, ...}, 0) = 0 <0.000010>',
        f"7 {OPEN}",
        "7 read(3</run/out>, 0x7ffd, 10) = -1 EIO (Input/output error) <0.000010>",
        "7 read(3</run/out>, 0x7ffd, 10) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.000010>",
    )
    found = read(log)
    files = dict(
        zip(found.reader.files()["path"].to_pylist(), found.reader.files()["class"].to_pylist(), strict=True)
    )
    assert files == {
        "/run/none": FileClass.PROBE,
        "/run/looked": FileClass.PROBE,
        "/run/folder": FileClass.DATASET,
        "/run/out": FileClass.DATASET,
    }
    assert found.moved == []
    flags = found.table["flags"].to_pylist()
    assert flags[0] == 0
    assert flags[2] & Flag.DIRECTORY


def test_sizes_and_offsets_of_no_call_are_unknown_with_a_problem(tmp_path):
    log = written(
        tmp_path,
        '1 openat(AT_FDCWD</h>, "/s/a", O_RDWR|O_CREAT, 0644) = 3</s/a> <0.000010>',
        f'1 write(3</s/a>, ""..., 4096) = {2**57} <0.000010>',
        f'1 pwrite64(3</s/a>, ""..., 512, {10**18 * 8 // 10 + 2**59}) = 512 <0.000010>',
        '1 pwrite64(3</s/a>, ""..., 512, 0) = 512 <0.000010>',
    )
    rows = read(log).rows
    assert [row[4] for row in rows[1:]] == [None, 512, 512]
    assert [row[3] for row in rows[2:]] == [None, 0]
    assert [problem.split(",")[0] for problem in vani.profile(log).traces[0].problems[1:]] == [
        f"calls of write request {2**57} bytes",
        f"calls of pwrite64 name an offset of {2**63 - 1}",
    ]


def test_calls_that_never_reach_a_file_system_do_not_count(tmp_path):
    log = written(
        tmp_path,
        f"7 {OPEN}",
        "7 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7efd27563000 <0.000014>",
        "7 mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</run/out>, 0) = 0x7efd27563000 <0.000014>",
        "7 fcntl(3</run/out>, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE) <0.000001>",
        "7 fcntl(3</run/out>, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0 <0.000001>",
        "7 dup2(3</run/out>, 1</dev/pts/0>) = 1</run/out> <0.000001>",
        "7 futex(0x7f, FUTEX_WAIT, 2, NULL) = 0 <0.500000>",
        "7 getpid() = 7 <0.000001>",
        "7 exit_group(0) = ?",
        "7 +++ exited with 0 +++",
    )
    assert [row[1] for row in read(log).rows] == ["openat", "mmap", "fcntl"]


def test_pipes_system_files_and_shared_libraries_are_counted_separately(tmp_path):
    log = written(
        tmp_path,
        '7 openat(AT_FDCWD</run>, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</etc/ld.so.cache> <0.000010>',
        '7 openat(AT_FDCWD</run>, "/lib/libc.so.6", O_RDONLY|O_CLOEXEC) = 3</usr/lib/libc.so.6> <0.000010>',
        '7 read(3</usr/lib/libc.so.6>, ""..., 832) = 832 <0.000010>',
        '7 write(1<pipe:[17]>, ""..., 3) = 3 <0.000010>',
        '7 read(4</proc/meminfo>, ""..., 1024) = 1024 <0.000010>',
        f"7 {OPEN}",
        '7 write(3</run/out>, ""..., 5) = 5 <0.000010>',
    )
    profile = vani.profile(log, store=tmp_path / "store")
    assert (profile.workflow.io.bytes.total, profile.workflow.io.ops.metadata) == (5, 1)
    assert profile.excluded.io.bytes.total == 832 + 3 + 1024


def test_truncated_log_is_reported(tmp_path):
    log = written(tmp_path, f"7 {OPEN}", '7 write(3</run/out>, ""..., 5) = 5 <0.000010>')
    log.write_text(log.read_text() + "7 1700000000.123456 write(3</run/o")
    profile = vani.profile(log, store=tmp_path / "store")
    (trace,) = profile.traces
    assert trace.complete is False
    assert trace.problems == [
        "log: ends in the middle of a line, what followed is missing",
        "1 thread of 1 still ran where the log ends: it is cut off, or strace was ended before them",
    ]
    assert profile.workflow.io.bytes.written == 5


def test_lines_not_from_strace_are_counted(tmp_path):
    log = written(tmp_path, f"7 {OPEN}", "7 +++ exited with 0 +++")
    log.write_bytes(log.read_bytes() + b"\xff\xfe garbage\n\n")
    assert open_trace(log).problems == ["log: 1 line left out, strace writes none like it"]


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ('7 1700000000.000000 openat(AT_FDCWD, "out", O_RDWR) = 3 <0.000010>\n', "-y"),
        ('7 1700000000.000000 openat(AT_FDCWD</r>, "out", O_RDWR) = 3</r/out>\n', "-T"),
        ('7 12:00:00 openat(AT_FDCWD</r>, "out", O_RDWR) = 3</r/out> <0.000010>\n', "-ttt"),
        ('openat(AT_FDCWD</r>, "out", O_RDWR) = 3</r/out>\n', "-ttt"),
    ],
)
def test_log_without_records_names_the_missing_option(tmp_path, line, option):
    log = tmp_path / "log"
    log.write_text(line + ("7 1700000000.000001 read(3, ..., 5) = 5 <0.000100>\n" if option == "-y" else ""))
    with pytest.raises(TraceError, match=f"which strace writes with {option}"):
        read(log)


def test_log_per_rank_gives_these_ranks(tmp_path):
    for rank in (0, 2):
        written(
            tmp_path,
            f"{7 + rank} {OPEN}",
            f"{7 + rank} clone(child_stack=NULL, flags=SIGCHLD) = 99 <0.000010>",
            '99 write(3</run/out>, ""..., 5) = 5 <0.000010>',
            "99 +++ exited with 0 +++",
            f"{7 + rank} +++ exited with 0 +++",
            name=f"rank-{rank:05}.strace",
        )
    (tmp_path / "vani-trace.json").write_text('{"command": ["mpi-io", "-x"]}')
    found = read(tmp_path)
    assert found.reader.app == "mpi-io"
    assert [row[0] for row in found.rows] == [0, 0, 2, 2]
    assert found.reader.problems == ["ranks 1: left out, their logs are missing"]


@pytest.mark.parametrize(
    ("names", "nodes"),
    [
        (("rank-00000@n1.strace", "rank-00001@n1.strace", "rank-00002@n2.strace"), 2),
        (("rank-00000@n1.strace", "rank-00001.strace"), None),
        (("n-1-77.strace", "n-2-77.strace"), 2),
        (("run.strace",), 1),
    ],
)
def test_log_names_give_the_nodes(tmp_path, names, nodes):
    for rank, name in enumerate(names):
        wrote = f'{7 + rank} write(3</run/out>, ""..., 5) = 5 <0.000010>'
        written(tmp_path, f"{7 + rank} {OPEN}", wrote, f"{7 + rank} +++ exited with 0 +++", name=name)
    (tmp_path / "vani-trace.json").write_text('{"command": ["mpi-io", "-x"]}')
    assert vani.profile(tmp_path).job.nodes == nodes


def test_one_log_per_process_makes_one_trace(tmp_path):
    begin = [
        'execve("/usr/bin/python3", ["python3", "train.py"], 0x7ffd /* 3 vars */) = 0 <0.000200>',
        "clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000010>",
        OPEN,
        "+++ exited with 0 +++",
    ]
    other = [OPEN, 'write(3</run/out>, ""..., 5) = 5 <0.000010>', "+++ exited with 0 +++"]
    for pid, some in ((7, begin), (8, other)):
        text = "".join(f"{1700000000 + n}.000000 {line}\n" for n, line in enumerate(some))
        (tmp_path / f"log.{pid}").write_text(text)
    found = read(tmp_path)
    assert found.reader.app == "train.py"
    assert [row[:2] for row in found.rows] == [(0, "openat"), (1, "openat"), (1, "write")]
    assert not found.reader.problems


def test_a_reader_can_be_sent_to_another_process(tmp_path):
    log = written(tmp_path, f"7 {OPEN}", '7 write(3</run/out>, ""..., 5) = 5 <0.000010>')
    reader = open_trace(log)
    assert reader.ranks == 1
    assert pickle.loads(pickle.dumps(reader)).ranks == 1


@pytest.mark.parametrize(
    ("command", "app"),
    [
        (["/usr/bin/python3.11", "-u", "dir/train.py", "x"], "train.py"),
        (["python", "-m", "train.main"], "train.main"),
        (["python3", "-W", "ignore", "train.py"], "train.py"),
        (["/bin/sh", "-c", "a | b"], "sh"),
        (["Rscript", "fit.R"], "fit.R"),
        (["/opt/xhpl"], "xhpl"),
        ([], ""),
    ],
)
def test_an_interpreters_run_is_called_by_its_script(command, app):
    assert app_of(command) == app


def test_the_command_is_read_off_the_execve():
    assert command_in(r'"/bin/a\"b", ["b", "c]d", "e"...], 0x7ffd /* 3 vars */') == ['/bin/a"b', "c]d", "e"]


def test_no_seconds_are_promised_of_times_that_strace_made_longer(tmp_path):
    lines_ = ["7 " + OPEN.replace("/run", "/data")]
    lines_ += ['7 write(3</data/out>, ""..., 100) = 100 <0.000900>'] * 2000
    log = tmp_path / "log"
    log.write_text(
        "".join(
            f"7 {1700000000 + n // 500}.{n % 500 * 2:03}000 {line[2:]}\n" for n, line in enumerate(lines_)
        )
    )
    profile = vani.profile(log, store=tmp_path / "store")
    assert profile.provenance["io.time_s"].startswith("inflated: strace")
    advice = vani.advise(profile)
    assert {one.rule for one in advice.recommendations} >= {"MAT001", "POS002"}
    assert all(one.expected is None for one in advice.recommendations)
    assert "strace adds some 50 us to each call" in advice.recommendations[0].reason


def test_non_ranks_get_no_advice_to_share_work(tmp_path):
    text = [f"7 clone(child_stack=NULL, flags=SIGCHLD) = {pid} <0.000010>" for pid in range(10, 15)]
    text += [
        f'{pid} openat(AT_FDCWD</data>, "in", O_RDONLY) = 3</data/in> <0.000010>' for pid in range(10, 15)
    ]
    text += [
        "7 " + OPEN.replace("/run", "/data"),
        '7 write(3</data/out>, ""..., 50000000) = 50000000 <0.900000>',
    ]
    profile = vani.profile(written(tmp_path, *text), store=tmp_path / "store")
    assert profile.workflow.processes == 6
    why = {one.rule: one.why for one in vani.advise(profile).no_recommendation}
    assert why["POS006"] == "the processes of log are no ranks of MPI"


def test_read_at_the_end_moves_no_data(tmp_path):
    log = written(
        tmp_path,
        f"7 {OPEN.replace('/run', '/data')}",
        '7 pwrite64(3</data/out>, ""..., 100, 0) = 100 <0.000010>',
        '7 read(3</data/out>, ""..., 4096) = 100 <0.500000>',
        '7 read(3</data/out>, "", 4096) = 0 <0.000010>',
    )
    io = vani.profile(log, store=tmp_path / "store").workflow.io
    assert (io.ops.read, io.bytes.read, io.transfer_size.read.min) == (1, 100, 100)
    # The open, and the read at the end; the time of the other read is none of it.
    assert io.ops.metadata == 2
    assert (io.metadata_kinds.other.count, io.metadata_kinds.other.time_s) == (1, pytest.approx(10e-6))


@pytest.mark.parametrize(("seconds", "said"), [("0.000300", "75 %"), ("0.000090", None)])
def test_cause_says_how_much_time_synchronous_writes_take(seconds, said, tmp_path):
    log = written(
        tmp_path,
        '7 openat(AT_FDCWD</data>, "s", O_WRONLY|O_CREAT|O_SYNC, 0666) = 3</data/s> <0.000000>',
        f'7 write(3</data/s>, ""..., 4096) = 4096 <{seconds}>',
        '7 openat(AT_FDCWD</data>, "e", O_WRONLY|O_CREAT, 0666) = 4</data/e> <0.000000>',
        '7 write(4</data/e>, ""..., 4096) = 4096 <0.000100>',
    )
    cause = vani.profile(log, store=tmp_path / "store").verdict.cause.sentence
    sentence = f" Writes that wait for the storage (O_SYNC or O_DSYNC): {said} of it."
    assert cause.endswith(sentence) if said else "O_SYNC" not in cause, cause


def test_files_opened_with_direct_io_are_marked(tmp_path):
    log = written(
        tmp_path,
        '7 openat(AT_FDCWD</data>, "d", O_WRONLY|O_CREAT|O_DIRECT, 0666) = 3</data/d> <0.000010>',
        '7 write(3</data/d>, ""..., 4096) = 4096 <0.000010>',
        '7 openat(AT_FDCWD</data>, "d", O_RDONLY|O_DIRECTORY) = 4</data/d> <0.000010>',
        '7 openat(AT_FDCWD</data>, "e", O_WRONLY|O_CREAT, 0666) = 5</data/e> <0.000010>',
        '7 openat(AT_FDCWD</data>, "none", O_RDONLY|O_DIRECT) = -1 EINVAL (Invalid argument) <0.000010>',
        '7 openat(AT_FDCWD</data>, "s", O_WRONLY|O_CREAT|O_SYNC, 0666) = 6</data/s> <0.000010>',
        '7 openat(AT_FDCWD</data>, "s", O_WRONLY|O_DSYNC) = 7</data/s> <0.000010>',
    )
    found = vani.profile(log, store=tmp_path / "store")
    assert {file.path: file.direct_opens for file in found.files} == {"/data/d": 1, "/data/e": None, "/data/s": None}
    waiting = {file.path: file.synchronous_opens for file in found.files}
    assert waiting == {"/data/d": None, "/data/e": None, "/data/s": 2}
    written_out = {file["path"]: file.get("direct_opens") for file in found.model_dump()["files"]}
    assert written_out == {"/data/d": 1, "/data/e": None, "/data/s": None}
    assert [sorted(file.keys() & {"synchronous_opens"}) for file in found.model_dump()["files"]].count([]) == 2


def test_stacks_of_calls_are_no_problem(tmp_path):
    calls = ['7 openat(AT_FDCWD</>, "d", O_WRONLY|O_CREAT, 0666) = 3</d> <0.000010>', '7 write(3</d>, ""..., 9) = 9 <0.000010>']
    (tmp_path / "with").mkdir()
    log = written(tmp_path / "with", *calls)
    plain = vani.profile(log, store=tmp_path / "plain")
    place = next(log.rglob("*")) if log.is_dir() else log
    stack = " > /usr/lib/libc.so.6(__write+0x14) [0x1]\n > /run/a.out(main+0x2f) [0x2]\n"
    place.write_text("".join(f"{line}\n{stack}" for line in place.read_text().splitlines()))
    found = vani.profile(log, store=tmp_path / "store")
    assert found.traces[0].problems == plain.traces[0].problems
    assert [(file.path, file.io.bytes.written) for file in found.files] == [("/d", 9)]


def test_stacks_name_the_caller_of_the_cause(tmp_path):
    def stack(*frames: str) -> str:
        return "".join(f" > {frame} [0x1]\n" for frame in ("/usr/lib/libc.so.6(__write+0x14)", *frames))

    write = '7 1700000000.000000 write(3</d/a>, ""..., 10) = 10 <0.000100>\n'
    close = "7 1700000000.000000 close(3</d/a>) = 0 <0.000010>\n"
    main, save, python = "/run/a.out(main+0x2f)", "/my run/a.out(Out::save(int)+0x1)", "/bin/python3.11(os_write+0x1)"
    log = tmp_path / "run.strace"
    log.write_text(2 * (write + stack(save, main)) + write + stack(main) + 5 * (close + stack(main)))
    assert vani.profile(log).verdict.cause.caller == "Out::save(int) in a.out"
    # A name without end is none.
    log.write_text(write + stack(f"/run/a.out({'(' * 100_000}+0x1)"))
    assert vani.profile(log).verdict.cause.caller is None
    # An interpreter's own function is not a place in the program.
    log.write_text(write + stack(python))
    assert vani.profile(log).verdict.cause.caller is None
    log.write_text(write)
    assert vani.profile(log).verdict.cause.caller is None


def test_writes_count_as_waiting_by_descriptor(tmp_path):
    plain, waits = "O_RDWR|O_CREAT, 0666) = 3</db>", "O_WRONLY|O_DSYNC) = 4</db>"
    log = written(
        tmp_path,
        *(f'7 openat(AT_FDCWD</>, "db", {opened} <0.000010>' for opened in (plain, waits)),
        *['7 pwrite64(3</db>, ""..., 4096, 8192) = 4096 <0.000010>'] * 5,
        *['7 pwrite64(4</db>, ""..., 4096, 0) = 4096 <0.000010>'] * 2,
        "7 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000010>",
        # A forked process inherits the descriptor, and a new open of its own replaces it.
        '8 pwrite64(4</db>, ""..., 4096, 0) = 4096 <0.000010>',
        "8 close(4</db>) = 0 <0.000010>",
        '8 openat(AT_FDCWD</>, "db", O_WRONLY) = 4</db> <0.000010>',
        '8 pwrite64(4</db>, ""..., 4096, 0) = 4096 <0.000010>',
        '7 pwrite64(4</db>, ""..., 4096, 0) = 4096 <0.000010>',
    )
    [file] = vani.profile(log, store=tmp_path / "store").files
    assert (file.opens, file.synchronous_opens) == (3, 1)
    assert (file.io.ops.write, file.synchronous_writes) == (10, 4)


def test_bytes_that_one_program_hands_to_another_are_known(tmp_path):
    (tmp_path / "traces").mkdir()
    for name, lines_ in (
        ("1-make", [OPEN.replace("/run", "/data"), 'write(3</data/out>, ""..., 900) = 900 <0.000010>']),
        ("2-use", ['openat(AT_FDCWD</data>, "out", O_RDONLY) = 3</data/out> <0.000010>',
                   'read(3</data/out>, ""..., 4096) = 900 <0.000010>', 'read(3</data/out>, "", 4096) = 0 <0.000010>']),
    ):  # fmt: skip
        folder = tmp_path / "traces" / name
        folder.mkdir()
        (folder / "vani-trace.json").write_text(f'{{"command": ["{name[2:]}"]}}')
        written(folder, *(f"7 {line}" for line in lines_), name="run.strace")
    (one,) = vani.profile(tmp_path / "traces", store=tmp_path / "store").workflow.app_dependencies
    assert (one.producer, one.consumer, one.bytes_written, one.bytes_read) == ("make", "use", 900, 900)


PROGRAM = """
import multiprocessing, os, threading

def work(name):
    with open(name, "wb", buffering=0) as file:
        for _ in range(50):
            file.write(b"x" * 1000)

def main():
    names = [f"t{i}" for i in range(4)]
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    children = [multiprocessing.get_context("fork").Process(target=work, args=(f"p{i}",)) for i in range(3)]
    for one in threads + children:
        one.start()
    for one in threads + children:
        one.join()
    one = os.open("in", os.O_RDWR | os.O_CREAT)
    os.write(one, b"y" * 700)
    os.lseek(one, 0, 0)
    os.read(one, 4096)
    two = os.open("é\\n'\\"<>) = 1", os.O_WRONLY | os.O_CREAT)
    os.sendfile(two, one, 0, 500)
    os.rename("in", "moved")
    os._exit(5)

main()
"""


def test_a_real_program_of_threads_and_processes_is_counted_exactly(tmp_path):
    strace = strace_or_skip()
    run = tmp_path / "run"
    run.mkdir()
    log = tmp_path / "log"
    done = subprocess.run(
        [strace, "-f", "-ttt", "-T", "-y", "-o", str(log), sys.executable, "-c", PROGRAM],
        cwd=run,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5
    found = read(log)
    assert not found.reader.problems
    assert found.reader.ranks == 4
    mine = [row for row in found.rows if row[2] and row[2].startswith(f"{run}/")]
    written_ = {}
    for _, name, path, offset, size in mine:
        if name == "write":
            written_.setdefault(path.removeprefix(f"{run}/"), []).append((offset, size))
    blocks = [(i * 1000, 1000) for i in range(50)]
    assert written_ == {
        **{f"t{i}": blocks for i in range(4)},
        **{f"p{i}": blocks for i in range(3)},
        "in": [(0, 700)],
    }
    assert {row[0] for row in mine if "/t" in row[2].removeprefix(str(run))} == {0}
    assert [row[4] for row in mine if row[1] in ("read", "sendfile:read", "sendfile")] == [700, 500, 500]
    assert f"{run}/é\n'\"<>) = 1" in {row[2] for row in mine}


def test_log_truncated_anywhere_is_read_up_to_there(tmp_path):
    strace = strace_or_skip()
    log = tmp_path / "log"
    command = [
        strace,
        "-f",
        "-ttt",
        "-T",
        "-y",
        "-o",
        str(log),
        "sh",
        "-c",
        "cat /etc/passwd | wc -c >out; ls",
    ]
    subprocess.run(command, cwd=tmp_path, timeout=60, check=True, capture_output=True)
    data = log.read_bytes()
    part = tmp_path / "part"
    for size in range(len(data) // 3, len(data), len(data) // 17):
        part.write_bytes(data[:size])
        found = read(part)
        assert found.reader.problems
        assert found.table.num_rows
