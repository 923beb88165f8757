"""How many inputs a test with hypothesis invents, few with all tests and many with the slow ones, and from which seed."""

from __future__ import annotations

import os

import hypothesis
import pytest

__all__ = ["NIGHTLY_SEED", "choose", "examples", "is_invented", "is_thorough"]

NIGHTLY_SEED = int(os.environ.get("NIGHTLY_SEED", "0"))
"""`make nightly` sets it, so that each night draws other runs and mutants; without it they are always the same."""

_SHARE = 3
"""A fault that needs many inputs is found by `-m slow` or by a later run: each invents others."""


def choose(config: pytest.Config) -> None:
    """Set what holds for tests that name no number. Called before any test is imported."""
    most = 100 if is_thorough(config) else 100 // _SHARE
    # A busy machine makes no test wrong; the tests' own limits are on processor time and memory.
    hypothesis.settings.register_profile("vani", deadline=None, max_examples=most)
    hypothesis.settings.load_profile("vani")


def is_thorough(config: pytest.Config) -> bool:
    return config.getoption("markexpr") == "slow"


def examples(most: int) -> int:
    """Of `most` inputs, which `-m slow` tries, as many as this run has time for."""
    return max(1, most * hypothesis.settings.default.max_examples // 100)


def is_invented(item: pytest.Item) -> bool:
    return hasattr(getattr(item, "obj", None), "hypothesis")
