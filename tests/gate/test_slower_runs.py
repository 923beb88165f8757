"""Slower runs: which slowdowns fail, by noise and number of runs, and what a check says of them."""

from __future__ import annotations

import json
import math
import random
from statistics import geometric_mean

import pytest
from gate_cases import changed, policy, put, tree, verdict
from scipy import stats

from vani.gate.tolerance import Times, level_of_each
from vani.render.check import findings, to_text
from vani.render.code_hosts import summary, to_github, to_gitlab, to_junit, to_sarif

SECONDS = 31.5
ONLY_RUN_TIME = "[[check.change]]\nattribute = 'workflow.runtime_s'\n"
FIVE = (0.9, 0.95, 1.0, 1.05, 1.1)


def runs(*times: float) -> list[dict]:
    """Runs that take so many times as long as the profile's."""
    return [changed(workflow__runtime_s=SECONDS * each) for each in times]


def checked(tmp_path, now, before, text=ONLY_RUN_TIME, **options):
    return verdict(policy(tmp_path, text), runs(*now), runs(*before), **options)


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        # More runs on either side make the check sharper.
        ((1.45,), FIVE, "fail"),
        ((1.45,), FIVE[::2], "pass"),
        ((2.0,), FIVE[::2], "fail"),
        ((2.0, 2.1, 1.9), FIVE[::4], "fail"),
        # Significant, but within the tolerance of 25 %.
        ((1.2, 1.19, 1.21), FIVE, "pass"),
        # Beyond the tolerance, but no more than runs differ.
        ((1.4, 0.7, 2.0), (0.8, 1.3, 1.0), "pass"),
        ((0.5, 0.5), FIVE, "pass"),
    ],
)
def test_only_significant_slowdowns_beyond_the_tolerance_fail(tmp_path, now, before, words):
    assert checked(tmp_path, now, before).verdict == words


def test_one_run_of_each_side_gives_a_warning_that_says_why(tmp_path):
    check = checked(tmp_path, (5.0,), (1.0,))
    assert check.verdict == "pass with warnings"
    assert "one run of each side does not show how much times vary" in check.judgements[0].message
    assert (check.judgements[0].effect, check.times) == (None, None)
    assert checked(tmp_path, (5.0,), (1.0,), fail_on="warning").verdict == "fail"
    assert checked(tmp_path, (1.2,), (1.0,)).verdict == "pass"


def test_effect_is_that_of_students_test_on_logarithms(tmp_path):
    now, before = (1.5, 1.2, 1.6), FIVE
    one = checked(tmp_path, now, before).judgements[0]
    logs = [[math.log(each) for each in side] for side in (now, before)]
    test = stats.ttest_ind(*logs, alternative="greater")
    interval = stats.ttest_ind(*logs).confidence_interval(0.95)
    assert one.effect.p == pytest.approx(test.pvalue, rel=1e-6)
    assert (math.log(one.effect.low), math.log(one.effect.high)) == pytest.approx(tuple(interval), rel=1e-6)
    assert one.effect.ratio == pytest.approx(geometric_mean(now) / geometric_mean(before))
    assert "1.43 times slower, 95 %: 1.2 to 1.7; allowed: +25 % or +100 ms" in one.message
    assert one.effect.is_significant is bool(test.pvalue < 0.975 * 0.02)


def test_check_states_its_rate_of_false_alarms_and_what_it_cannot_see(tmp_path):
    check = checked(tmp_path, (1.0, 1.05, 0.95), FIVE)
    assert check.times.sentence.startswith("3 runs and 5 of the baseline, 1 time: ")
    assert "fails at most 2 % of such checks" in check.times.sentence
    assert f"a slowdown below {check.times.least_unseen:.2g} stays unseen" in check.times.sentence
    # A run just below passes; one above fails, as the noise is the same.
    for factor, words in ((0.99, "pass"), (1.01, "fail")):
        scale = check.times.least_unseen * factor / geometric_mean((1.0, 1.05, 0.95)) * geometric_mean(FIVE)
        assert checked(tmp_path, [scale * each for each in (1.0, 1.05, 0.95)], FIVE).verdict == words
    assert " ".join(check.times.sentence.split()) in " ".join(to_text(check).split())


