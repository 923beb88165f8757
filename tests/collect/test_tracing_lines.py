"""Lines that run a command under a tracer; launchers are stand-ins that only print their name."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from vani.collect.tracing.launchers import launcher_of, programs_at, with_variables
from vani.collect.tracing.line import free_name, is_static, preloaded_line, strace_line
from vani.collect.tracing.rank import log_of
from vani.collect.tracing.tracers import find_dftracer, find_recorder
from vani.errors import InputError

SET = {"LD_PRELOAD": "/opt/librecorder.so", "RECORDER_TRACES_DIR": "/run/a trace"}


def program(folder: Path, name: str, says: str = "") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("srun", ["-n", "4", "./x"], ["--export=ALL,LD_PRELOAD=/opt/librecorder.so,RECORDER_TRACES_DIR=/run/a trace", "-n", "4", "./x"]),
        ("srun", ["--export=A=b", "./x"], ["--export=A=b,LD_PRELOAD=/opt/librecorder.so,RECORDER_TRACES_DIR=/run/a trace", "./x"]),
        ("srun", ["--export", "ALL", "./x"], ["--export", "ALL,LD_PRELOAD=/opt/librecorder.so,RECORDER_TRACES_DIR=/run/a trace", "./x"]),
        ("jsrun", ["-n", "2", "./x"], ["-E", "LD_PRELOAD=/opt/librecorder.so", "-E", "RECORDER_TRACES_DIR=/run/a trace", "-n", "2", "./x"]),
        ("aprun", ["./x"], ["-e", "LD_PRELOAD=/opt/librecorder.so", "-e", "RECORDER_TRACES_DIR=/run/a trace", "./x"]),
        ("mpirun.openmpi", ["./x"], ["-x", "LD_PRELOAD=/opt/librecorder.so", "-x", "RECORDER_TRACES_DIR=/run/a trace", "./x"]),
        ("mpiexec.hydra", ["./x"], ["-genv", "LD_PRELOAD", "/opt/librecorder.so", "-genv", "RECORDER_TRACES_DIR", "/run/a trace", "./x"]),
    ],
)  # fmt: skip
def test_each_launcher_passes_variables_in_its_own_way(name, line, expected):
    launcher = launcher_of([name])
    assert launcher is not None
    assert with_variables([name, *line], launcher, SET) == [name, *expected]


def test_flux_run_is_two_words():
    command = ["flux", "run", "-n", "3", "./x"]
    launcher = launcher_of(command)
    assert launcher is not None
    assert with_variables(command, launcher, {"A": "b"}) == ["flux", "run", "--env=A=b", "-n", "3", "./x"]
    assert launcher_of(["flux", "mini"]) is None


@pytest.mark.parametrize("option", [["--export=NONE"], ["--export", "NIL"]])
def test_srun_without_exported_variables_is_refused(option):
    launcher = launcher_of(["srun"])
    assert launcher is not None
    with pytest.raises(InputError, match="hides LD_PRELOAD from the program"):
        with_variables(["srun", *option, "./x"], launcher, SET)


@pytest.mark.parametrize(
    ("says", "name"),
    [
        ("mpirun (Open MPI) 4.1.4", "Open MPI"),
        ("prterun (PRRTE) 3.0", "Open MPI"),
        ("HYDRA build details:", "MPICH"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9", "MPICH"),
    ],
)
def test_kind_of_an_mpirun_is_read_from_its_version(tmp_path, says, name):
    launcher = launcher_of([program(tmp_path, "mpirun", says), "-n", "2", "./x"])
    assert launcher is not None
    assert launcher.name == name


def test_an_mpirun_of_neither_family_is_refused(tmp_path):
    with pytest.raises(InputError, match="neither Open MPI's nor MPICH's"):
        launcher_of([program(tmp_path, "mpiexec", "something else"), "./x"])


@pytest.mark.parametrize(
    "line",
    [
        ["srun", "-n", "4", "--exclusive", "-c2", "--cpu-bind=cores", "--time", "5", "PROGRAM", "-n", "7"],
        ["srun", "--pty", "PROGRAM"],
        [
            "mpirun.openmpi",
            "--mca",
            "btl",
            "self,tcp",
            "-np",
            "4",
            "--oversubscribe",
            "-x",
            "A=b",
            "PROGRAM",
            "x",
        ],
        ["mpirun.mpich", "-genv", "A", "b", "-n", "2", "-l", "PROGRAM"],
        ["jsrun", "-n", "1", "-a", "4", "--smpiargs", "-gpu", "PROGRAM"],
        ["flux", "run", "-N2", "-n", "4", "--env=A=b", "PROGRAM"],
        ["mpirun.mpich", "--", "PROGRAM"],
    ],
)
def test_strace_precedes_the_program_of_each_rank(tmp_path, line):
    x = program(tmp_path, "x")
    command = [x if word == "PROGRAM" else word for word in line]
    launcher = launcher_of(command)
    assert launcher is not None
    assert [command[at] for at in programs_at(command, launcher)] == [x]
    words = strace_line(command, tmp_path / "t", {"PATH": str(_with_strace(tmp_path))}).words
    at = command.index(x)
    assert words[:at] == command[:at]
    assert words[-len(command[at:]) - 1 :] == ["--", *command[at:]]
    assert str(tmp_path / "t") in words


def _with_strace(folder: Path) -> Path:
    program(folder, "strace")
    return folder


def test_line_with_an_unrecognisable_program_is_refused(tmp_path):
    launcher = launcher_of(["mpirun.mpich"])
    assert launcher is not None
    for line in (["-n", "2"], ["-unheard", "of", str(tmp_path / "gone")]):
        with pytest.raises(InputError, match="cannot find where the program starts"):
            programs_at(["mpirun.mpich", *line], launcher)
    x = program(tmp_path, "x")
    line = ["mpirun.mpich", "-n", "1", x, "a", ":", "-n", "2", x]
    assert programs_at(line, launcher) == [3, 8]
    with pytest.raises(InputError, match="cannot find where the program starts"):
        programs_at([*line, ":", "-n", "2"], launcher)


def test_program_without_a_launcher_gets_variables_and_keeps_its_arguments(tmp_path):
    line = preloaded_line(
        "recorder", ["./x", "a b", "$HOME;"], Path("/opt/librecorder.so"), tmp_path, {"LD_PRELOAD": "/other.so"}
    )
    assert line.words == ["./x", "a b", "$HOME;"]
    assert line.variables == {
        "LD_PRELOAD": "/opt/librecorder.so:/other.so",
        "RECORDER_TRACES_DIR": str(tmp_path),
        "RECORDER_WITH_NON_MPI": "1",
    }


@pytest.mark.parametrize("folder", ["my tools", "tools:2"])
def test_a_library_that_the_loader_would_not_find_is_refused(tmp_path, folder):
    with pytest.raises(InputError, match=f"{folder}/librecorder.so: cannot be preloaded"):
        preloaded_line("recorder", ["./x"], Path("/opt", folder, "librecorder.so"), tmp_path, {})


def test_dftracer_comes_from_the_python_that_is_run(tmp_path):
    library = tmp_path / "venv" / "lib" / "python3.12" / "site-packages" / "dftracer" / "lib64" / "libdftracer_preload.so"
    library.parent.mkdir(parents=True)
    library.touch()
    (tmp_path / "venv" / "bin").mkdir()
    python = program(tmp_path / "venv" / "bin", "python")
    for words, environment in (([python], {}), ([], {"VIRTUAL_ENV": str(tmp_path / "venv")})):
        assert find_dftracer(words, {"PATH": str(tmp_path), **environment}) == library
    line = preloaded_line("dftracer", [python, "train.py"], library, tmp_path / "t", {})
    assert line.words == [python, "train.py"]
    assert line.variables["LD_PRELOAD"] == str(library)
    assert line.variables["DFTRACER_LOG_FILE"] == str(tmp_path / "t" / "run")
    assert line.variables["DFTRACER_INC_METADATA"] == "1"


def test_nothing_runs_without_recorder_and_strace(tmp_path):
    with pytest.raises(InputError, match="neither Recorder's library nor strace"):
        strace_line(["./x"], tmp_path, {"PATH": str(tmp_path)})


def test_recorder_is_found_through_users_and_modules(tmp_path):
    library = tmp_path / "opt" / "lib" / "librecorder.so"
    library.parent.mkdir(parents=True)
    library.touch()
    root = tmp_path / "opt"
    (root / "bin").mkdir()
    (root / "bin" / "recorder2text").touch(mode=0o700)
    for named, environment in (
        (library, {}),
        (root, {}),
        (None, {"RECORDER_ROOT": str(root)}),
        (None, {"RECORDER_INSTALL_PATH": str(root)}),
        (None, {"EBROOTRECORDER": str(root)}),
        (None, {"LD_LIBRARY_PATH": f"/none:{library.parent}"}),
        (None, {"CMAKE_PREFIX_PATH": str(root)}),
        (None, {"PATH": f"/usr/bin:{root / 'bin'}"}),
    ):
        assert find_recorder(named, environment) == library
    assert find_recorder(None, {"PATH": "/usr/bin", "LD_LIBRARY_PATH": ""}) is None


def test_named_place_without_the_library_is_refused(tmp_path):
    with pytest.raises(InputError, match="though --recorder names it"):
        find_recorder(tmp_path, {})
    with pytest.raises(InputError, match="though RECORDER_ROOT names it"):
        find_recorder(None, {"RECORDER_ROOT": str(tmp_path)})


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"PMI_RANK": "3", "SLURM_PROCID": "0"}, "rank-00003"),
        ({"OMPI_COMM_WORLD_RANK": "12"}, "rank-00012"),
        ({"SLURM_PROCID": "0"}, "rank-00000"),
        ({"FLUX_TASK_RANK": "5"}, "rank-00005"),
    ],
)
def test_a_rank_is_named_by_its_launcher_and_its_host(environment, name):
    assert log_of("/t", environment) == f"/t/{name}@{socket.gethostname()}.strace"
    assert log_of("/t", {}).startswith("/t/")


def test_trace_gets_a_free_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(free_name("x")) == "x.trace"
    (tmp_path / "x.trace").symlink_to("nowhere")
    assert str(free_name("x")) == "x.trace.2"


def test_programs_without_an_interpreter_are_static(tmp_path):
    head = (
        b"\x7fELF\x02\x01" + bytes(26) + (64).to_bytes(8, "little") + bytes(14) + (56).to_bytes(2, "little")
    )
    head += (1).to_bytes(2, "little") + bytes(6)
    for kind, expected in ((1, True), (3, False)):
        (tmp_path / "x").write_bytes(head + kind.to_bytes(4, "little") + bytes(52))
        assert is_static(tmp_path / "x") is expected
    (tmp_path / "x").write_text("#!/bin/sh\n")
    assert not is_static(tmp_path / "x")
    assert not is_static(Path("/bin/sh").resolve())
