"""The stand-in at work: `striped_file_system.py` mounted, its programs compiled, its description.

    python stand_in.py [KIND [MACHINE]]

mounts it, and lets `vani tune` run one of the programs of `programs.c` there, with the advice that follows from the
profile of a traced run in `profiles.json.gz`. It needs Linux with FUSE, MPICH, and `vani-io[demo,tune]`.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from mounting import impossible, mounted

import vani.demo
from vani.demo.striped_model import MACHINES, machine_of

HERE = Path(__file__).resolve().parent
KINDS = (
    "small-requests", "large-requests", "strided-collective", "file-per-process", "small-files", "read-again",
    "flush-bound", "compute",
)  # fmt: skip
PROCESSES = 4
DEMO = "many slow targets"
"""The machine of `vani demo`, whose description has a measured curve."""
TRACED = "/stand-in"
"""The mount in `profiles.json.gz`."""


def without_mpi() -> str:
    """Why its programs cannot run here; empty where they can."""
    for program in ("mpicc.mpich", "mpiexec.mpich"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: apt install mpich libmpich-dev)"
    return ""


def described(machine: str, mount: Path) -> dict[str, Any]:
    """A system.yaml for the stand-in. Its type is `lustre` because its layouts are set as those of Lustre are."""
    figures = machine_of(machine)
    disk = {
        "name": "stand-in",
        "type": "lustre",
        "mounts": [str(mount)],
        "targets": figures.targets,
        "metadata_servers": 1,
        "bandwidth_per_target": {"read": figures.target_rate, "write": figures.target_rate},
        "bandwidth_per_client": {"read": figures.client_rate, "write": figures.client_rate},
        "metadata_ops_per_s": 1 / figures.metadata_s,
        "stripe_count": figures.stripe_count,
        "stripe_size": figures.stripe_size,
        "dom_size": figures.mdt_bytes,
        "layout_policy": "free",
    }
    return {"schema": "vani.system/2", "name": f"stand-in: {machine}", "file_systems": [disk]}


def compiled(folder: Path) -> Path:
    """The programs, compiled."""
    program = folder / "programs"
    subprocess.run(["mpicc.mpich", "-O2", str(HERE / "programs.c"), "-o", str(program), "-ldl"], check=True)
    return program


def command(program: Path, kind: str, folder: str) -> list[str]:
    return ["mpiexec.mpich", "-n", str(PROCESSES), str(program), kind, folder]


def environment() -> dict[str, str]:
    """Variables for programs that find `lfs` of this folder first."""
    return os.environ | {"PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}"}


def profile(machine: str, kind: str, mount: Path) -> dict[str, Any]:
    """The profile of a traced run on the stand-in, as if it had been mounted here.

    On a machine without traces it is of the one whose targets are together nearly as fast, as a user may have it of
    another machine.
    """
    text = gzip.decompress((HERE / "profiles.json.gz").read_bytes()).decode()
    figures = machine_of(machine)
    if machine not in MACHINES:
        machine = min(MACHINES, key=lambda name: abs(MACHINES[name].total_rate - figures.total_rate))
    traced: dict[str, Any] = json.loads(text)[machine][kind]
    return json.loads(json.dumps(traced).replace(TRACED, str(mount)))  # type: ignore[no-any-return]


def tune(
    machine: str, kind: str, mount: Path, folder: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """`vani tune` of a program on the stand-in, with its documents in `folder`."""
    (folder / "profile.json").write_text(json.dumps(profile(machine, kind, mount)))
    system = described(machine, mount)
    if machine == DEMO:
        of_demo = yaml.safe_load((Path(vani.demo.__file__).parent / "striping" / "system.yaml").read_text())
        system["file_systems"][0]["stripe_curves"] = of_demo["file_systems"][0]["stripe_curves"]
    (folder / "system.yaml").write_text(yaml.safe_dump(system, sort_keys=False))
    data = mount / "run"
    data.mkdir(exist_ok=True)
    words = [
        sys.executable,
        "-m",
        "vani",
        "tune",
        "--data",
        str(data),
        "--clean",
        "--profile",
        "profile.json",
    ]
    words += ["--system", "system.yaml", *options, "--", *command(folder / "programs", kind, "{data}")]
    return subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def main(arguments: Sequence[str]) -> None:
    kind, machine = [*arguments, *("large-requests", "many slow targets")[len(arguments) :]]
    reason = impossible() or without_mpi()
    if reason:
        raise SystemExit(f"there is no stand-in here: {reason}")
    with tempfile.TemporaryDirectory() as name, mounted(machine) as mount:
        folder = Path(name)
        compiled(folder)
        figures = ", ".join(f"{key} {value}" for key, value in asdict(machine_of(machine)).items())
        print(f"{machine}, a stand-in: {figures}\n{kind}, 4 processes:")
        done = tune(machine, kind, mount, folder)
        print(done.stdout, end="")
        if done.returncode:
            raise SystemExit(done.stderr)
        if (folder / "tuned.sh").is_file():
            print((folder / "tuned.yaml").read_text().partition("\nsettings:")[2])


if __name__ == "__main__":
    main(sys.argv[1:])
