"""Programs in a strace log: the apps of a run, and processes that only start others."""

from __future__ import annotations

import pickle

import pytest

import vani
from tests.readers.strace_logs import written
from vani.readers import open_trace, open_workload
from vani.readers.programs import is_launcher


def ran(pid, program):
    return f'{pid} execve("{program}", [...], 0x7ffd /* 3 vars */) = 0 <0.000200>'


def forked(pid, child):
    return f"{pid} clone(child_stack=NULL, flags=SIGCHLD) = {child} <0.000010>"


def wrote(pid, path, size=100):
    return [
        f'{pid} openat(AT_FDCWD</job>, "{path}", O_WRONLY|O_CREAT) = 3<{path}> <0.000010>',
        f'{pid} write(3<{path}>, ""..., {size}) = {size} <0.000010>',
    ]


def read_(pid, path, size=100):
    return [
        f'{pid} openat(AT_FDCWD</job>, "{path}", O_RDONLY) = 3<{path}> <0.000010>',
        f'{pid} read(3<{path}>, ""..., 4096) = {size} <0.000010>',
    ]


def apps(path):
    """(app, processes) of each trace that a path is read as."""
    return [(reader.app, reader.ranks) for reader in open_workload([path]).readers]


WORKFLOW = [
    ran(1, "/bin/sh"),
    *read_(1, "/job/flow.sh"),
    forked(1, 2),
    ran(2, "/usr/bin/mpiexec.hydra"),
    *read_(2, "/etc/hosts"),
    forked(2, 3),
    ran(3, "/usr/bin/hydra_pmi_proxy"),
    '3 write(1<pipe:[7]>, ""..., 40) = 40 <0.000010>',
    forked(3, 4),
    ran(4, "/job/mesh"),
    *wrote(4, "/job/mesh.dat"),
    forked(3, 5),
    ran(5, "/job/mesh"),
    *wrote(5, "/job/more.dat"),
    forked(1, 6),
    ran(6, "/usr/bin/env"),
    ran(6, "/job/solve"),
    *read_(6, "/job/mesh.dat"),
]


def test_programs_of_a_workflow_are_apps_and_launchers_are_not(tmp_path):
    log = written(tmp_path, *WORKFLOW)
    assert apps(log) == [("mesh", 2), ("solve", 1)]
    profile = vani.profile(log, store=tmp_path / "store")
    assert [(app.name, app.processes, app.io.bytes.total) for app in profile.apps] == [
        ("mesh", 2, 200),
        ("solve", 1, 100),
    ]
    (handed,) = profile.workflow.app_dependencies
    assert (handed.producer, handed.consumer) == ("mesh", "solve")
    assert profile.workflow.processes == 3


def test_parts_of_a_log_can_be_sent_to_other_processes(tmp_path):
    mesh, solve = open_workload([written(tmp_path, *WORKFLOW)]).readers
    again = pickle.loads(pickle.dumps(solve))
    assert (again.app, again.ranks) == ("solve", 1)
    assert again.digest() == solve.digest() != mesh.digest()


def test_writing_shell_is_a_process(tmp_path):
    log = written(tmp_path, ran(1, "/bin/bash"), *wrote(1, "/job/out"), forked(1, 2), ran(2, "/job/a"), *wrote(2, "/job/x"))
    assert apps(log) == [("bash", 1), ("a", 1)]


def test_a_shell_alone_is_the_program(tmp_path):
    log = written(tmp_path, ran(1, "/bin/bash"), *read_(1, "/job/in"), forked(1, 2), *read_(2, "/job/in"))
    assert apps(log) == [("bash", 2)]


def test_script_is_opened_but_not_imported(tmp_path):
    python = "/opt/env/bin/python3"
    log = written(
        tmp_path,
        ran(1, "/bin/sh"),
        forked(1, 2),
        ran(2, python),
        *read_(2, "/opt/env/lib/python3.11/site-packages/sitecustomize.py"),
        *read_(2, "/job/train.py"),
        '2 openat(AT_FDCWD</job>, "/job/__pycache__/model.cpython-311.pyc", O_RDONLY) = -1 ENOENT (none) <0.000010>',
        *read_(2, "/job/model.py"),
        forked(2, 4),
        *read_(4, "/job/data.bin"),
        forked(1, 3),
        ran(3, python),
        *read_(3, "/job/model.py"),
        *read_(3, "/job/data.bin"),
        *read_(3, "/job/eval.py"),
    )
    assert apps(log) == [("train.py", 2), ("eval.py", 1)]


def test_shim_becomes_the_interpreter_of_the_recorded_script(tmp_path):
    (tmp_path / "vani-trace.json").write_text('{"command": ["nice", "python", "-m", "train.main"]}')
    written(
        tmp_path,
        ran(1, "/usr/bin/nice"),
        ran(1, "/home/alice/.pyenv/shims/python"),
        ran(1, "/usr/bin/bash"),
        ran(1, "/home/alice/.pyenv/versions/3.11/bin/python3.11"),
        *read_(1, "/job/data.bin"),
        forked(1, 2),
        *read_(2, "/job/data.bin"),
        name="run.strace",
    )
    assert apps(tmp_path) == [("train.main", 2)]


