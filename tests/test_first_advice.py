"""`python -m benchmarks.first_advice`: what counts as right, and halves that keep pairs together."""

from __future__ import annotations

import pytest
import yaml

from benchmarks import first_advice as benchmark
from vani.advisors.catalogue import find
from vani.schema.advice import Recommendation, Target


def given(rule: str, reason: str = "", severity: str = "low") -> Recommendation:
    return Recommendation(
        rule=rule, name=rule, severity=severity, confidence=1.0, target=Target(kind="job"), current={}, recommended={},
        evidence=[], reason=reason, expected=None, apply=[], source=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "expected", "verdict"),
    [
        (["POS010", "POS003"], {"first": ["POS010"]}, "right"),
        (["POS003", "POS010"], {"first": ["POS010"]}, "half"),
        (["POS010", "POS003"], {"first": ["POS010"], "without": ["POS003"]}, "half"),
        (["POS003"], {"first": ["POS010"]}, "wrong"),
        ([], {"first": ["POS010"]}, "wrong"),
        ([], {}, "right"),
        (["POS003"], {}, "half"),
    ],
)
def test_the_first_rule_decides(rules, expected, verdict):
    assert benchmark.judged([given(rule) for rule in rules], expected) == verdict


def test_words_decide_too():
    entry = [given("POS010", "one transaction for many rows")]
    assert benchmark.judged(entry, {"first": ["POS010"], "says": ["transaction"]}) == "right"
    assert benchmark.judged(entry, {"first": ["POS010"], "says": ["env.begin"]}) == "half"
    assert benchmark.judged(entry, {"first": ["POS010"], "never": ["rows"]}) == "half"
    assert benchmark.judged([given("POS010", severity="high")], {}) == "wrong"


def test_a_pair_is_in_one_half():
    assert benchmark.half_of("zarr-steps-strace.tgz") == benchmark.half_of("zarr-steps-after-strace.tgz")
    assert benchmark.half_of("mpiind-recorder.tgz") == benchmark.half_of("mpiind-view-recorder")


def test_inputs_and_rules_exist():
    expected = yaml.safe_load(benchmark.EXPECTED.read_text())
    for rule in {rule for entry in expected.values() for key in ("first", "without") for rule in entry.get(key, [])}:
        assert find(rule).id == rule
    if benchmark.CASES.is_dir():
        assert [name for name in expected if not (benchmark.CASES / name).exists()] == []
