"""Advice before a run: settings from similar runs, weighted by probability."""

from __future__ import annotations

import pytest

from vani.centre.prediction.behaviour.advise_next import LikelyAdvice as Part
from vani.centre.prediction.behaviour.advise_next import weighed
from vani.schema.advice import Advice, Expected, NextRun, ProfileRef, Recommendation, SystemRef, Target


def setting(
    count: int = 8, *, rule: str = "LUS002", after: float = 40.0, path: str = "/s/run1/out"
) -> Recommendation:
    return Recommendation(
        rule=rule, name="stripe-count", severity="high", confidence=0.8, target=Target(kind="file", path=path), current={},
        recommended={"stripe_count": count}, evidence=[], reason="Few targets.", source=[],
        expected=Expected(metric="write_time_s", before=100.0, after=after, speedup=100 / after, low=1.5, high=4.0, method="m"),
        apply=[f"lfs setstripe -c {count} {path}"],
    )  # fmt: skip


def advice(*recommendations: Recommendation) -> Advice:
    return Advice(
        profile=ProfileRef(path=None, sha256=""), system=SystemRef(name="m", sha256=""),
        recommendations=list(recommendations), no_recommendation=[],
    )  # fmt: skip


def together(*parts: tuple[float, Advice]) -> Advice:
    return weighed(
        [Part(probability, one) for probability, one in parts],
        NextRun(application="a", user="u", processes=4, behaviours=[], default=None),
    )


def test_savings_are_weighted_by_the_probability_of_the_behaviour():
    (found,) = together((0.75, advice(setting())), (0.25, advice())).recommendations
    assert found.expected.after == pytest.approx(100 - 0.75 * 60)
    assert found.expected.low == 1.0
    assert found.confidence == pytest.approx(0.6)
    assert found.reason == "Few targets. The probability of this behaviour in the next run is 75 %."


def test_setting_that_suits_less_than_half_of_the_behaviours_keeps_its_default():
    found = together((0.6, advice()), (0.4, advice(setting())))
    assert found.recommendations == []
    assert [one.rule for one in found.no_recommendation] == ["LUS002"]
    assert "is only 40 %" in found.no_recommendation[0].why


def test_probabilities_of_behaviours_that_want_the_same_add_up():
    (found,) = together((0.4, advice(setting())), (0.4, advice(setting(path="/s/run2/out")))).recommendations
    assert found.confidence == pytest.approx(0.64)


def test_exclusive_settings_keep_the_one_with_the_largest_average_saving():
    found = together((0.55, advice(setting(8))), (0.45, advice(setting(16, after=99.0))))
    assert [one.recommended for one in found.recommendations] == [{"stripe_count": 8}]


def test_settings_for_several_files_of_one_run_are_kept_together():
    found = together((1.0, advice(setting(8), setting(16, path="/s/run1/other"))))
    assert [one.recommended["stripe_count"] for one in found.recommendations] == [8, 16]


def test_stripes_of_a_future_file_are_set_on_its_folder():
    (found,) = together((1.0, advice(setting()))).recommendations
    assert (found.target.kind, found.target.path) == ("directory", "/s/run1")
    assert found.apply == ["lfs setstripe -c 8 /s/run1"]
