"""Whole profiles of bundled real traces, as a person last read them.

`pytest tests/golden --update-golden` rewrites them; test_sources.py shows where the numbers come from.
"""

from __future__ import annotations

import pytest
from golden_profiles import HERE, NAMES, golden_path, profile_of


@pytest.mark.parametrize("name", NAMES)
def test_profile_of_a_bundled_trace_equals_the_golden_file(name, request):
    found = profile_of(name).to_yaml()
    if request.config.getoption("--update-golden"):
        golden_path(name).write_text(found)
    assert found.splitlines() == golden_path(name).read_text().splitlines()


def test_every_golden_profile_is_compared():
    assert {p.stem for p in HERE.glob("*.yaml")} == set(NAMES)
