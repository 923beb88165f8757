"""Advice on profiles without times: no rule claims what it cannot know, and each states what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani
from vani.advisors.catalogue import rules
from vani.advisors.judge import advise_document, judge
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict
from vani.errors import InputError
from vani.models.run_time import seconds
from vani.schema.advice import ProfileRef, SystemRef
from vani.schema.profile import Profile
from vani.schema.system import System
from vani.systems import load_system

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


@pytest.fixture(scope="module")
def quick() -> Profile:
    return vani.profile(TRACES / "v3-ior-ssf-hdf5-4r", quick=True)


@pytest.mark.parametrize("machine", [None, "generic-lustre", "lassen"])
@pytest.mark.parametrize("name", ["v3-cm1like-16r", "v3-netcdf-pnetcdf-4r", "v3-bothpr-mpiio-mix-4r"])
@pytest.mark.sampled(5)
def test_every_rule_gives_the_reason_for_its_silence(name, machine):
    found = vani.profile(TRACES / name, quick=True)
    advice = advise_document(found, None if machine is None else load_system(machine))
    assert advice.recommendations == []
    assert {one.rule for one in advice.no_recommendation} == {rule.id for rule in rules()}
    whys = {one.why for one in advice.no_recommendation if rule_needs_times(one.rule)}
    assert whys == {
        "workflow.runtime_s is not known (--quick does not read time stamps); make the profile without --quick"
    }


def rule_needs_times(name: str) -> bool:
    return next(rule for rule in rules() if rule.id == name).needs_times


def test_all_listed_files_are_judged_if_none_is_most_important(quick):
    advice = advise_document(quick, files=1)
    assert advice.profile.files is None


class _Counting(Rule):
    """A rule that needs no times."""

    id = "TST001"
    name = "counting"
    family = "test"
    sources = ("none",)
    needs_times = False

    def check(self, profile: Profile, system: System) -> Verdict:
        calls = profile.workflow.io.ops.write
        return [
            Finding(
                target=Target("job"),
                reason="It writes.",
                confidence=0.5,
                touched_s=0.0,
                recommended={},
                current={},
                evidence=[Evidence("workflow.io.ops.write", calls)],
                gain=Gain("runtime_s", 2.0, 1.0, 1.0, 1.0, "a guess"),
            )
        ]


def test_rule_without_times_may_fire_but_promises_no_gain(quick, monkeypatch):
    monkeypatch.setattr("vani.advisors.judge.pick", lambda *_: [_Counting])
    advice = judge(
        quick,
        System(name="x", generic=False),
        profile_ref=ProfileRef(path=None, sha256="0" * 64),
        system_ref=SystemRef(name=None, sha256="0" * 64),
    )
    (one,) = advice.recommendations
    assert (one.severity, one.expected) == ("info", None)


def test_unexpected_null_time_is_an_error_of_the_profile():
    assert seconds(0.5) == 0.5
    with pytest.raises(InputError, match="a time is null"):
        seconds(None)
