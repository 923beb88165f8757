"""The fuzzer finds known faults, repeats itself, finds nothing in a short run, and earlier findings remain fixed."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import fuzz
import judge
import pytest
from hypothesis import given, settings
from mutations import damaged
from programs import programs
from seeds import KINDS, seeds

import vani.units

ROOT = Path(__file__).resolve().parents[2]
CORPUS = sorted(p for p in fuzz.CORPUS.iterdir() if p.is_dir()) if fuzz.CORPUS.is_dir() else []


@pytest.fixture(autouse=True)
def surroundings_as_before():
    """Give the judge its own cache, which is removed before other tests look for theirs."""
    with patch.dict(os.environ):
        yield


@pytest.mark.parametrize("kept", CORPUS, ids=lambda p: p.name)
@pytest.mark.slow
def test_saved_corpus_inputs_are_handled_correctly(kept, tmp_path):
    kind = json.loads((kept / "found.json").read_text())["kind"]
    shutil.copytree(kept / "input", tmp_path / "input")
    judged = "recorder" if kind in ("program", "lost") else kind
    # The commands to run are drawn; three draws cover most of them.
    assert [f for seed in range(3) for f in judge.findings(judged, tmp_path, random.Random(seed))] == []


@pytest.mark.slow
def test_short_run_has_no_findings(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tests" / "fuzz" / "fuzz.py",
            "--seconds",
            "250",
            "--most",
            "3",
            "--seed",
            "1",
            "--workers",
            "1",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    tried = int(done.stdout.partition(" attempts")[0].rpartition(" ")[2])
    assert tried >= 3, done.stdout


def test_damaged_jobs_snapshots_and_plans_are_planned_with_or_refused_in_one_line(tmp_path):
    sound = [one for one in seeds(tmp_path / "made") if one.kind == "plan"]
    for number in range(200):
        work, drawn = tmp_path / str(number), random.Random(f"plans:{number}")
        for name, content in damaged("plan", drawn.choice(sound).files, drawn).items():
            (work / "input" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "input" / name).write_bytes(content)
        assert judge.findings("plan", work, drawn) == [], number


def test_an_attempt_can_be_repeated(tmp_path):
    made = seeds(tmp_path)
    for one in made:
        first, again = (damaged(one.kind, one.files, random.Random("7:3")) for _ in range(2))
        assert first == again
    changed = sum(
        damaged(one.kind, one.files, random.Random(n)) != one.files for one in made for n in range(5)
    )
    assert changed > 3 * len(made)
    assert {one.kind for one in made} == set(KINDS)


def test_an_input_that_reaches_new_lines_is_damaged_further(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "attempt", lambda *_: (vani.units.format_bytes(5), []))
    monkeypatch.setattr(fuzz, "kind_of", lambda _: vani.units.format_bytes(5))
    reached = fuzz._Reached("7", 0, [])
    assert reached.next_name(1) == "7:1"
    assert [reached.attempt(name, tmp_path)[2] for name in ("7:001", "7:002")] == [True, False]
    assert {reached.next_name(9) for _ in range(20)} == {"7:9", "7:001/9"}


def test_an_input_damaged_twice_can_be_made_again(tmp_path):
    kind = fuzz.kind_of("7:3/4")
    assert kind == fuzz.kind_of("7:3")
    once, twice, again = (fuzz._input(name, kind, tmp_path)[0] for name in ("7:3", "7:3/4", "7:3/4"))
    assert once != twice == again


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: 3, "status 3"),
        (lambda _: print("vani: one\nvani: two", file=sys.stderr) or 2, "in one line"),
        (lambda _: print("\x1b[31m", file=sys.stderr) or 2, "in one line"),
        (lambda args: Path(args[-1]).write_text("half") and _refused(), "left p.yaml"),
        (lambda _: print("Traceback (most recent call last)", file=sys.stderr) or 0, "Traceback"),
    ],
    ids=["raises", "fault", "two lines", "escape", "partial output", "traceback"],
)
def test_misbehaviour_of_a_command_is_detected(does, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judge, "run_command", does)
    _, found = judge._command("profile", "input", "-o", "p.yaml")
    assert any(told in one.what for one in found)


def _refused() -> int:
    print("vani: input: is not a trace", file=sys.stderr)
    return 2


def test_too_much_time_and_memory_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judge, "run_command", lambda _: 0)
    monkeypatch.setattr(judge, "MAX_SECONDS", -1.0)
    monkeypatch.setattr(judge, "MAX_MEMORY", -1)
    _, found = judge._command("profile", "input", "-o", "p.yaml")
    assert [one.what.split()[0] for one in found] == ["took", "took"]


@settings(max_examples=30)
@given(program=programs())
def test_miscounted_program_is_found(program):
    class Count:
        read = write = metadata = sync = written = -1

    class Profile:
        traces = ()

        class workflow:  # noqa: N801 - stands for a part of a profile
            class io:  # noqa: N801
                ops = bytes = Count

    assert "the program did" in program.differs(Profile)
