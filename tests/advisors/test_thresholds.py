"""Each threshold of each rule is covered by a case whose result changes if it moves by a twentieth, or by one.

So there is a case just below or above each. An inherited threshold is covered by a case of one of its heirs.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pytest
from builders import profile, system
from test_cases import load_cases, plain, repeated

from vani.advisors.catalogue import rules
from vani.advisors.judge import judge
from vani.advisors.rule import Number, Rule
from vani.schema.advice import ProfileRef, SystemRef
from vani.schema.profile import Profile
from vani.schema.system import System

STEP = 0.05

WITHOUT_A_CASE: dict[str, str] = {
    "FLD001.spare": "names a setting of `vani tune` alone, no recommendation: as in BB002, whose cases are at its borders",
    "FLD001.memory_share": "the same",
    "POS005.spare": "decides on a line to copy the file, which is no part of the outcome; BB001's cases are at its borders",
    "POS005.memory_share": "the same",
    "POS005.small": "the same, where the room on a node is unknown",
}
"""Thresholds without a case, with the reason."""


class Made(NamedTuple):
    """A case, ready to be judged."""

    profile: Profile
    system: System
    asked: list[str]
    thresholds: dict[str, Number | str]


@cache
def cases() -> dict[str, list[Made]]:
    found: dict[str, list[Made]] = {rule.id: [] for rule in rules()}
    for rule, case in (parameter.values for parameter in load_cases()):
        settings = plain(case.get("profile", {}))
        files = [made for one in settings.pop("files", []) for made in repeated(**one)]
        asked = [rule, *case.get("together_with", [])]
        machine = system(**plain(case.get("system", {})))
        found[rule].append(Made(profile(files, **settings), machine, asked, case.get("thresholds", {})))
    return found


def outcome(rule: str, case: Made, moved: dict[str, Number]) -> tuple[list[Any], list[str]]:
    """Everything that the rule states, except the figures behind it."""
    advice = judge(
        case.profile,
        case.system,
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=case.asked,
        thresholds={rule: case.thresholds | moved},
    )
    said = [one.model_dump(exclude={"evidence"}) for one in advice.recommendations if one.rule == rule]
    return said, [one.why for one in advice.no_recommendation if one.rule == rule]


@cache
def untouched(rule: str) -> list[tuple[list[Any], list[str]]]:
    return [outcome(rule, case, {}) for case in cases()[rule]]


@cache
def is_held(rule: type[Rule], name: str) -> bool:
    value = rule.thresholds()[name]
    step = max(1, int(value * STEP)) if isinstance(value, int) else value * STEP
    return any(
        outcome(rule.id, case, {name: new}) != before
        for new in (value + step, max(0, value - step))
        for case, before in zip(cases()[rule.id], untouched(rule.id), strict=True)
        if name not in case.thresholds
    )


def heirs(rule: type[Rule], name: str) -> list[type[Rule]]:
    """Rules that inherit the threshold from the same class."""
    (owner,) = [base for base in rule.__mro__ if name in vars(base)][:1]
    return [other for other in rules() if issubclass(other, owner)]


@pytest.mark.slow
@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_each_threshold_has_a_case_just_below_or_above_it(rule):
    without = {
        name for name in rule.thresholds() if not any(is_held(heir, name) for heir in heirs(rule, name))
    }
    assert without == {key.partition(".")[2] for key in WITHOUT_A_CASE if key.startswith(f"{rule.id}.")}
