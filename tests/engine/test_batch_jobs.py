"""Jobs of a batch system: options are checked before anything is submitted, and every job is cancelled.

There is no batch system here. Stand-in commands record their arguments; the last test's `sbatch` runs the job.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import dask_jobqueue  # noqa: F401 - loads its defaults once, outside tests that configure something
import pytest
from distributed import Client
from running import is_running

import vani
from vani.cli.main import main
from vani.engine import BatchJobs
from vani.engine.batch_jobs import open_jobs, speaks_tls
from vani.errors import InputError

TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "v3-cm1like-16r"
COMMANDS = {"slurm": ("sbatch", "scancel"), "pbs": ("qsub", "qdel"), "lsf": ("bsub", "bkill")}

SUBMIT = """#!/bin/sh
if test -f "$FAKE_BATCH/refuse"; then cat "$FAKE_BATCH/refuse" >&2; exit 1; fi
if test $# -gt 0; then cat "$1"; else cat; fi > "$FAKE_BATCH/$$.script"
echo "Job <$$> is submitted"
"""
CANCEL = """#!/bin/sh
echo "$1" >> "$FAKE_BATCH/cancelled"
"""
# Imitates a batch system with one machine.
RUN = """#!/bin/sh
cp "$1" "$FAKE_BATCH/$$.script"
setsid sh "$FAKE_BATCH/$$.script" > "$FAKE_BATCH/$$.log" 2>&1 &
echo "$!" > "$FAKE_BATCH/$$.pid"
echo "Submitted batch job $$"
"""
STOP = """#!/bin/sh
echo "$1" >> "$FAKE_BATCH/cancelled"
kill -TERM -- "-$(cat "$FAKE_BATCH/$1.pid")"
"""


def put_commands(folder: Path, monkeypatch, commands: dict[str, str]) -> Path:
    """Put commands in front of all others; return the folder in which they store their jobs."""
    (folder / "bin").mkdir()
    (folder / "jobs").mkdir()
    for name, script in commands.items():
        (folder / "bin" / name).write_text(script)
        (folder / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_BATCH", str(folder / "jobs"))
    return folder / "jobs"


@pytest.fixture
def jobs(tmp_path, monkeypatch) -> Path:
    return put_commands(
        tmp_path,
        monkeypatch,
        {name: text for pair in COMMANDS.values() for name, text in zip(pair, (SUBMIT, CANCEL), strict=True)},
    )


def asked(system: str, *options: str, workers: int | None = None) -> BatchJobs:
    pairs = [option.split("=", 1) for option in ("scheduler_host=127.0.0.1", *options)]
    return BatchJobs(system, workers, tuple((name, value) for name, value in pairs))


def scripts(jobs: Path) -> list[str]:
    return [p.read_text() for p in sorted(jobs.glob("*.script"))]


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("system", "option", "line"),
    [
        ("slurm", "quue=x", "unknown cluster option 'quue'; did you mean 'queue'?"),
        ("slurm", "zzz=x", "unknown cluster option 'zzz'; known are account, cores, "),
        ("slurm", "resource_spec=x", "unknown cluster option 'resource_spec'"),
        ("pbs", "job_cpu=3", "unknown cluster option 'job_cpu'"),
        ("slurm", "cores=0", "cluster option cores='0'; give a positive whole number"),
        ("slurm", "cores=-1", "cluster option cores='-1'; give a positive whole number"),
        ("slurm", "cores=²", "cluster option cores='²'; give a positive whole number"),
        ("slurm", "cores=1e9", "cluster option cores='1e9'; give a positive whole number"),
        ("slurm", "memory=lots", "cluster option memory='lots'; give a size such as 16GB"),
        ("pbs", "walltime=soon", "cluster option walltime='soon'; give a time such as 01:30:00"),
        ("lsf", "mem=16GB", "cluster option mem='16GB'; give a number of bytes"),
        ("lsf", "use_stdin=yes", "cluster option use_stdin='yes'; give true or false"),
        ("slurm", "queue=", "cluster option queue=''; give it one line of text"),
        (
            "slurm",
            "queue=a\n#SBATCH --uid=0",
            "cluster option queue='a\\n#SBATCH --uid=0'; give it one line of text",
        ),
    ],
)
def test_an_option_that_cannot_be(system, option, line):
    with pytest.raises(InputError) as told:
        asked(system, option)
    assert str(told.value).startswith(line)


def test_option_given_twice():
    with pytest.raises(InputError, match="cluster option queue is given twice"):
        asked("slurm", "queue=a", "queue=b")


def test_options_have_the_types_that_dask_wants():
    options = ("cores=4", "memory=16GB", "use-stdin=true", "mem=1000", "account=p", "job_name=vani")
    assert asked("lsf", *options).parsed == {
        "scheduler_host": "127.0.0.1",
        "cores": 4,
        "memory": "16GB",
        "use_stdin": True,
        "mem": 1000,
        "project": "p",
        "job_name": "vani",
    }


def test_an_unknown_batch_system():
    with pytest.raises(InputError, match="unknown batch system 'sge'; known are slurm, pbs, lsf"):
        BatchJobs("sge")


# ------------------------------------------------------------------ job scripts

COMMON = ("cores=4", "processes=2", "memory=16GB", "walltime=01:30:00", "queue=gold", "account=phys")
HEADERS = {
    "slurm": (
        ("job_extra_directives=--exclusive", "job_extra_directives=--constraint=ssd", "job_mem=20GB"),
        [
            "-p gold",
            "-A phys",
            "-t 01:30:00",
            "--cpus-per-task=4",
            "--mem=20GB",
            "--exclusive",
            "--constraint=ssd",
        ],
        "#SBATCH ",
    ),
    "pbs": (
        ("resource_spec=select=1:ncpus=4:mem=20gb",),
        ["-q gold", "-A phys", "-l select=1:ncpus=4:mem=20gb", "-l walltime=01:30:00"],
        "#PBS ",
    ),
    "lsf": (
        ("ncpus=8", "lsf_units=mb"),
        ["-q gold", '-P "phys"', "-W 01:30:00", "-n 8", "-M 16000"],
        "#BSUB ",
    ),
}


@pytest.mark.parametrize("system", HEADERS)
def test_job_requests_follow_the_options(jobs, system):
    own, header, prefix = HEADERS[system]
    cluster = open_jobs(asked(system, *COMMON, *own, "job_script_prologue=module load python", workers=2))
    try:
        (script,) = scripts(jobs)
    finally:
        cluster.close()
    lines = script.splitlines()
    for line in header:
        assert prefix + line in lines
    assert lines.index("module load python") < len(lines) - 1
    worker = lines[-1]
    assert " -m distributed.cli.dask_worker tcp://127.0.0.1:" in worker
    assert re.search(r"--nthreads 2 --memory-limit 7\.45GiB --nworkers 2 --nanny", worker)
    assert len((jobs / "cancelled").read_text().split()) == 1


@pytest.mark.parametrize(("workers", "count"), [(None, 1), (1, 1), (3, 3)])
def test_requested_number_of_jobs_is_submitted_and_cancelled(jobs, workers, count):
    cluster = open_jobs(asked("slurm", "cores=1", "memory=1GB", workers=workers))
    assert len(scripts(jobs)) == count
    cluster.close()
    cancelled = (jobs / "cancelled").read_text().split()
    assert sorted(cancelled) == sorted(p.stem for p in jobs.glob("*.script"))


def test_missing_options_come_from_the_configuration(jobs):
    configured = {"cores": 3, "memory": "6GB", "queue": "silver", "scheduler-options": {"port": 0}}
    with dask.config.set({f"jobqueue.slurm.{k}": v for k, v in configured.items()}):
        open_jobs(asked("slurm", "queue=gold")).close()
    (script,) = scripts(jobs)
    assert "#SBATCH --cpus-per-task=3" in script
    assert "#SBATCH -p gold" in script


# ---------------------------------------------------------------- what goes wrong


def command(capfd, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as leaving:
        main([str(a) for a in arguments])
    out, err = capfd.readouterr()
    return leaving.value.code, out, err


def test_a_machine_without_the_batch_system(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, out, err = command(capfd, "convert", TRACE, tmp_path / "s", "--cluster", "pbs")
    assert (status, out) == (2, "")
    assert err == (
        "vani: --cluster pbs: no qsub on the PATH; run this where jobs are submitted, such as a login node\n"
    )


def test_a_job_without_a_size(jobs, tmp_path, capfd):
    status, out, err = command(capfd, "convert", TRACE, tmp_path / "s", "--cluster", "slurm")
    assert (status, out) == (2, "")
    assert err == (
        "vani: --cluster slurm: the cores of a job: neither given nor configured; "
        "try --cluster-option cores=8 --cluster-option memory=16GB\n"
    )


def test_a_network_interface_that_does_not_exist(jobs):
    options = ("cores=1", "memory=1GB", "interface=ib77")
    with pytest.raises(InputError, match=r"no cluster can be started .*ib77.*; correct the options"):
        open_jobs(BatchJobs("slurm", 1, tuple(tuple(o.split("=")) for o in options)))
    assert scripts(jobs) == []


def test_refused_job(jobs, tmp_path, capfd):
    (jobs / "refuse").write_text("sbatch: error: invalid partition specified: gold\n")
    options = [
        f"--cluster-option={o}" for o in ("queue=gold", "cores=1", "memory=1GB", "scheduler_host=127.0.0.1")
    ]
    status, out, err = command(
        capfd, "convert", TRACE, tmp_path / "s", "--cluster=slurm", "--workers=3", *options
    )
    assert (status, out) == (2, "")
    assert err == (
        "vani: --cluster slurm: sbatch refuses the job (sbatch: error: invalid partition specified: gold); "
        "correct the options, or Dask's jobqueue.yaml\n"
    )
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("command_line", [("profile",), ("report",), ("plot", "files", "-o", "x.svg")])
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--workers", "2"], "--workers goes with --cluster"),
        (["--cluster-option", "cores=2"], "--cluster-option goes with --cluster"),
        (["--cluster", "slurm", "--cluster-option", "cores"], "--cluster-option 'cores' is not KEY=VALUE"),
        (["--cluster", "slurm", "--scheduler", "threads"], "--scheduler and --cluster exclude each other"),
        (
            ["--scheduler-file", "f", "--scheduler", "threads"],
            "--scheduler and --scheduler-file exclude each other",
        ),
        (["--cluster", "slurm", "--workers", "0"], "Invalid value for '--workers'"),
        (["--cluster", "sge"], "Invalid value for '--cluster'"),
        (["--cluster", "slurm", "--cluster-option", "quue=x"], "unknown cluster option 'quue'; did you mean"),
        (["--scheduler", "slurm"], "unknown scheduler 'slurm'; known are threads, processes, "),
    ],
)
def test_options_that_do_not_fit_together(capfd, command_line, arguments, line):
    status, out, err = command(capfd, *command_line, TRACE, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"vani: {line}")
    assert err.count("\n") == 1


# ----------------------------------------------------------------------- TLS


def test_jobs_speak_tls_with_a_key_that_only_the_user_reads(jobs, tmp_path):
    with TemporaryDirectory(dir=tmp_path) as keys:
        cluster = open_jobs(asked("slurm", "cores=1", "memory=1GB"), keys=Path(keys))
        try:
            assert cluster.scheduler_address.startswith("tls://")
            [script] = scripts(jobs)
            assert f"--tls-key {keys}/key.pem" in script
            assert f"--tls-cert {keys}/certificate.pem" in script
            assert Path(keys).stat().st_mode & 0o077 == 0
            # A client without the key cannot talk to the scheduler.
            with pytest.raises(OSError), dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
                Client(cluster.scheduler_address.replace("tls", "tcp"), timeout=2)
        finally:
            cluster.close()


@pytest.mark.parametrize(
    ("options", "configured", "expected"),
    [
        ((), {}, True),
        (("tls=true",), {}, True),
        (("tls=false",), {}, False),
        ((), {"distributed.comm.tls.ca-file": "/etc/ca.pem"}, False),
        ((), {"jobqueue.slurm.scheduler-options": {"protocol": "ucx://"}}, False),
    ],
)
def test_tls_is_the_default_unless_dask_is_configured_otherwise(options, configured, expected):
    with dask.config.set(configured):
        assert speaks_tls(asked("slurm", *options)) is expected


@pytest.mark.parametrize(
    ("folder", "missing", "line"),
    [
        (
            "keys",
            True,
            "--cluster slurm: its own cluster uses TLS, which needs the package cryptography; pip ",
        ),
        (
            "my keys",
            False,
            "the TLS key would be stored here, but a job script cannot contain this name; name another",
        ),
    ],
)
def test_a_key_that_cannot_be(jobs, tmp_path, monkeypatch, folder, missing, line):
    if missing:
        monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=re.escape(line)):
        open_jobs(asked("slurm", "cores=1", "memory=1GB"), keys=tmp_path / folder)
    assert scripts(jobs) == []


# -------------------------------------------------------------------- end to end


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setsid") is None, reason="jobs need a process group of their own")
def test_a_profile_made_by_jobs_is_the_same(tmp_path, monkeypatch):
    jobs = put_commands(tmp_path, monkeypatch, {"sbatch": RUN, "scancel": STOP})
    configuration = tmp_path / "config"
    configuration.mkdir()
    (configuration / "jobqueue.yaml").write_text("jobqueue: {slurm: {cores: 1, memory: 1GB}}\n")
    monkeypatch.setenv("DASK_CONFIG", str(configuration))
    arguments = ["profile", str(TRACE), "--store", str(tmp_path / "there"), "--cluster", "slurm"]
    arguments += ["--workers", "2", "--cluster-option", "scheduler_host=127.0.0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "vani", *arguments], capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    assert done.stdout.decode() == vani.profile(TRACE, store=tmp_path / "here").to_yaml()
    assert all("--protocol tls://" in script for script in scripts(jobs))
    assert [p.name for p in (tmp_path / "there").iterdir() if p.name.startswith(".")] == []
    pids = [int(p.read_text()) for p in jobs.glob("*.pid")]
    assert len(pids) == len((jobs / "cancelled").read_text().split()) == 2
    deadline = time.monotonic() + 20
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline, "workers outlive their jobs"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setsid") is None, reason="jobs need a process group of their own")
def test_a_report_of_a_trace_submits_its_jobs_once(tmp_path, monkeypatch):
    jobs = put_commands(tmp_path, monkeypatch, {"sbatch": RUN, "scancel": STOP})
    arguments = ["report", str(TRACE), "--store", str(tmp_path / "there"), "--cluster", "slurm"]
    for option in ("cores=1", "memory=1GB", "scheduler_host=127.0.0.1"):
        arguments += ["--cluster-option", option]
    done = subprocess.run(
        [sys.executable, "-m", "vani", *arguments], capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    assert done.stdout.decode() == vani.report(TRACE, store=tmp_path / "here")
    assert len(list(jobs.glob("*.pid"))) == len((jobs / "cancelled").read_text().split()) == 1
