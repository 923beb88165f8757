"""`vani profile --quick` from a user's view: its output, its refusals and its cost."""

from __future__ import annotations

import re
import resource
import subprocess
import sys

import pytest
from repository import TRACES
from rich.cells import cell_len
from terminal import on_terminal
from test_screen import screen

from tests.traces.trace_generator import Workload, generate_trace
from vani import Profile, profile

VANI = [sys.executable, "-m", "vani"]


def test_screen_shows_counts_and_states_that_times_are_unknown(desk, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("COLUMNS", raising=False)
    command = [*VANI, "profile", "--quick", TRACES / "v3-cm1like-16r", "-o", "p.yaml"]
    status, shown = on_terminal(command, desk)
    lines = [line.rstrip() for line in shown.splitlines()]
    assert status == 0
    assert lines[0] == "v3-cm1like-16r: 16 processes, 21 Nov 2026, Recorder 3.0"
    assert lines[1] == "8,148 I/O calls were counted and not timed: the verdict is open."
    # 31,536,960 bytes written by 7,800 calls, 1,115,136 read by 272 (reference.json).
    assert "Data   31.5 MB written by 7,800 calls; 1.12 MB read by 272 calls" in lines
    assert "Why    write: 7,680 calls, 94 % of the calls." in lines
    assert any(line.startswith("Where  3 of 6 files") for line in lines)
    assert lines[-1] == "Next   profile it without --quick for times, phases and advice"
    assert not any("I/O time" in line for line in lines)
    assert Profile.load(desk / "p.yaml").workflow.runtime_s is None


@pytest.mark.parametrize("trace", sorted(p.name for p in TRACES.iterdir() if (p / "recorder.mt").is_file()))
@pytest.mark.sampled(7)
def test_no_line_is_wider_than_the_terminal(trace):
    assert [
        line for line in screen(profile(TRACES / trace, quick=True)) if cell_len(line.rstrip()) > 80
    ] == []


def test_no_calls_are_kept(run, mix, desk, cache):
    before = sorted(cache.rglob("*"))
    assert run("profile", "--quick", mix, "-o", "p.yaml", "--store", "s").status == 0
    assert sorted(cache.rglob("*")) == before
    assert [p.name for p in desk.iterdir()] == ["p.yaml"]


def test_a_graph_takes_times(run, mix, desk):
    done = run("profile", "--quick", mix, "--graph", "g.dot", "-o", "p.yaml")
    assert done.status == 2
    assert done.line.endswith("and needs time stamps; leave --graph or --quick out")
    assert list(desk.iterdir()) == []


def test_phases_take_times(run, mix, desk):
    done = run("profile", "--quick", mix, "--phase-gap", "1")
    assert done.status == 2
    assert done.line == "quick profiles have no phases; leave the phase gap or --quick out"


def test_a_trace_without_a_grammar(run, desk):
    parquet = next(p for p in sorted((TRACES.parent / "parquet").iterdir()) if p.is_dir())
    done = run("profile", "--quick", parquet, "-o", "p.yaml")
    assert (done.status, done.out) == (2, "")
    assert "has no grammar to count calls on; leave --quick out" in done.line
    assert list(desk.iterdir()) == []


def test_advice_on_a_quick_profile_names_missing_attributes(run, mix, desk):
    assert run("profile", "--quick", mix, "-o", "p.yaml").status == 0
    done = run("advise", "p.yaml", "--format", "text")
    assert done.status == 0
    assert done.out.startswith("2,092 I/O calls were counted and not timed: the verdict is open.")
    assert "without --quick" in done.out


@pytest.mark.slow
def test_nothing_is_imported_that_only_decoding_needs(desk, mix):
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "vani",
        "profile",
        "--quick",
        mix,
        "-o",
        "p.yaml",
        "-q",
    ]
    done = subprocess.run(command, cwd=desk, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(re.findall(r"\| +(\S+)$", done.stderr, re.MULTILINE))
    assert "vani.analyzers.quick.profile" in loaded
    unwanted = {"dask", "distributed", "networkx", "pandas", "rich", "jinja2", "vani.store.write"}
    assert not loaded & unwanted


@pytest.mark.slow
def test_a_billion_calls_take_seconds_instead_of_minutes(desk):
    workload = Workload(calls=10**9, pattern="random", symbols=10_000, times=False)
    made = generate_trace(desk / "t", workload)
    command = [*VANI, "profile", "--quick", "t", "-o", "p.yaml", "-q"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=desk, check=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Processor time, with room for a busy machine: 1.2 s on a quiet one, while decoding takes over 200 s.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10.0
    assert Profile.load(desk / "p.yaml").workflow.io.bytes.read == made.bytes_read