def test_policy_sets_threshold_and_rate(tmp_path):
    assert checked(tmp_path, (2.0, 2.0), FIVE, ONLY_RUN_TIME + "relative = '150 %'\n").verdict == "pass"
    assert checked(tmp_path, (2.6, 2.6), FIVE, ONLY_RUN_TIME + "relative = '150 %'\n").verdict == "fail"
    strict = "[check]\nfalse_alarms = 1e-6\n" + ONLY_RUN_TIME
    assert checked(tmp_path, (1.45,), FIVE, strict).verdict == "pass"
    assert checked(tmp_path, (1.45,), FIVE, ONLY_RUN_TIME + "level = 'note'\n").verdict == "pass"


def test_counts_stay_strict_in_every_one_of_several_runs(tmp_path):
    before = [tree(), tree()]
    more = put(tree(), "workflow.io.ops.metadata", tree()["workflow"]["io"]["ops"]["metadata"] + 1)
    check = verdict(policy(tmp_path, "[check]\n"), [tree(), tree(), more], before)
    assert check.verdict == "fail"
    assert "is 77 in the worst of 3 runs (+1.32 %), and was 76" in check.judgements[0].message
    budget = "[[check.budget]]\nexpect = 'workflow.io.ops.metadata <= 76'\n"
    assert verdict(policy(tmp_path, budget), [tree(), more]).verdict == "fail"
    assert verdict(policy(tmp_path, budget), [tree(), tree()]).verdict == "pass"


@pytest.mark.parametrize(
    ("factors", "least", "most"),
    [
        # The same factor for all times of a run; independent ones.
        ("same", 1.0, 1.0001),
        ("independent", 2.0, 4.0),
    ],
)
def test_times_that_vary_together_count_as_one_comparison(factors, least, most):
    noise = random.Random(7)
    columns = []
    for _ in range(4):
        if factors == "independent" or not columns:
            columns.append([math.exp(noise.gauss(0, 0.3)) for _ in range(10)])
        else:
            columns.append([3 * value for value in columns[0]])
    times = [Times.of(column[:5], column[5:]) for column in columns]
    level, count = level_of_each(times, [1.0] * 4, 0.02)
    assert least <= count <= most
    assert level == pytest.approx(1 - (1 - 0.0195) ** (1 / count))
    # A time that noise cannot bring beyond its tolerance costs nothing.
    assert level_of_each(times, [1.0, 50.0, 50.0, 50.0], 0.02)[1] == pytest.approx(1.0, abs=0.02)


def test_a_time_of_zero_is_compared_by_its_tolerance(tmp_path):
    text = "[[check.change]]\nattribute = 'workflow.io.time_s.sync'\n"
    before = [put(tree(), "workflow.io.time_s.sync", 0.0) for _ in range(3)]
    for seconds, words in ((0.05, "pass"), (0.2, "pass with warnings")):
        now = put(tree(), "workflow.io.time_s.sync", seconds)
        assert verdict(policy(tmp_path, text), now, before).verdict == words


def test_every_format_has_the_same_text_of_a_finding(tmp_path):
    check = checked(tmp_path, (2.0, 2.1), FIVE, "[check]\n")
    (finding,) = [one for one in findings(check) if one.level == "error"]
    assert "look at the program's computation" in finding.message
    assert finding.message in json.loads(to_sarif(check, version="1"))["runs"][0]["results"][0]["message"]["text"]
    assert finding.message in json.loads(to_gitlab(check))[0]["description"]
    assert finding.message.replace("%", "%25") in to_github(check)
    for text in (summary(check), to_junit(check, version="1"), to_text(check)):
        plain = " ".join(text.replace("\\", "").replace("&apos;", "'").split())
        assert "look at the program's computation" in plain
        assert "if intended" not in plain


@pytest.mark.parametrize(
    ("kind", "todo"), [("seek", "pread and pwrite"), ("open", "open once"), ("stat", "attributes once")]
)
def test_remedy_follows_the_most_common_metadata_call(tmp_path, kind, todo):
    now = tree()
    kinds = now["files"][0]["io"]["metadata_kinds"] or {}
    if not kinds:
        pytest.skip("the golden profile has no kinds")
    more = 4096
    put(now, "files.0.io.ops.metadata", now["files"][0]["io"]["ops"]["metadata"] + more)
    put(now, f"files.0.io.metadata_kinds.{kind}.count", kinds[kind]["count"] + more)
    put(now, "workflow.io.ops.metadata", now["workflow"]["io"]["ops"]["metadata"] + more)
    check = verdict(policy(tmp_path, "[check]\n"), now, [tree()])
    (cause,) = [cause for cause in check.causes if cause.kind == "metadata"]
    assert todo in cause.todo
