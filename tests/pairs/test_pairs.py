"""Every rule survives its own advice: the program before gets it, the program after the change does not.

`pairs.yaml` has the pair of each rule. Those of hand-made profiles are tested in tests/advisors/test_cases.py.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import vani
from benchmarks.first_advice import CASES as RECORDED
from benchmarks.first_advice import unpacked
from tests.pairs.programs import PROGRAMS
from vani.advisors.catalogue import rules
from vani.advisors.libraries import LIBRARIES
from vani.advisors.rule import value_at

FOLDER = Path(__file__).parent
PAIRS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "pairs.yaml").read_text())
LIBRARY_PAIRS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "libraries.yaml").read_text())
MACHINE = "generic-lustre"


@pytest.fixture
def far():
    """A folder that does not count as storage of the node, as /tmp does."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".vani-pair-") as folder:
        yield Path(folder)


def each(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def programs_by_rule() -> list[Any]:
    """Rules and programs of pairs that run; those that are not by day are slow."""
    return [
        pytest.param(rule, program, marks=() if pair.get("by_day") else pytest.mark.slow)
        for rule, pair in PAIRS.items()
        for program in each(pair.get("run", []))
    ]


def recorded() -> list[Any]:
    return [
        pytest.param(rule, runs, marks=pytest.mark.slow)
        for rule, pair in PAIRS.items()
        for runs in each(pair.get("recorded", []))
    ]


def numbered(advice: vani.Advice) -> list[str]:
    return [entry.rule for entry in advice.recommendations if entry.severity != "info" and entry.rule != "MAT001"]


def is_silent(rule: str, pair: dict[str, Any], profile: vani.Profile, advice: vani.Advice) -> None:
    """After the change, the rule is silent, its pattern is gone, and the promised figure is reached."""
    for attribute, (least, most) in pair.get("reaches", {}).items():
        assert least <= value_at(profile, attribute) <= most, attribute
    assert rule not in numbered(advice)
    assert next(entry.why for entry in advice.no_recommendation if entry.rule == rule)
    assert pair.get("gone") not in {seen.pattern for seen in advice.diagnosis or ()}


def judged(trace: Path, store: Path) -> tuple[vani.Profile, vani.Advice]:
    profile = vani.profile(trace, store=store)
    return profile, vani.advise(profile, system=MACHINE)


def advice_on(program: str, state: str, folder: Path, ranks: int) -> tuple[vani.Profile, vani.Advice]:
    data, trace = folder / "data", folder / "trace"
    data.mkdir(parents=True)
    PROGRAMS.get(f"before_{program}", Path.exists)(data)
    traced = [sys.executable, "-m", "vani", "trace", "--tracer", "strace", "--no-collect", "-o", trace, "--"]
    started = ["mpirun", "-n", str(ranks)] if ranks else []
    command = [*traced, *started, sys.executable, FOLDER / "programs.py", program, state, data]
    subprocess.run(command, check=True, capture_output=True)
    return judged(trace, folder / "store")


def test_every_rule_has_a_pair_or_a_reason():
    assert list(PAIRS) == sorted(rule.id for rule in rules())
    about = ("BB", "BEE", "CEP", "DAO", "GPF", "LUS", "MIO004", "PFL")
    for rule, pair in PAIRS.items():
        kinds = {"run", "recorded", "hand_made", "missing"} & pair.keys()
        assert len(kinds) == 1 or kinds == {"run", "recorded"}
        assert "hand_made" not in pair or rule.startswith(about) or len(pair["why"]) > 10


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(("rule", "program"), programs_by_rule())
def test_a_rule_survives_its_own_advice(rule, program, far):
    pair = PAIRS[rule]
    ranks = pair.get("ranks", 0)
    if ranks and shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    for number in range(2):
        _, given = advice_on(program, "before", far / f"before{number}", ranks)
        assert rule in numbered(given)
        assert pair.get("gone") in {None, *(seen.pattern for seen in given.diagnosis)}
    is_silent(rule, pair, *advice_on(program, "after", far / "after", ranks))


def test_every_library_has_a_pair_or_a_reason():
    assert LIBRARY_PAIRS.keys() == {known.name for known in LIBRARIES}
    for pair in LIBRARY_PAIRS.values():
        assert pair.keys() in ({"missing"}, {"run", "rule", "says"}, {"recorded", "rule", "says"})


def check_library(pair: dict[str, Any], given: vani.Advice, after: vani.Advice) -> None:
    first = next(entry for entry in given.recommendations if entry.rule in numbered(given))
    assert (first.rule, pair["says"] in "\n".join(first.apply)) == (pair["rule"], True)
    assert numbered(after) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("library", [name for name, pair in LIBRARY_PAIRS.items() if "run" in pair])
def test_a_library_gets_its_own_remedy_and_then_silence(library, far):
    pair = LIBRARY_PAIRS[library]
    states = (advice_on(pair["run"], state, far / state, 0)[1] for state in ("before", "after"))
    check_library(pair, *states)


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded runs are not here")
@pytest.mark.parametrize("library", [name for name, pair in LIBRARY_PAIRS.items() if "recorded" in pair])
def test_a_library_gets_its_own_remedy_in_recorded_runs(library, tmp_path):
    pair = LIBRARY_PAIRS[library]
    states = (judged(unpacked(RECORDED / name, tmp_path), tmp_path / f"{name}.store")[1] for name in pair["recorded"])
    check_library(pair, *states)


@pytest.mark.parametrize(("rule", "runs"), recorded())
def test_a_rule_survives_its_advice_in_recorded_runs(rule, runs, tmp_path):
    pair = PAIRS[rule]
    if isinstance(runs, str):
        with tarfile.open(FOLDER / "recorded.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        traces = [tmp_path / f"{runs}-{state}" for state in ("before", "before2", "after")]
    else:
        traces = [RECORDED / name for name in runs]
    if not all(trace.exists() for trace in traces):
        pytest.skip("the recorded runs are not here")
    *before, after = (judged(unpacked(trace, tmp_path), tmp_path / f"{trace.name}.store") for trace in traces)
    for _, given in before:
        assert rule in numbered(given)
        assert pair.get("gone") in {None, *(seen.pattern for seen in given.diagnosis)}
    is_silent(rule, pair, *after)
