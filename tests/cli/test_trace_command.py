"""`vani trace` with strace, with a stand-in for Recorder's library, and with a real one where it can be built."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.preload.building import compiler
from tests.readers.strace_logs import strace_or_skip

HERE = Path(__file__).resolve().parent
WRITES = "import sys; open(sys.argv[1], 'wb', 0).write(b'x' * 1000); sys.exit(7)"


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cc = compiler()
    if cc is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("recorder") / "lib" / "librecorder.so"
    library.parent.mkdir()
    source = HERE.parent / "collect" / "standin_recorder.c"
    subprocess.run([cc, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library.parents[1]


@pytest.fixture
def no_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECORDER_ROOT", "RECORDER_INSTALL_PATH", "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_recorder")
def test_strace_replaces_a_missing_recorder_and_advise_reads_its_trace(run, desk):
    strace_or_skip()
    done = run("trace", "-o", "run", "--", sys.executable, "-c", WRITES, "out file")
    assert done.status == 7
    assert done.out == ""
    trace, following = done.err.splitlines()
    assert trace.startswith("Trace  run: 1 file, ")
    assert trace.endswith(", by strace")
    assert following == "Next   vani advise run --format text"
    assert sorted(path.name for path in (desk / "run").iterdir()) == [
        "job.yaml",
        "run.strace",
        "vani-trace.json",
    ]
    assert yaml.safe_load((desk / "run" / "job.yaml").read_text())["schema"] == "vani.job/1"
    assert run("profile", "run", "-o", "p.yaml", "--files", "all", "-q").status == 0
    profile = yaml.safe_load((desk / "p.yaml").read_text())
    (file,) = [one for one in profile["files"] if one["path"] == str(desk / "out file")]
    assert (file["io"]["bytes"]["written"], file["io"]["ops"]["write"]) == (1000, 1)
    assert profile["traces"][0]["complete"] is True
    assert run("advise", "run", "--format", "text").status == 0


@pytest.mark.usefixtures("no_recorder")
def test_no_trace_is_written_over(run, desk):
    strace_or_skip()
    (desk / "run").mkdir()
    (desk / "run" / "mine").touch()
    assert "traces are not overwritten" in run("trace", "-o", "run", "--", "true").line
    assert [path.name for path in (desk / "run").iterdir()] == ["mine"]
    for name in ("true.trace", "true.trace.2"):
        assert run("trace", "--no-collect", "--", "true").err.startswith(f"Trace  {name}: ")


@pytest.mark.usefixtures("no_recorder")
def test_words_reach_the_program_unchanged(run, desk):
    strace_or_skip()
    words = ["$HOME", "a b", "`id`", "*", "--help", "-o", ";"]
    done = run(
        "trace", "-q", "-o", "t", "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words
    )
    assert done.out.strip() == str(words)
    assert done.err == ""


@pytest.mark.usefixtures("no_recorder")
def test_dry_run_prints_the_line_and_creates_no_files(run, desk, standin):
    done = run("trace", "--recorder", standin, "--dry-run", "--", "srun", "-n", "4", "./my solver")
    library = standin / "lib" / "librecorder.so"
    folder = desk / "run.trace"
    assert done.out == (
        f"srun --export=ALL,LD_PRELOAD={library},RECORDER_TRACES_DIR={folder} -n 4 './my solver'\n"
    )
    done = run("trace", "--recorder", standin, "--dry-run", "--", "./solve", "a b")
    assert done.out.endswith("RECORDER_WITH_NON_MPI=1 ./solve 'a b'\n")
    done = run("trace", "--recorder", standin, "--dry-run", "--", "timeout", "-k", "5", "60", "./solve")
    assert done.out.startswith("timeout -k 5 60 env LD_PRELOAD=")
    done = run("trace", "--recorder", standin, "--dry-run", "--", "nice", "srun", "-n", "4", "./solve")
    assert done.out.startswith("nice srun --export=ALL,LD_PRELOAD=")
    assert not list(desk.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--", "nonesuch-program"], "no such program"),
        (["--recorder", "gone", "--", "true"], "though --recorder names it"),
        (["--tracer", "recorder", "--", "true"], "Recorder's library was not found"),
        (["--tracer", "dftracer", "--", "true"], "pip install dftracer in the Python of the program"),
        (["-o", "no/such/folder", "--", "true"], "cannot be made"),
    ],
)
@pytest.mark.usefixtures("no_recorder")
def test_untraceable_command_gives_one_line(run, desk, arguments, said):
    done = run("trace", *arguments)
    assert done.status == 2
    assert said in done.line
    assert not list(desk.iterdir())


@pytest.mark.usefixtures("no_recorder")
def test_recorders_library_is_loaded_into_the_program(run, desk, standin, monkeypatch):
    monkeypatch.setenv("RECORDER_ROOT", str(standin))
    done = run("trace", "-o", "t", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.status == 3
    assert "Next   vani trace --tracer strace -- " in done.err
    (left,) = (desk / "t").glob("*.standin")
    assert left.read_text().strip() == str(standin / "lib" / "librecorder.so")


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.usefixtures("no_recorder")
def test_each_rank_of_an_mpi_run_is_traced(run, desk, standin, mpi, monkeypatch):
    launcher = shutil.which(f"mpirun.{mpi}")
    if launcher is None:
        pytest.skip(f"mpirun.{mpi} is not installed")
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    options = ["--oversubscribe"] if mpi == "openmpi" else []
    line = [launcher, *options, "-n", "3", sys.executable, "-c", "print('hello')"]
    done = run("trace", "-o", "with", "--recorder", standin, "--no-collect", "--", *line)
    # The stand-in leaves no readable trace.
    assert (done.status, done.out.count("hello")) == (2, 3)
    assert sorted(path.name.split("-")[0] for path in (desk / "with").iterdir()) == ["0", "1", "2"]
    strace_or_skip()
    done = run("trace", "-o", "without", "--no-collect", "--", *line)
    assert (done.status, done.out.count("hello")) == (0, 3)
    logs = [path.name for path in sorted((desk / "without").iterdir())]
    host = socket.gethostname()
    assert logs == [*(f"rank-0000{rank}@{host}.strace" for rank in range(3)), "vani-trace.json"]
    assert run("profile", "without", "-o", "p.yaml", "-q").status == 0
    profile = yaml.safe_load((desk / "p.yaml").read_text())
    assert (profile["workflow"]["processes"], profile["job"]["nodes"]) == (3, 1)


@pytest.mark.usefixtures("no_recorder")
@pytest.mark.slow
def test_trace_is_reported_even_if_a_signal_ends_the_program(desk):
    strace_or_skip()
    command = [sys.executable, "-m", "vani", "trace", "-o", "t", "--no-collect", "--", "sleep", "60"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log = desk / "t" / "run.strace"
    until = time.monotonic() + 30
    while time.monotonic() < until and not (log.exists() and "/sleep" in log.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Trace  t: 1 file" in err


@pytest.mark.slow
@pytest.mark.usefixtures("no_recorder")
def test_a_real_recorder_traces_a_program(run, desk, tmp_path):
    source = os.environ.get("VANI_TEST_RECORDER")
    if not source:
        pytest.skip("VANI_TEST_RECORDER does not name a folder of Recorder's sources")
    build, root = tmp_path / "build", tmp_path / "recorder"
    for words in (
        ["cmake", "-S", source, "-B", str(build), f"-DCMAKE_INSTALL_PREFIX={root}"],
        ["cmake", "--build", str(build), "-j", "2"],
        ["cmake", "--install", str(build)],
    ):
        subprocess.run(words, check=True, capture_output=True)
    done = run(
        "trace", "-o", "t", "--recorder", root, "--", "dd", "if=/dev/zero", "of=out", "bs=4096", "count=25"
    )
    assert done.status == 0
    assert run("profile", "t", "-o", "p.yaml", "-q").status == 0
    profile = yaml.safe_load((desk / "p.yaml").read_text())
    assert profile["traces"][0]["tool"] == "recorder"
    (file,) = [one for one in profile["files"] if one["path"] == str(desk / "out")]
    assert (file["io"]["bytes"]["written"], file["io"]["ops"]["write"]) == (102400, 25)


@pytest.mark.usefixtures("no_recorder")
def test_process_ended_by_a_signal_is_complete(run, desk):
    strace_or_skip()
    done = run(
        "trace",
        "-o",
        "t",
        "--no-collect",
        "--",
        "sh",
        "-c",
        "echo x >out; sh -c 'echo y >more; kill -TERM $$'; true",
    )
    assert done.status == 0
    assert run("profile", "t", "-o", "p.yaml", "-q").status == 0
    (trace,) = yaml.safe_load((desk / "p.yaml").read_text())["traces"]
    assert (trace["complete"], trace["problems"]) == (True, [])
