"""Settings in advice that are tried, and the reasons for the others."""

from __future__ import annotations

from pathlib import Path

from vani.cli.tune_trials import Program, candidates_of
from vani.schema.advice import Advice, NoRecommendation, SystemRef, TunableSetting

ADVICE = Advice.load(Path(__file__).parents[2] / "examples" / "tune" / "advice.yaml")
DATA = Path("/lustre/run")


def advice(*tunable: TunableSetting, trial: TunableSetting | None = None, machine: str | None = None) -> Advice:
    silent = [] if trial is None else [NoRecommendation(rule="LUS010", why="no file is large", settings=[trial])]
    return ADVICE.model_copy(
        update={
            "system": SystemRef(name=machine, sha256=""),
            "recommendations": [ADVICE.recommendations[0].model_copy(update={"settings": list(tunable)})] if tunable else [],
            "no_recommendation": silent,
        }
    )


def test_trial_is_marked_as_recommended_by_no_rule():
    trial = TunableSetting(kind="layout", folder=str(DATA), values=[{"options": "-c 8"}])
    (candidate,), _ = candidates_of(advice(trial=trial), DATA, Program())
    assert candidate.reason == "no rule can judge this setting, so it was tried (no file is large)"


def test_staging_is_limited_to_runs_on_one_node():
    staging = TunableSetting(kind="stage_out", folder=str(DATA), values=[{"near": "/tmp"}])
    assert [item.setting.stage_out for item in candidates_of(advice(staging), DATA, Program(nodes=1))[0]] == ["/tmp"]
    for nodes, words in ((2, "this run has 2 nodes"), (None, "an unknown number of nodes")):
        candidates, (refused,) = candidates_of(advice(staging, machine="titan"), DATA, Program(nodes=nodes))
        assert candidates == []
        assert words in refused.why


def test_session_without_candidates_requests_a_machine_description():
    assert "--system" in candidates_of(advice(), DATA, Program())[1][-1].why
    assert candidates_of(advice(machine="titan"), DATA, Program()) == ([], [])
