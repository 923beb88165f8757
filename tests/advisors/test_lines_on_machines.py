"""Every line that a rule prints for a bundled machine, run by sh with stand-ins for that machine's commands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from builders import profile
from test_cases import load_cases, plain, repeated

from vani.advisors.catalogue import find
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, SystemRef
from vani.systems import known_systems, load_system

# Each starts the command after its options once, with the variables of a single process.
LAUNCHERS = {
    "srun": "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0",
    "flux": "FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1 FLUX_TASK_LOCAL_ID=0",
    "jsrun": "JSM_NAMESPACE_RANK=0 JSM_NAMESPACE_SIZE=1 JSM_NAMESPACE_LOCAL_RANK=0",
    "mpirun": "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0",
    "mpiexec": "PMI_RANK=0 PMI_SIZE=1 PMI_LOCAL_RANK=0 PMIX_RANK=0 PLE_RANK_ON_NODE=0",
}
START = """#!/bin/sh
echo "{name} $*" >>"$RECORD"
case $1 in getattr) echo 1; exit;; run) shift;; exec) shift 3;; esac
while :; do case $1 in -n|-np|--ppn|--map-by) shift 2;; -*) shift;; *) break;; esac; done
{variables} exec "$@"
"""
# Only recorded, since it has no effect on the program's files.
RECORDED = [
    "lfs", "scontrol", "beegfs", "beegfs-ctl", "daos", "mmchattr", "beeond", "unifyfs", "gkfs_daemon", "llio_transfer",
    "solver", "sim", "look at it", "PROGRAM", "hostname",
]  # fmt: skip
OF_MACHINE = {
    "slurm": {"srun"}, "flux": {"flux"}, "lsf": {"jsrun"}, "pbs": {"mpirun"}, "pals": {"mpiexec"}, "pjm": {"mpiexec"},
}  # fmt: skip
ONE_OF_EACH = ["aurora", "lassen"]


def commands(folder: Path) -> dict[str, str]:
    """An environment whose PATH contains only the stand-ins."""
    programs = folder / "bin"
    programs.mkdir()
    scripts = {name: START.format(name=name, variables=values) for name, values in LAUNCHERS.items()}
    scripts |= {name: f'#!/bin/sh\necho "{name} $*" >>"$RECORD"\n' for name in RECORDED}
    for name, script in scripts.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    nodes = folder / "nodes"
    nodes.write_text("n1\n")
    variables = {
        "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "n1", "PBS_NODEFILE": str(nodes), "LSB_DJOB_HOSTFILE": str(nodes),
        "PJM_NODE": "1", "PJM_LOCALTMP": f"{folder}/root/local", "PJM_SHAREDTMP": f"{folder}/root/shared",
        "TMPDIR": f"{folder}/root/tmp", "USER": "me", "HOME": f"{folder}/root/home", "BBPATH": f"{folder}/root/bb",
        "DW_JOB_STRIPED": f"{folder}/root/dw", "DW_JOB_PRIVATE": f"{folder}/root/dwp", "SLURM_JOB_ID": "7",
        "LSB_JOBID": "7", "PBS_JOBID": "7",
    }  # fmt: skip
    return {"PATH": f"{programs}:/usr/bin:/bin", "RECORD": str(folder / "record"), **variables}


def below(line: str, root: Path) -> str:
    """The line with each absolute path moved below `root`."""
    return re.sub(r"""(?<![\w.$})*"'/:@-])(["']?)/(?!dev/null|usr|bin)(?=[\w.])""", rf"\g<1>{root}/", line)


def advice_on(name: str, families: tuple[str, ...]) -> dict[str, tuple[list, list[list[str]]]]:
    """Files of each case and the lines of its recommendations, for rules whose names start with one of these."""
    machine, lines = load_system(name), {}
    for parameter in load_cases():
        rule, case = parameter.values
        if not rule.startswith(families):
            continue
        settings = plain(case.get("profile", {}))
        files = [file for many in settings.pop("files", []) for file in repeated(**many)]
        advice = judge(
            profile(files, **settings),
            machine,
            profile_ref=ProfileRef(path=None, sha256=""),
            system_ref=SystemRef(name=None, sha256=""),
            select=[rule],
            thresholds={find(rule).id: case.get("thresholds", {})},
        )
        lines[parameter.id] = (files, [recommendation.apply for recommendation in advice.recommendations])
    return lines


@pytest.mark.parametrize("machine", ONE_OF_EACH)
@pytest.mark.slow
def test_every_line_that_starts_processes_runs_on_its_machine(machine, tmp_path):
    run_all(machine, ("BB", "CKP", "FWD", "WFL"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("machine", known_systems())
def test_every_line_runs_on_its_machine(machine, tmp_path):
    run_all(machine, ("",), tmp_path)


def run_all(machine: str, families: tuple[str, ...], tmp_path: Path) -> None:
    described = load_system(machine)
    wanted = OF_MACHINE.get(described.launcher or described.scheduler or "", set(LAUNCHERS))
    seen = set()
    for case, (files, recommendations) in advice_on(machine, families).items():
        for lines in recommendations:
            text = "\n".join(lines)
            if text not in seen:
                seen.add(text)
                run_below(tmp_path / f"root{len(seen)}", lines, files, case, wanted)
    assert seen


def run_below(root: Path, lines: list[str], files: list, case: str, wanted: set[str]) -> None:
    root.mkdir()
    (root / "chain.sh").touch()
    environment = commands(root)
    for name in ("local", "shared", "tmp", "home", "bb", "dw", "dwp"):
        (root / "root" / name).mkdir(parents=True)
    sources = {}
    for file in files[:200]:
        path = Path(f"{root}{file['path']}" if file["path"].startswith("/") else root / file["path"])
        if len(os.fspath(path)) < 200 and path.name.isprintable():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["path"])
            sources[path] = file["path"]
    script = "\n".join(below(line, root) for line in lines)
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), (case, script)
    record = root / "record"
    calls = record.read_text().splitlines() if record.exists() else []
    used = {call.split()[0] for call in calls}
    assert used & set(LAUNCHERS) <= wanted, (case, script)
    # Whatever was copied or linked, each file of the run ends up in its place with its content.
    for path, text in sources.items():
        assert path.read_text() == text, (case, script)
