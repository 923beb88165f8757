"""Whether paths are still valid on the present machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plan.path_builders import TABLE_3_JOBS, TABLE_3_NOW, jobs_of, machine, node, planned
from vani.centre.plan.check import Findings, check_paths
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.snapshot import Snapshot


def now(**changes: Any) -> Snapshot:
    """A machine with two forwarding nodes; f0 has the job, s0 with OST 0 its bytes."""
    tree = machine([node(), node()], [[node()], [node()]]).model_dump(by_alias=True)
    for key, change in changes.items():
        tree[key] = change(tree[key])
    return Snapshot.model_validate(tree)


PLAN = planned(jobs_of({"iobw": 0.5}), now(), pack=True)


def test_plan_is_valid_on_its_own_machine():
    assert check_paths(PLAN, now()) == Findings([], [], [])
    table = Snapshot.load(TABLE_3_NOW)
    assert check_paths(planned(Jobs.load(TABLE_3_JOBS), table), table) == Findings([], [], [])


@pytest.mark.parametrize(
    ("key", "change", "name", "reason"),
    [
        ("forwarding", lambda some: some[1:], "forwarding node f0", "it is not in the snapshot"),
        (
            "forwarding",
            lambda some: [some[0] | {"state": "degraded"}],
            "forwarding node f0",
            "it is degraded",
        ),
        ("ost", lambda some: [some[0] | {"state": "offline"}, some[1]], "OST 0", "it is offline"),
        (
            "storage",
            lambda some: [some[0] | {"state": "offline"}, some[1]],
            "storage node s0",
            "it is offline",
        ),
        (
            "storage",
            lambda some: [some[0] | {"ost": [1]}, some[1] | {"ost": [0]}],
            "OST 0",
            "it no longer belongs to s0",
        ),
        ("reach", lambda _: {"f0": ["s1"], "f1": ["s0"]}, "forwarding node f0", "it no longer reaches s0"),
        (
            "forwarding",
            lambda some: [some[0] | {"peak": {"iobw": 0.1}}],
            "forwarding node f0",
            "0 bytes per second are planned, its peak is 0",
        ),
    ],
)
def test_cause_of_a_broken_path_is_named(key, change, name, reason):
    found = check_paths(PLAN, now(**{key: change}))
    broken, unknown = found.broken, found.unknown
    assert [(one.name, one.reason) for one in broken] == [(name, reason)]
    assert unknown == []


def test_increased_load_is_a_note_and_unknown_load_is_not_compared():
    busy = now(forwarding=lambda some: [some[0] | {"load": 0.9}, some[1]])
    found = check_paths(PLAN, busy)
    broken, unknown, notes = found.broken, found.unknown, found.notes
    assert (broken, unknown) == ([], [])
    assert "not enough, unless its load includes the jobs of the plan" in notes[0]
    bare = now(forwarding=lambda some: [some[0] | {"peak": None}, some[1]])
    assert [one.reason for one in check_paths(PLAN, bare).unknown] == ["no peak of bytes per second"]


def test_plan_written_with_nine_digits_sends_no_more_than_before():
    # Three flows of a third each fill a target; their rounded shares add up to a little more.
    table = machine([node(0.0, 1e9)] * 7, [[node(0.5, 1.5e9), node(0.9, 1.5e9)], [node(0.3, 1.5e9)]])
    plan = planned(jobs_of({"iobw": 6.1e9, "nodes": 97}, {"iobw": 1e8, "nodes": 3}), table)
    shares = [
        job.model_copy(
            update={"flows": [one.model_copy(update={"share": one.share * (1 + 4e-9)}) for one in job.flows]}
        )
        for job in plan.jobs
    ]
    assert check_paths(plan.model_copy(update={"jobs": shares}), table).notes == []
