"""The stripe count of a job: measured before estimated, and unchanged if a gain is uncertain."""

from __future__ import annotations

import pytest

from vani.centre.plan.job_stripes import choose_stripes, expected_io
from vani.centre.plan.schema.jobs import AccessPattern, AvoidedSetting, IoSeconds, PlannedJob, StripeItem

MIB = 1 << 20


def item(count, rate, runs=5, deviation=0.0):
    return StripeItem(stripe_count=count, bandwidth=rate * MIB, deviation=deviation * MIB, runs=runs)


def job(**changes):
    shared = AccessPattern(layout="shared", request=MIB)
    usual = {
        "io_s": IoSeconds(low=9.0, median=10.0, high=12.0, runs=8),
        "usual_stripes": 1, "by_stripes": [item(1, 16)], "pattern": shared, "bytes": 160.0 * MIB,
    }  # fmt: skip
    return PlannedJob.model_validate({"name": "7", "nodes": 4, "processes": 4, **usual, **changes})


def test_model_is_used_without_runs_with_other_stripes():
    choice = choose_stripes(job(), 16, 16e6)
    assert (choice.count, choice.source) == (8, "estimated")
    assert 1 < choice.low < choice.speedup < choice.high
    expected = expected_io(job(), choice)
    assert expected.before == 10.0
    assert expected.low < expected.seconds == 10.0 / choice.speedup < expected.high


def test_small_files_are_not_widened_however_many_they_are():
    files = [{"path": f"/scratch/sample.{n}", "size": 65536} for n in range(2560)]
    own = AccessPattern(layout="file_per_process", request=65536)
    assert choose_stripes(job(pattern=own), 16, 16e6).count == 4
    assert "as many as it is known to need" in choose_stripes(job(pattern=own, creations=files), 16, 16e6)


def test_files_written_concurrently_share_their_osts():
    own = job(pattern=AccessPattern(layout="file_per_process", request=MIB))
    alone = choose_stripes(own, 16, 16e6)
    shared = choose_stripes(own, 16, 16e6, together=12)
    assert (alone.count, shared.count) == (4, 4)
    assert 1 < shared.speedup < alone.speedup, "three OSTs for each file, not four"
    assert choose_stripes(own, 16, 16e6, together=6) == (
        "its 4 files would share 6 OSTs: no more for each than with 1 stripe"
    )
    assert choose_stripes(job(), 16, 16e6, together=6) == choose_stripes(job(), 16, 16e6), "a shared file has its own"


def test_counts_above_the_number_of_targets_are_not_chosen():
    measured = job(by_stripes=[item(1, 16), item(4, 64), item(8, 100)])
    assert choose_stripes(measured, 16, 16e6).count == 8
    assert choose_stripes(measured, 6, 16e6).count == 4


def test_measured_speed_takes_precedence_over_the_model():
    choice = choose_stripes(job(by_stripes=[item(1, 16), item(4, 64), item(8, 40)]), 16, 16e6)
    assert (choice.count, choice.source) == (4, "measured")
    assert choice.speedup == pytest.approx(4.0)


def test_a_few_faster_runs_are_not_decisive():
    choice = choose_stripes(job(by_stripes=[item(1, 16), item(4, 64, runs=2)]), 16, 16e6)
    assert choice.source == "estimated"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"io_s": None}, "not known"),
        ({"io_s": IoSeconds(low=1, median=1, high=1, runs=2)}, "too few to know how much"),
        ({"pattern": None}, "not known"),
        ({"pattern": AccessPattern(operation="read", layout="shared", request=MIB)}, "mostly reads"),
        ({"bytes": 1.0 * MIB}, "something else limits them"),
        ({"usual_stripes": 8, "by_stripes": [item(8, 16)]}, "as many as it is known to need"),
        ({"usual_stripes": 6, "by_stripes": [item(6, 16)]}, "or slower"),
        ({"avoid": [AvoidedSetting(stripe_count=8, slower=2.0, runs=3)]}, "2.00 times as slow"),
        ({"by_stripes": [item(1, 16), item(8, 15)]}, "measured and is not faster"),
    ],
)
def test_stripe_count_is_unchanged_with_a_reason_otherwise(changes, reason):
    assert reason in choose_stripes(job(**changes), 16, 16e6)


def test_count_to_be_avoided_is_not_used_even_with_a_better_mean():
    some = job(by_stripes=[item(1, 16), item(8, 64)], avoid=[AvoidedSetting(stripe_count=8, slower=2.0, runs=3)])
    assert isinstance(choose_stripes(some, 16, 16e6), str)


def test_unchanged_settings_keep_the_expected_time():
    expected = expected_io(job(), None)
    assert (expected.low, expected.seconds, expected.high) == (9.0, 10.0, 12.0)
    assert isinstance(expected_io(job(io_s=None), None), str)


def test_runs_with_such_a_plan_state_the_expected_gain():
    laid_out = {"stripe_count": 8, "low": 2.0, "median": 2.5, "high": 4.0}
    expected = expected_io(job(by_plan=[{**laid_out, "runs": 4}]), None, laid_out=8)
    assert (expected.low, expected.seconds, expected.high, expected.before) == (2.0, 2.5, 4.0, 10.0)
    assert expected.method == "as 4 runs with such a plan, 60 % of further ones within the range"
    for unlike in (
        expected_io(job(by_plan=[{**laid_out, "runs": 4}]), None, laid_out=4),
        expected_io(job(by_plan=[{**laid_out, "runs": 2}]), None, laid_out=8),
    ):
        assert (unlike.low, unlike.seconds, unlike.high) == pytest.approx((9 / 1.61, 10, 12 * 1.61)), "not known yet"
