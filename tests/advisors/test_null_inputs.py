"""Each number of a profile behind a recommendation may be null; the rule still gives an answer.

Times are left out: if they are null, all are, and no rule that needs them is evaluated (test_quick_advice.py).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from builders import put
from pydantic import ValidationError
from test_thresholds import Made, cases

from vani.advisors.judge import judge
from vani.schema.advice import Advice, ProfileRef, SystemRef
from vani.schema.profile import Profile

TIME = re.compile(r"_s\b|\bslowest_rank$")


def asked(rule: str, case: Made, profile: Profile) -> Advice:
    return judge(
        profile,
        case.system,
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=case.asked,
        thresholds={rule: case.thresholds},
    )


@cache
def without() -> list[Any]:
    """For each rule and nullable attribute, the first case that depends on it, and the profile without it."""
    found: dict[tuple[str, str], Any] = {}
    for rule, made in cases().items():
        for case in made:
            for one in asked(rule, case, case.profile).recommendations:
                for path in {evidence.attribute for evidence in one.evidence if one.rule == rule}:
                    key = (rule, re.sub(r"\[\d+\]", "[]", path))
                    if key in found or path.startswith("system.") or TIME.search(path):
                        continue
                    tree = case.profile.model_dump(by_alias=True)
                    try:
                        put(tree, path, None)
                        found[key] = (case, Profile.model_validate(tree), path)
                    except (KeyError, IndexError, TypeError, ValidationError):
                        continue
    return [pytest.param(rule, *made, id=f"{rule}-{path}") for (rule, path), made in found.items()]


@pytest.mark.slow
def test_rule_answers_if_a_number_it_depends_on_is_null():
    for parameter in without():
        rule, case, profile, path = parameter.values
        advice = asked(rule, case, profile)
        answers = [answer.reason for answer in advice.recommendations if answer.rule == rule]
        answers += [answer.why for answer in advice.no_recommendation if answer.rule == rule]
        assert answers, (rule, path)
        assert not any("None" in answer for answer in answers), (rule, path)
