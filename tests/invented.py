"""The number of inputs that hypothesis tests invent (few with all tests, many with the slow ones), and their seed."""

from __future__ import annotations

import os

import hypothesis
import pytest

__all__ = ["NIGHTLY_SEED", "choose", "examples", "is_invented", "is_thorough"]

NIGHTLY_SEED = int(os.environ.get("NIGHTLY_SEED", "0"))
"""Set by `make nightly`, so that each night draws other runs and mutants; without it they are always the same."""

_SHARE = 3
"""A fault that needs many inputs is found by `-m slow` or by a later run, since each invents different ones."""


def choose(config: pytest.Config) -> None:
    """Set the default for tests that give no number. Called before any test is imported."""
    most = 100 if is_thorough(config) else 100 // _SHARE
    # A busy machine must not fail a test; the tests' own limits are on processor time and memory.
    hypothesis.settings.register_profile("vani", deadline=None, max_examples=most)
    hypothesis.settings.load_profile("vani")


def is_thorough(config: pytest.Config) -> bool:
    return config.getoption("markexpr") == "slow"


def examples(most: int) -> int:
    """The number of inputs that this run has time for, at most `most`, which `-m slow` tries."""
    return max(1, most * hypothesis.settings.default.max_examples // 100)


def is_invented(item: pytest.Item) -> bool:
    return hasattr(getattr(item, "obj", None), "hypothesis")
