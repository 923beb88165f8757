"""`judge`, not another rule, passes the layout that one rule recommends to those whose settings must match it."""

from __future__ import annotations

import pytest
from builders import profile, shared, system

from vani.advisors.catalogue import find
from vani.advisors.judge import judge
from vani.advisors.placement import lustre_under
from vani.advisors.rule import Finding, Gain, Target
from vani.schema.advice import Advice, ProfileRef, Recommendation, SystemRef
from vani.units import GiB, MiB

PATH = "/lustre/out"
DEFAULT = "(the default stripes)"
ADVISED = "(the stripes that LUS002 recommends)"


def advise(a_system=None, **options) -> Advice:
    file = shared(
        PATH, interface="mpiio", processes=128, written=32 * GiB, transfer=4 * MiB, size=32 * GiB, busy_s=10
    )
    layer = {"layer": "mpiio", "collective_share": 1.0}
    return judge(
        profile([file], processes=128, nodes=8, interfaces=[layer]),
        a_system or system(),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        **options,
    )


def of(rule: str, advice: Advice) -> Recommendation | None:
    return next((one for one in advice.recommendations if one.rule == rule), None)


def aggregators(advice: Advice) -> Recommendation:
    found = of("MIO002", advice)
    assert found is not None
    return found


@pytest.mark.parametrize("per_node", [2, 4])
def test_aggregators_match_the_stripes_as_the_users_thresholds_have_them(per_node):
    advice = advise(thresholds={"LUS002": {"collective_per_node": per_node}})
    stripes = of("LUS002", advice)
    assert f"on {stripes.recommended['stripe_count']} targets" in aggregators(advice).reason
    assert ADVISED in aggregators(advice).reason


def test_a_stripe_for_each_node_needs_no_hint():
    advice = advise(thresholds={"LUS002": {"collective_per_node": 1}})
    assert of("LUS002", advice).recommended["stripe_count"] == 8
    assert of("MIO002", advice) is None
    (silent,) = [each.why for each in advice.no_recommendation if each.rule == "MIO002"]
    assert silent.endswith("are what ROMIO uses by default")
    assert "the stripes that LUS002 recommends" in silent


@pytest.mark.parametrize(
    "options",
    [
        {"thresholds": {"LUS002": {"min_bytes": "1T"}}},
        {"ignore": ["LUS002"]},
        {"select": ["MIO002"]},
    ],
    ids=["too small for the user", "ignored", "not asked"],
)
def test_aggregators_match_the_default_stripes_without_other_recommendations(options):
    advice = advise(system(stripe_count=4), **options)
    assert of("LUS002", advice) is None
    assert DEFAULT in aggregators(advice).reason


def test_aggregators_do_not_match_stripes_abandoned_for_other_storage(monkeypatch):
    mover = find("BB002")
    moved = Finding(
        target=Target("file", PATH),
        reason="it moves",
        confidence=1.0,
        touched_s=10.0,
        recommended={"dir": "/nvme"},
        current={},
        evidence=(),
        gain=Gain("write_time_s", 10.0, 0.0, 0.0, 0.0, "none is left"),
        files=frozenset({PATH}),
    )
    assert mover.settles == "location"
    monkeypatch.setattr(mover, "check", lambda *_: [moved])
    advice = advise(system(stripe_count=4))
    assert of("BB002", advice) is not None
    assert of("LUS002", advice) is None
    assert DEFAULT in aggregators(advice).reason


def test_default_on_all_targets_is_their_number():
    advice = advise(system(targets=64, stripe_count=-1))
    assert of("LUS002", advice) is None
    assert DEFAULT in aggregators(advice).reason


def test_stripe_size_is_not_advised_if_it_makes_no_difference():
    assert of("LUS002", advise(system(targets=64, stripe_count=-1))) is None


def test_the_figures_that_the_stripes_rest_on_are_evidence_of_both():
    advice = advise()
    stripes = {one.attribute for one in of("LUS002", advice).evidence if one.attribute.startswith("system.")}
    assert stripes
    assert stripes <= {one.attribute for one in aggregators(advice).evidence}


def test_unexpected_file_system_is_reported():
    other = system(file_system="nfs", mount="/lustre")
    told = profile([shared(PATH)])
    assert lustre_under(PATH, told, other).endswith("which is nfs, not Lustre")
    assert lustre_under(PATH, told, other, but="neither Lustre nor GPFS").endswith(
        "which is nfs, neither Lustre nor GPFS"
    )
