"""The example that traces a small MPI program in CI: its workflow's steps are run unchanged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from mpi_compilers import compiles_mpi

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "ci-mpi"
WORKFLOW = yaml.safe_load((EXAMPLE / "github-workflow.yml").read_text())
STEPS = WORKFLOW["jobs"]["check"]["steps"]
RUN = {step["name"]: step["run"] for step in STEPS if "run" in step}
RUN["By hand"] = (EXAMPLE / "README.md").read_text().partition("```bash\n")[2].partition("```")[0]

mpi = pytest.mark.skipif(
    not compiles_mpi("mpicc.mpich")
    or any(shutil.which(program) is None for program in ("mpirun.mpich", "strace", "bash")),
    reason="no MPICH with its headers, or no strace",
)


@pytest.fixture
def place(tmp_path):
    """A copy of the example with this machine's `mpicc`, `mpirun` and `vani`."""
    folder = tmp_path / "a clone"
    shutil.copytree(EXAMPLE, folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, line in {
        "mpicc": 'exec mpicc.mpich "$@"',
        "mpirun": 'exec mpirun.mpich "$@"',
        "vani": f'exec "{sys.executable}" -m vani "$@"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "VANI_CACHE": str(tmp_path / "cache"),
    }

    def step(name: str) -> subprocess.CompletedProcess[str]:
        # Like GitHub's runner.
        shell = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", RUN[name]]
        return subprocess.run(
            shell, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    step.folder = folder
    return step


@mpi
@pytest.mark.slow
def test_the_steps_build_trace_and_pass(place):
    for name in ("Build", "Trace", "Check"):
        done = place(name)
        assert done.returncode == 0, done.stderr + done.stdout
    assert (place.folder / "field.trace").is_dir()
    assert {"vani.sarif", "vani.xml"} <= {path.name for path in place.folder.iterdir()}


@mpi
@pytest.mark.slow
def test_the_commands_by_hand_pass(place):
    assert "vani check field.trace" in RUN["By hand"]
    done = place("By hand")
    assert done.returncode == 0, done.stderr + done.stdout


@mpi
@pytest.mark.slow
def test_a_change_that_writes_cell_by_cell_fails_with_its_cause(place):
    source = place.folder / "field.c"
    whole = "MPI_File_write_at_all(file, place, part, CELLS, MPI_DOUBLE, MPI_STATUS_IGNORE);"
    assert whole in source.read_text()
    cells = (
        "for (int i = 0; i < CELLS; i += 1024) MPI_File_write_at(file, place + i * (MPI_Offset)sizeof *part, "
        "part + i, 1024, MPI_DOUBLE, MPI_STATUS_IGNORE);"
    )
    for name in ("Build", "Trace"):
        assert place(name).returncode == 0
    subprocess.run([sys.executable, "-m", "vani", "check", "field.trace", "--save"], cwd=place.folder, check=True,
                   env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True)  # fmt: skip
    source.write_text(source.read_text().replace(whole, cells))
    shutil.rmtree(place.folder / "field.trace")
    (place.folder / "field.out").unlink()
    for name in ("Build", "Trace"):
        assert place(name).returncode == 0
    done = place("Check")
    assert done.returncode == 1
    assert "::error" in done.stdout
    assert "writes to field.out shrank from " in done.stdout
    assert "large-writes" in done.stdout


def test_recorder_is_built_only_if_missing_from_the_cache(tmp_path):
    cache = next(step for step in STEPS if step.get("id") == "recorder")
    build = next(step for step in STEPS if step.get("name") == "Recorder")
    assert build["if"] == "steps.recorder.outputs.cache-hit != 'true'"
    assert cache["with"]["path"] == "~/recorder"
    assert "env.RECORDER_VERSION" in cache["with"]["key"]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "librecorder.so").touch()
    done = subprocess.run(
        ["sh", EXAMPLE / "build-recorder.sh", tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"Recorder is there: {tmp_path}\n"


def test_workflow_caches_pip_downloads_and_the_policy_is_valid():
    python = next(step for step in STEPS if step.get("uses", "").startswith("actions/setup-python"))
    assert python["with"]["cache"] == "pip"
    assert tomllib.loads((EXAMPLE / "vani.toml").read_text())["schema"] == "vani.policy/1"
