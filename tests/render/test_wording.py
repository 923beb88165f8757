"""The wording of advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.render.wording import expected_gain, how_sure
from vani.schema.advice import Expected, Recommendation, Target

ROOT = Path(__file__).parents[2]
FOLDERS = ("schema", "advisors", "analyzers", "vani", "docs", "examples", "benchmarks")
TEXTS = [
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".md", ".rst", ".html", ".json") and "vendor" not in path.parts
]


@pytest.mark.parametrize(
    "words", ["for eyes", "whom wrote", "hangs on", "hang on ", "what they hand on", "hands on what", " untold", "is no trace "]
)
def test_texts_use_the_words_of_the_field(words):
    assert [path.relative_to(ROOT).as_posix() for path in TEXTS if words in path.read_text(encoding="utf-8")] == []


def gain(speedup, low, high, after=2.0):
    expected = Expected(
        metric="write_time_s", before=10.0, after=after, speedup=speedup, low=low, high=high, method="a model"
    )
    return expected_gain(
        Recommendation(
            rule="TST001", name="plain", severity="low", confidence=0.5, target=Target(kind="job"), current={},
            recommended={}, evidence=[], reason="", expected=expected, apply=[], source=[],
        )
    )  # fmt: skip


def test_a_gain_has_its_range():
    assert gain(5.0, 1.25, 8.0) == "Expected write time: 10 s -> 2 s, 5 times as fast (1.25 to 8)"


@pytest.mark.parametrize(("high", "most"), [(4.3, ", at most 4.3"), (None, "")])
def test_range_that_starts_at_no_gain_states_that(high, most):
    assert gain(5.0, 1.0, high) == f"Expected write time: 10 s -> 2 s, 5 times as fast (may gain nothing{most})"
    assert gain(5.0, 0.8, high).endswith(f"(may gain nothing{most})")


def test_range_without_an_upper_end_states_that():
    assert gain(5.0, 1.25, None) == "Expected write time: 10 s -> 2 s, 5 times as fast (1.25 or more)"


def test_a_factor_above_a_hundred_is_nearly_all():
    assert gain(2000.0, 1.0, 4000.0, after=0.005) == "Expected write time: 10 s -> 5 ms, nearly all of it (at worst none)"
    assert gain(2000.0, 1.5, 4000.0, after=0.005).endswith("nearly all of it (at least 1.5 times as fast)")
    assert gain(5.0, 1.25, 400.0) == "Expected write time: 10 s -> 2 s, 5 times as fast (1.25 or more)"


def test_worst_case_is_in_seconds():
    # No factor, since all of it may go. At worst it is 1.25 times as fast: 8 of 10 s remain.
    assert gain(None, 1.25, None, after=0.0) == "Expected write time: 10 s -> 0 s (at worst 8 s)"


def test_zero_gain_is_stated():
    assert gain(1.0, 1.0, 1.2, after=10.0) == "Expected write time: 10 s as before, at most 1.2 times as fast"
    assert gain(1.0, 1.0, 1.0, after=10.0) == "Expected write time: 10 s as before"


def test_severity_and_confidence_are_named():
    """Formerly `low, possible (48 %)`: two words and a number without a base."""
    recommendation = Recommendation(
        rule="TST001", name="plain", severity="low", confidence=0.48, target=Target(kind="job"), current={},
        recommended={}, evidence=[], reason="", expected=None, apply=[], source=[],
    )  # fmt: skip
    assert how_sure(recommendation) == "low priority, 48 % sure"
