"""Documents of older versions are read as the newest version would express them."""

from __future__ import annotations

import pytest
import yaml

from vani.errors import DocumentError
from vani.schema.document import advice_2, dumps, loads, profile_2, profile_3, system_2
from vani.schema.profile import Profile
from vani.schema.system import System

OLD = "tests/data/profiles/cm1.yaml"


@pytest.fixture(scope="module")
def old(pytestconfig):
    return (pytestconfig.rootpath / OLD).read_text(encoding="utf-8")


def test_the_kept_profile_is_of_the_first_version(old):
    assert yaml.safe_load(old)["schema"] == "vani.profile/1"


def test_profile_of_the_first_version_is_lifted_with_null_for_missing_measures(old):
    profile = loads(old, Profile)
    assert profile.schema_ == "vani.profile/3"
    assert (profile.verdict, profile.unseen, profile.patterns, profile.storage.mounts) == (None,) * 4
    io = profile.workflow.io
    assert (io.ops.sync, io.time_s.sync, io.calls, io.metadata_kinds, io.bandwidth.write_synced) == (
        None,
    ) * 5
    assert profile.workflow.library_time_s is None
    assert profile.folders is None
    assert io.ops.all == io.ops.read + io.ops.write + io.ops.metadata
    assert loads(dumps(profile), Profile) == profile


def test_shares_of_the_run_are_recomputed_by_the_one_definition(old):
    profile = loads(old, Profile)
    for entity in (profile.workflow, *profile.apps):
        if entity.io.busy_s.total is not None and entity.runtime_s:
            share = min(1.0, entity.io.busy_s.total / entity.runtime_s)
            assert entity.io_time_share == pytest.approx(share)
    slowest = [a.balance.slowest_io_time_s for a in profile.apps if a.balance and a.balance.slowest_io_time_s]
    if slowest:
        assert profile.workflow.io_time_share_slowest == pytest.approx(
            max(slowest) / profile.workflow.runtime_s
        )


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"workflow": 7, "apps": "x"},
        {
            "workflow": {"runtime_s": "long", "io": []},
            "apps": [None, 3, {"io": {"busy_s": 1}, "runtime_s": 0}],
        },
        {"workflow": {"runtime_s": 0, "io": {"busy_s": {"total": 1}}}, "apps": []},
    ],
)
def test_lift_passes_unknown_parts_to_the_model(tree):
    before = repr(tree)
    lifted = profile_2({"schema": "vani.profile/1", **tree})
    assert lifted["schema"] == "vani.profile/2"
    assert repr(tree) == before, "a step leaves its argument be"


def test_a_profile_of_the_second_version_keeps_the_number_of_its_job():
    tree = {"schema": "vani.profile/2", "job": {"nodes": 1, "job_id": "4711"}}
    assert profile_3(tree) == {"schema": "vani.profile/3", "job": {"nodes": 1, "id": "4711"}}
    assert profile_3({"schema": "vani.profile/2", "job": 7})["job"] == 7
    assert tree["job"] == {"nodes": 1, "job_id": "4711"}, "a step leaves its argument be"


def test_advice_of_the_first_version_has_no_verdict():
    assert advice_2({"schema": "vani.advice/1", "damage": None}) == {"schema": "vani.advice/2", "damage": None}


def test_a_broken_document_of_the_first_version_is_refused_in_one_line(old):
    with pytest.raises(DocumentError, match=r"workflow"):
        loads(old.replace("workflow:", "workflow: 7\nworkfl0w:"), Profile)


CURVE = """schema: vani.system/1
name: mine
forwarding:
  direct_access: true
  curve:
  - {io_nodes: 1, bandwidth: 1.0e+9}
  - {io_nodes: 2, bandwidth: 2.0e+9, deviation: 1.0e+8}
"""


def test_curve_of_a_first_version_system_has_unknown_conditions():
    system = loads(CURVE, System)
    assert system.schema_ == "vani.system/2"
    assert system.forwarding.direct_access is True
    (curve,) = system.forwarding.curves
    assert [(one.io_nodes, one.bandwidth, one.deviation) for one in curve.points] == [
        (1, 1e9, 0),
        (2, 2e9, 1e8),
    ]
    assert (curve.operation, curve.layout, curve.nodes, curve.is_complete) == (None, None, None, False)
    assert loads(dumps(system), System) == system


def test_first_version_system_without_a_curve_has_none():
    empty = CURVE.split("  curve:", maxsplit=1)[0]
    for text in (empty, empty + "  curve: []\n", "schema: vani.system/1\nname: mine\n"):
        system = loads(text, System)
        assert system.forwarding is None or system.forwarding.curves == []


def test_old_curve_is_not_a_key_of_the_newest_version():
    with pytest.raises(DocumentError, match="curve"):
        loads(CURVE.replace("vani.system/1", "vani.system/2"), System)


@pytest.mark.parametrize("layer", [None, 7, [], {"curve": 7}, {"curve": [{}], "curves": []}])
def test_lift_of_a_system_passes_unknown_parts_to_the_model(layer):
    tree = {"schema": "vani.system/1", "forwarding": layer}
    before = repr(tree)
    assert system_2(tree) == {"schema": "vani.system/2", "forwarding": layer}
    assert repr(tree) == before, "a step leaves its argument be"
