"""Expected gains corrected by measurements of the same rule on the same machine, judged on invented sessions."""

from __future__ import annotations

import numpy as np
import pytest

from vani.models.measured_gain import corrected, correction_of
from vani.schema.advice import Direction, Expected

EXPECTED = Expected(metric="io_time_s", before=10.0, after=5.0, speedup=2.0, low=1.25, high=4.0, method="m")


def test_factor_is_the_median_gain_shrunk_toward_one():
    # A run twice as fast saves half of it; one 4/3 times as fast a quarter.
    correction = correction_of([(2.0, 4 / 3)] * 3)
    assert correction.factor == pytest.approx(0.5**0.5)
    assert (correction.low, correction.high, correction.sessions) == (pytest.approx(0.5), pytest.approx(0.5), 3)
    assert correction_of([(2.0, 4 / 3)] * 2) is None
    # For so small a gain, any ratio is noise.
    assert correction_of([(1.01, 1.5)] * 9) is None


def test_range_is_widened_to_observations_and_ordered():
    seen = corrected(EXPECTED, correction_of([(2.0, 1.0), (2.0, 4 / 3), (2.0, 2.0)]))
    assert seen.low <= EXPECTED.low
    assert seen.low <= seen.speedup <= seen.high
    assert seen.speedup == pytest.approx(10 / (10 - 5 * 0.5**0.5))
    assert "times 0.71, as 3 sessions of vani tune measured of this rule on this machine" in seen.method


@pytest.mark.parametrize("measured", [0.5, 1.0, 1.04])
def test_corrections_are_ordered_and_at_most_tenfold(measured):
    seen = corrected(EXPECTED, correction_of([(1.05, measured)] * 5))
    assert 0 < seen.low <= seen.speedup <= seen.high <= 10 * seen.low


@pytest.mark.parametrize("measured", [3.0, 100.0])
def test_sessions_that_save_more_than_there_is_give_a_direction(measured):
    assert isinstance(corrected(EXPECTED, correction_of([(1.05, measured)] * 5)), Direction)


@pytest.mark.parametrize(
    ("bias", "scatter", "least", "most"),
    [(0.3, 0.5, 0.3, 0.6), (0.5, 0.2, 0.3, 0.6), (0.5, 0.5, 0.4, 0.8), (1.0, 0.2, 0.9, 1.2), (1.0, 0.5, 0.9, 1.2)],
)
def test_measured_sessions_improve_estimates_of_a_biased_model(bias, scatter, least, most):
    random = np.random.default_rng(7)
    raw, better = [], []
    for _ in range(400):
        ratios = bias * np.exp(random.normal(0, scatter, 6))
        # An expected share of 1/6 of the run leaves room for ratios up to six.
        pairs = [(1.2, 1 / (1 - min(0.99, ratio / 6))) for ratio in ratios]
        factor = correction_of(pairs[1:]).factor
        raw.append(abs(np.log(ratios[0])))
        better.append(abs(np.log(ratios[0] / factor)))
    assert least < np.median(better) / np.median(raw) < most
