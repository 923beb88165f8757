"""Every rule survives its own advice: the program before gets it, the program after the change does not.

The programs run and are traced by strace. Rules about parallel file systems have hand-made profiles in
tests/advisors/cases.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import vani
from tests.pairs.programs import PAIRS

PROGRAMS = Path(__file__).with_name("programs.py")
BY_DAY = ("commits", "opens")

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@pytest.fixture
def far():
    """A folder that does not count as storage of the node, as /tmp does."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def advice_on(pair: str, state: str, folder: Path) -> vani.Advice:
    data, trace = folder / "data", folder / "trace"
    data.mkdir(parents=True)
    program = [sys.executable, PROGRAMS, pair, state, data]
    traced = [sys.executable, "-m", "vani", "trace", "--tracer", "strace", "--no-collect", "-o", trace, "--"]
    subprocess.run([*traced, *program], check=True, capture_output=True)
    return vani.advise(vani.profile(trace, store=folder / "store"), system="generic-lustre")


@pytest.mark.parametrize(
    "pair", [pytest.param(pair, marks=() if pair in BY_DAY else pytest.mark.slow) for pair in PAIRS]
)
def test_a_rule_survives_its_own_advice(pair, far):
    rule, _ = PAIRS[pair]
    for number in range(2):
        given = advice_on(pair, "before", far / f"before{number}")
        assert rule in [entry.rule for entry in given.recommendations if entry.severity != "info"]
    given = advice_on(pair, "after", far / "after")
    assert rule not in [entry.rule for entry in given.recommendations]
    assert next(entry.why for entry in given.no_recommendation if entry.rule == rule)
