"""Self-attention as a predictor; skipped without its libraries."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

from vani.centre.prediction.behaviour.panel import most_likely
from vani.centre.prediction.behaviour.self_attention import prepare


def test_a_period_is_learnt_from_other_categories():
    begin = prepare([[0, 0, 1, 2] * 50 for _ in range(20)])
    one = begin()
    for behaviour in [5, 5, 7, 9] * 6:
        one.see(behaviour)
    found = one.predict()
    assert most_likely(found)[0] == 5
    assert sum(found.values()) <= 1 + 1e-6


def test_too_few_runs_predict_the_last_value():
    one = prepare([[0, 1]])()
    one.see(3)
    assert most_likely(one.predict())[0] == 3
