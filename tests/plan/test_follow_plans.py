"""Simulations that follow plans of OSTs and of paths."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vani import centre
from vani.errors import InputError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plan"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    for path in (*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*.ini")):
        shutil.copy(path, tmp_path)
    return tmp_path


def scenario(desk: Path, text: str) -> Path:
    path = desk / "scenario.yaml"
    path.write_text(f"schema: vani.scenario/1\n{text}")
    return path


def test_files_are_on_the_osts_of_their_plan(desk):
    plan = centre.plan_place(desk / "ior-files.yaml", desk / "testbed-empty.yaml", method="balanced")
    (desk / "plan.yaml").write_text(plan.model_copy(update={"pin": True}).to_yaml())
    found = centre.plan_simulate(
        scenario(
            desk,
            "machine: {snapshot: testbed-empty.yaml, target: 1.0e8}\njobs: ior-files.yaml\nseeds: [1, 2, 3]\n"
            "variants:\n- {name: lustre, placement: {policy: random_start}}\n- {name: planned, plans: [plan.yaml]}\n",
        )
    )
    lustre, planned = found.outcomes
    assert planned.ost_cost == pytest.approx(plan.after.ost_cost, rel=1e-6)
    assert planned.ost_cost < lustre.ost_cost
    assert planned.makespan_s < lustre.makespan_s
    assert {one.kind for one in found.inputs} == {"scenario", "snapshot", "plan", "jobs", "layout"}


def test_plan_for_other_paths_is_refused_and_one_better_left_to_lustre_named(desk):
    plan = centre.plan_place(desk / "ior-files.yaml", desk / "testbed-empty.yaml")
    (desk / "plan.yaml").write_text(plan.to_yaml())
    text = "machine: {snapshot: testbed-empty.yaml, target: 1.0e8}\njobs: ior-files.yaml\nplans: [plan.yaml]\n"
    found = centre.plan_simulate(scenario(desk, text))
    assert any("leaves the choice to Lustre" in left.reason for left in found.no_data)
    (desk / "plan.yaml").write_text(plan.model_copy(update={"pin": True}).to_yaml().replace("/ior/", "/other/"))
    with pytest.raises(InputError, match="no job of the scenario writes that"):
        centre.plan_simulate(scenario(desk, text))


def test_compute_nodes_keep_to_the_forwarding_nodes_of_a_plan_of_paths(desk):
    plan = centre.plan_path(desk / "table-3-jobs.yaml", desk / "table-3-now.yaml", pack=True)
    (desk / "plan.yaml").write_text(plan.to_yaml())
    text = "machine: {snapshot: table-3-now.yaml, target: 1.0e9}\njobs: table-3-jobs.yaml\nplans: [plan.yaml]\n"
    found = centre.plan_simulate(scenario(desk, text))
    stages = {one.kind: one for one in found.outcomes[0].by_stage}
    moving = [job.name for job in found.outcomes[0].jobs]
    used = {one.number for job in plan.jobs if job.name in moving for one in job.map}
    assert (stages["io_node"].used, stages["io_node"].members) == (len(used), 4)


def test_a_plan_of_paths_for_another_machine_is_refused(desk):
    plan = centre.plan_path(desk / "table-3-jobs.yaml", desk / "table-3-now.yaml")
    (desk / "plan.yaml").write_text(plan.to_yaml())
    text = "machine: {io_nodes: 2, targets: 12, target: 1.0e9}\njobs: table-3-jobs.yaml\nplans: [plan.yaml]\n"
    with pytest.raises(InputError, match="the plan uses I/O node 4 of the snapshot, the machine has 2"):
        centre.plan_simulate(scenario(desk, text))
