"""Advice with measurements of `vani tune`, which replace the expectation of a model."""

from __future__ import annotations

import pytest

from vani.advisors.measured import Trial, trial_of, with_measured
from vani.render.advice import to_markdown
from vani.render.screen import to_text
from vani.render.script import advice_script as script
from vani.render.wording import measured_gain
from vani.schema.advice import (
    Advice,
    Expected,
    Measured,
    ProfileRef,
    Recommendation,
    SystemRef,
    Target,
    TunableSetting,
)
from vani.schema.profile import Verdict
from vani.schema.tuned import Setting


def measured(verdict: str = "proven", **more: object) -> Measured:
    values = {
        "speedup": 1.48, "low": 1.45, "high": 1.51, "runs": 2, "date": "2026-03-03", "machine": "testbed",
        "processes": 64, "nodes": 2, "this_processes": 64, "this_nodes": 2,
    }  # fmt: skip
    return Measured(verdict=verdict, **values | more)


def advised(rule: str, *tunable: TunableSetting, severity: str = "medium") -> Recommendation:
    expected = Expected(metric="io_time_s", before=9.0, after=3.0, speedup=3.0, low=2.0, high=4.0, method="")
    return Recommendation(
        rule=rule, name=rule.lower(), severity=severity, confidence=0.6, target=Target(kind="job"), current={},
        recommended={}, evidence=[], reason="", expected=expected, apply=["export A=1"], settings=[*tunable], source=[],
    )  # fmt: skip


def layout(options: str, folder: str = "/s") -> TunableSetting:
    return TunableSetting(kind="layout", folder=folder, values=[{"options": options}, {"options": "-c 99"}])


HINTS = TunableSetting(kind="hints", values=[{"cb_nodes": "8"}])
STAGED = TunableSetting(kind="environment", values=[{"TMPDIR": "/l"}])


def advice(*items: Recommendation) -> Advice:
    verdict = Verdict(
        matters="yes", share=0.5, share_slowest=0.5, is_lower_bound=False, why=None, sentence="It matters.", cause=None,
        where=None, remedy="first (FIRST)",
    )  # fmt: skip
    return Advice(
        profile=ProfileRef(path=None, sha256=""), system=SystemRef(name="testbed", sha256=""), verdict=verdict,
        recommendations=[advised("MAT001", severity="high"), *items], no_recommendation=[],
    )  # fmt: skip


ALL = advice(advised("LUS002", layout("-c 8 -S 4M")), advised("MIO002", HINTS), advised("POS001"), advised("BB001", STAGED))


def test_proven_settings_come_first_and_useless_ones_last():
    trials = [
        Trial(Setting(layout="-c 8 -S 4194304"), measured("no_gain", speedup=1.0, low=None, high=None)),
        Trial(Setting(environment={"TMPDIR": "/l"}), measured(speedup=1.1)),
        Trial(Setting(hints={"cb_nodes": "8"}), measured()),
    ]
    judged = with_measured(ALL, trials)
    assert [item.rule for item in judged.recommendations] == ["MAT001", "MIO002", "BB001", "POS001", "LUS002"]
    best, *_, last = judged.recommendations[1:]
    assert (best.expected, best.measured, best.severity, best.confidence) == (None, trials[2].measured, "high", 0.95)
    assert (last.measured.verdict, last.severity) == ("no_gain", "info")
    assert judged.notes == ["Measured on this machine: 3 of 4 recommendations (2 proven, 1 without gain)."]
    assert judged.verdict.remedy == "mio002 (MIO002)"
    assert judged.recommendations[3] == ALL.recommendations[3]


def test_jointly_proven_settings_name_each_other():
    both = Setting(layout="-c 8 -S 4M", hints={"cb_nodes": "8"})
    first, second = with_measured(ALL, [Trial(both, measured())]).recommendations[1:3]
    assert (first.measured.together_with, second.measured.together_with) == ("cb_nodes 8", "-c 8 -S 4M")
    # Settings that failed together may work alone.
    assert with_measured(ALL, [Trial(both, measured("failed"))]).recommendations == ALL.recommendations


@pytest.mark.parametrize(
    "other",
    [Setting(layout="-c 4 -S 4M"), Setting(hints={"cb_nodes": "4"}), Setting(hints={"cb_nodes": "8", "striping_unit": "1"})],
)
def test_another_value_of_a_setting_is_not_claimed_as_measured(other):
    judged = with_measured(ALL, [Trial(other, measured(speedup=3.0))])
    if other.hints.get("striping_unit"):
        assert judged.recommendations[1].measured.together_with == "striping_unit 1"
        return
    assert judged.recommendations == ALL.recommendations
    assert judged.notes == [f"Another setting was proven on this machine, and is not recommended here: {other.label}."]


def test_the_first_trial_of_a_setting_counts():
    trials = [Trial(Setting(hints={"cb_nodes": "8"}), measured(verdict)) for verdict in ("no_gain", "proven")]
    assert trial_of(Setting(hints={"cb_nodes": "8"}), trials).measured.verdict == "no_gain"
    assert trial_of(Setting(), trials) is None


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (measured(), "1.48 times as fast (1.45 to 1.51), 3 March 2026, 64 processes on 2 nodes"),
        (
            measured(this_processes=96, this_nodes=3, together_with="cb_nodes 8"),
            "1.48 times as fast (1.45 to 1.51), 3 March 2026, 64 processes on 2 nodes, together with cb_nodes 8 "
            "(this run: 96 processes on 3 nodes)",
        ),
        (measured("no_gain", speedup=1.0, low=None, high=None), "no gain, 3 March 2026, 64 processes on 2 nodes; leave it as it is"),
        (measured("failed", speedup=None, nodes=None), "the program failed with it, 3 March 2026, 64 processes; leave it as it is"),
        (measured("not_proven", low=None, high=None), "1.48 times as fast, not proven, 3 March 2026, 64 processes on 2 nodes"),
    ],
    ids=["proven", "other scale", "no gain", "failed", "not proven"],
)
def test_the_sentence_has_interval_day_and_scale(found, sentence):
    assert measured_gain(found) == f"Measured on this machine: {sentence}"


def test_texts_state_measurements_and_scripts_apply_only_helpful_settings():
    trials = [Trial(Setting(hints={"cb_nodes": "8"}), measured("no_gain", speedup=1.0, low=None, high=None))]
    judged = with_measured(advice(advised("MIO002", HINTS), advised("BB001", STAGED)), trials)
    assert "MIO002 mio002 (measured: no gain): job" in to_text(judged)
    assert "Measured on this machine\\: no gain" in to_markdown(judged)
    assert "| measured: none |" in to_markdown(judged)
    assert "info, so not done: export A=1" in script(judged, version="1")


def test_measured_is_absent_from_documents_without_a_history():
    assert "measured" not in ALL.to_yaml()
    judged = with_measured(ALL, [Trial(Setting(hints={"cb_nodes": "8"}), measured())])
    assert Advice.model_validate(judged.model_dump(by_alias=True)) == judged


def test_three_sessions_of_a_rule_correct_only_its_estimate():
    judged = with_measured(ALL, [], speedups={"MIO002": [(2.0, 4 / 3)] * 3, "BB001": [(2.0, 4 / 3)] * 2})
    before, after = ({item.rule: item.expected for item in some.recommendations} for some in (ALL, judged))
    assert [rule for rule in before if before[rule] != after[rule]] == ["MIO002"]
    assert after["MIO002"].after == pytest.approx(9 - 6 * 0.5**0.5)
