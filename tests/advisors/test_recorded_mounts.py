"""Advice follows the file systems that the trace recorded, not those of the described machine."""

from __future__ import annotations

import pytest
from builders import profile, shared, system

from vani.advisors.judge import advise_document
from vani.advisors.placement import as_recorded
from vani.render.wording import judged_by
from vani.systems import load_system
from vani.units import GiB, MiB

PATH = "/work/run/out"


def run_on(kind: str, folder: str = "/work", **more):
    file = shared(PATH, processes=128, written=32 * GiB, transfer=4 * MiB, size=32 * GiB, busy_s=10)
    mounts = [{"dir": folder, "type": kind} | more]
    return profile([file], processes=128, nodes=8, change={"storage.mounts": mounts})


def why(advice, rule: str) -> str | None:
    return next((entry.why for entry in advice.no_recommendation if entry.rule == rule), None)


def first(advice, rule: str):
    return next((entry for entry in advice.recommendations if entry.rule == rule), None)


@pytest.mark.parametrize("kind", ["gpfs", "nfs", "wekafs", "panfs", "beegfs"])
def test_file_on_another_file_system_gets_no_stripes_of_lustre(kind):
    advice = advise_document(run_on(kind), load_system("generic-lustre"))
    assert first(advice, "LUS002") is None
    assert why(advice, "LUS002") == f"the data is on /work, which is {kind} by the trace's mount table, not Lustre"
    assert advice.notes[0] == f"/work is {kind} in the trace's mount table and lustre in generic-lustre: the trace takes precedence."
    assert advice.notes[0] in judged_by(advice)


@pytest.mark.parametrize(("kind", "generic"), [("nfs", True), ("wekafs", True), ("gpfs", False), ("ext4", False)])
def test_advice_states_if_a_file_system_has_no_settings(kind, generic):
    advice = advise_document(run_on(kind), load_system("generic-lustre"))
    assert any(f"Vani has no settings for {kind} (/work)" in note for note in advice.notes) is generic


def test_mount_of_the_described_type_needs_no_word():
    advice = advise_document(run_on("lustre"), load_system("generic-lustre"))
    assert first(advice, "LUS002") is not None
    assert advice.notes is None
    assert "notes" not in advice.model_dump()


def test_mount_of_lustre_takes_precedence_over_a_machine_with_gpfs():
    machine = system(file_system="gpfs", mount="/work")
    advice = advise_document(run_on("lustre"), machine)
    assert "not Lustre" not in (why(advice, "LUS002") or "")
    assert "/work is lustre in the trace's mount table and gpfs in testbed: the trace takes precedence." in advice.notes


def test_targets_that_the_trace_counts_bound_the_stripes_of_a_generic_description():
    of_many = advise_document(run_on("lustre"), load_system("generic-lustre"))
    of_few = advise_document(run_on("lustre", targets=6), load_system("generic-lustre"))
    assert first(of_many, "LUS002").recommended["stripe_count"] > 6
    assert first(of_few, "LUS002").recommended["stripe_count"] <= 6
    assert of_few.notes == ["/work has 6 storage targets in the trace, 48 in generic-lustre: the trace takes precedence."]


def test_machine_is_unchanged_if_the_trace_agrees_or_has_no_record():
    machine = load_system("generic-lustre")
    file = shared(PATH, processes=8, written=GiB)
    assert as_recorded(machine, profile([file])) is machine
    assert as_recorded(machine, run_on("lustre")) is machine


def test_deepest_mount_decides():
    file = shared(PATH, processes=128, written=32 * GiB, transfer=4 * MiB, size=32 * GiB, busy_s=10)
    mounts = [{"dir": "/work", "type": "nfs"}, {"dir": "/work/run", "type": "lustre"}]
    advice = advise_document(profile([file], change={"storage.mounts": mounts}), load_system("generic-lustre"))
    assert "nfs" not in (why(advice, "LUS002") or "")