def test_app_of_ranks_is_the_program_their_shell_started(tmp_path):
    (tmp_path / "vani-trace.json").write_text('{"command": ["sh", "-c", "ulimit -s unlimited; ./solve"]}')
    for rank in range(2):
        lines = (ran(7, "/bin/sh"), forked(7, 8), ran(8, "/job/solve"), *wrote(8, "/job/out"))
        written(tmp_path, *lines, name=f"rank-{rank:05}.strace")
    assert apps(tmp_path) == [("solve", 2)]
    assert open_trace(tmp_path).layout == "ranks"


@pytest.mark.parametrize("program", ["/usr/bin/env", "dash", "mpirun.openmpi", "orted", "hydra_pmi_proxy", "run.sh"])
def test_programs_that_start_others(program):
    assert is_launcher(program)


@pytest.mark.parametrize("program", ["solve", "python3", "envision", "make_mesh", "timeouts", "mpi_solver", "shear"])
def test_programs_that_work_themselves(program):
    assert not is_launcher(program)


def test_processes_that_all_loaded_mpi_are_ranks(tmp_path):
    library = '{} openat(AT_FDCWD</job>, "/lib/libmpi.so.12", O_RDONLY) = 3</usr/lib/libmpi.so.12> <0.000010>'
    run = [ran(1, "/usr/bin/mpiexec"), forked(1, 2), forked(1, 3)]
    of_both = [line for pid in (2, 3) for line in (ran(pid, "/job/solve"), *wrote(pid, "/job/out"))]
    assert open_trace(written(tmp_path, *run, *of_both, name="a")).layout == "processes"
    loaded = [line for pid in (2, 3) for line in (ran(pid, "/job/solve"), library.format(pid), *wrote(pid, "/job/out"))]
    assert open_trace(written(tmp_path, *run, *loaded, name="b")).layout == "ranks"
    # A worker that a rank forked is not a rank.
    worker = [forked(3, 4), *wrote(4, "/job/more")]
    assert open_trace(written(tmp_path, *run, *loaded, *worker, name="c")).layout == "processes"


def asked(pid, path):
    return f'{pid} newfstatat(AT_FDCWD</job>, "{path}", {{st_mode=S_IFREG|0644, st_size=9, ...}}, 0) = 0 <0.000010>'


def test_tools_that_only_stat_a_few_files_are_not_processes(tmp_path):
    script = [ran(1, "/bin/sh"), forked(1, 2), ran(2, "/usr/bin/dirname"), asked(2, "/job/a"), forked(1, 3)]
    solve = [ran(3, "/job/solve"), *wrote(3, "/job/out"), forked(3, 4), asked(4, "/job/out")]
    assert apps(written(tmp_path, *script, *solve, name="a")) == [("solve", 2)]
    many = [asked(2, f"/job/{number}") for number in range(200)]
    assert apps(written(tmp_path, *script, *many, *solve, name="b")) == [("dirname", 1), ("solve", 2)]
    makes = ['2 mkdir("/job/new", 0777) = 0 <0.000010>']
    assert apps(written(tmp_path, *script, *makes, *solve, name="c")) == [("dirname", 1), ("solve", 2)]
    # If there are only tools, they are the run.
    assert apps(written(tmp_path, *script[:4], name="d")) == [("dirname", 1)]


def test_reading_shell_is_a_process(tmp_path):
    begin, rest = [ran(1, "/bin/sh")], [forked(1, 2), ran(2, "/job/solve"), *wrote(2, "/job/out")]
    settings, data = read_(1, "/home/alice/settings", 4096), read_(1, "/job/data", 2 << 20)
    assert apps(written(tmp_path, *begin, *settings, *rest, name="a")) == [("solve", 1)]
    assert apps(written(tmp_path, *begin, *data, *rest, name="b")) == [("sh", 1), ("solve", 1)]


def test_programs_in_one_launcher_command_are_apps(tmp_path):
    (tmp_path / "vani-trace.json").write_text('{"command": ["./ocean", ":", "-n", "1", "./ice"]}')
    for rank, program in enumerate(("ocean", "ocean", "ice")):
        lines = (ran(7, f"/job/{program}"), *wrote(7, "/job/out"))
        written(tmp_path, *lines, name=f"rank-{rank:05}.strace")
    assert apps(tmp_path) == [("ocean", 2), ("ice", 1)]


def test_children_of_torchrun_are_ranks(tmp_path):
    job = [
        ran(1, "/opt/bin/torchrun"),
        *read_(1, "/job/rendezvous"),
        *(line for rank in (2, 3) for line in (forked(1, rank), ran(rank, "/job/train"), *read_(rank, "/job/data"))),
        forked(3, 4),
        *read_(4, "/job/data"),
        *wrote(2, "/job/model.pt"),
    ]
    (reader,) = open_workload([written(tmp_path, *job)]).readers
    assert (reader.app, reader.layout, reader.calls_per_rank().tolist()) == ("train", "ranks", [4, 4])
    beside = [*job, forked(5, 6), ran(6, "/job/post"), *wrote(6, "/job/report")]
    assert apps(written(tmp_path, *beside)) == [("torchrun", 1), ("train", 3), ("post", 1)]
