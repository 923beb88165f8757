"""A job's program under the library that the hook for Slurm loads into it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.running_jobs import plan_running_jobs
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.prolog.state import State

SCRIPTS = Path(__file__).resolve().parents[2] / "vani" / "centre" / "prolog" / "slurm"
MIB = 1 << 20


def test_program_creates_its_files_according_to_its_jobs_plan(desk):
    state, known, site = State(desk.folder / "state"), desk.folder / "known", desk.folder / "site"
    job = {
        "name": "4 nodes", "nodes": 4, "processes": 4, "bytes": 160 * MIB, "runs": 8, "usual_stripes": 1,
        "pattern": {"layout": "shared", "request": MIB}, "io_s": {"low": 9, "median": 10, "high": 12, "runs": 8},
        "creations": [{"path": str(desk.folder / "work" / "out.0"), "size": 160 * MIB}],
    }  # fmt: skip
    known.mkdir()
    (known / "bt.yaml").write_text(json.dumps({"schema": "vani.jobs/1", "jobs": [job]}))
    ost = [{"index": n, "size": 1 << 36, "used": 0, "load": 0.0} for n in range(16)]
    (desk.folder / "now.yaml").write_text(json.dumps({"schema": "vani.snapshot/1", "ost": ost}))
    variables = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "bt", "SLURM_JOB_NUM_NODES": "4"}
    state.register(variables)
    rules = SharingRules(
        io_nodes=0, snapshot=desk.folder / "now.yaml", known=known, place_library=str(desk.built.library)
    )
    plan_running_jobs(state, rules, "7", now_s=0.0, say=print)
    shutil.copytree(SCRIPTS, site)
    (site / "vani.conf").write_text(f"VANI_STATE='{state.folder}'\n")
    done = subprocess.run(
        [site / "task-prolog"], env=variables, capture_output=True, text=True, check=True, timeout=60
    )
    exported = dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines())
    desk.run("sh", "-c", "cat source >out.0; cat source >other", **exported)
    osts = ",".join(map(str, JobPlan.load(state.file_of("7", "yaml")).layout.osts))
    placed = desk.placed()
    assert placed.keys() == {"out.0"}
    assert placed["out.0"].startswith("plain [0,-1) 8x")
    assert sorted(placed["out.0"].rpartition(":")[2].split(",")) == sorted(filter(None, osts.split(",")))
