"""Commands on large traces share the work with forks of themselves, and find the same; other programs are not forked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from terminal import on_terminal

from vani.engine import Engine

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
ALL = sorted(path for path in TRACES.iterdir() if path.is_dir())

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux")

COMMANDS = """
import os, sys
from pathlib import Path
from unittest.mock import patch
from vani.allocator import keep_freed_memory

keep_freed_memory()
os.sched_getaffinity = lambda pid: {0, 1, 2}
from vani.analyzers.passes import timed_calls
from vani.cli.main import main
from vani.engine import forks, here
from vani.readers.recorder.reader import RecorderReader
from vani.store import parts, provide
from vani.store.kept import Room

# Every trace is a large one: of as many parts as ranks.
here._FEWEST_FORKED = parts.SMALL_PART = parts.LARGE_PART = 1
shared = []
made = []
real, really_fork = forks.Forks.share, forks._fork

def share(self, work, count, *others):
    shared.append(count)
    return real(self, work, count, *others)

def fork(*of):
    found = really_fork(*of)
    made.append(found)
    return found

forks.Forks.share, forks._fork = share, fork

def run(*words):
    try:
        main([*map(str, words), "-q"])
    except SystemExit as ended:
        return ended.code

def no_room():
    provide.Room = lambda: Room(0)
    RecorderReader.decodes_quickly = True
    timed_calls._MOST_NOTED = 0
"""


def run(script: str, *words: Path | str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS + dedent(script), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("room", [True, False])
def test_profiles_are_those_of_one_process(tmp_path, monkeypatch, room):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path))
    said = run(
        f"""
        {"pass" if room else "no_room()"}
        traces = [Path(word) for word in sys.argv[1:]]
        for trace in traces:
            ends = [run("profile", trace, "-o", "forks.yaml")]
            often = len(shared)
            ends.append(run("profile", trace, "-o", "alone.yaml", "--scheduler", "synchronous"))
            assert len(shared) == often and ends[0] == ends[1], (trace, ends)
            if not ends[0]:
                assert Path("forks.yaml").read_bytes() == Path("alone.yaml").read_bytes(), trace
        print(len(shared) > len(traces))
        """.replace('"forks.yaml"', f'"{tmp_path}/forks.yaml"').replace('"alone.yaml"', f'"{tmp_path}/alone.yaml"'),
        *ALL,
    )
    assert said[0] == "True"


def test_stores_are_those_of_one_process(tmp_path):
    said = run(
        """
        import pyarrow.parquet as pq

        trace, forked, alone = map(Path, sys.argv[1:])
        print(run("convert", trace, forked), len(shared))
        print(run("convert", trace, alone, "--scheduler", "synchronous"), len(shared))
        files = sorted(path.relative_to(alone) for path in alone.rglob("*.parquet"))
        print(len(files) > 4, files == sorted(path.relative_to(forked) for path in forked.rglob("*.parquet")))
        print(all(pq.read_table(alone / path).equals(pq.read_table(forked / path)) for path in files))
        """,
        *(TRACES / "v3-posix-mix-4r", tmp_path / "forked", tmp_path / "alone"),
    )
    assert said == ["0 1", "0 1", "True True", "True"]


def test_a_trace_that_changes_meanwhile_is_refused_as_ever(tmp_path, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    said = run(
        """
        no_room()
        import shutil

        trace = Path(sys.argv[2])
        shutil.copytree(sys.argv[1], trace)
        real_share = forks.Forks.share

        def share(*of):
            found = real_share(*of)
            for file in trace.glob("*.ts"):
                file.write_bytes(file.read_bytes()[:-20])
            return found

        forks.Forks.share = share
        print(run("profile", trace, "-o", sys.argv[3]), Path(sys.argv[3]).exists())
        """,
        *(TRACES / "v3-posix-mix-4r", tmp_path / "trace", tmp_path / "out.yaml"),
    )
    assert "2 False" in said and any("while it was read" in line for line in said), said
    assert not any("Traceback" in line for line in said)


def test_so_they_do_while_a_bar_shows_on_a_terminal(tmp_path):
    script = """
from vani.cli import output
output._SHOW_AFTER_S = output._DRAW_EVERY_S = 0.001
try:
    main(["profile", sys.argv[1], "-o", "out.yaml"])
finally:
    print("forked", len(shared), "times")
"""
    status, shown = on_terminal(
        [sys.executable, "-c", COMMANDS + script, TRACES / "v3-posix-mix-4r"],
        tmp_path,
        environment={"TERM": "xterm", "VANI_CACHE": str(tmp_path)},
    )
    assert status == 0
    assert "\x1b[2K" in shown
    assert "reading the trace" in shown
    assert "forked 3 times" in shown


def test_one_who_asks_for_threads_gets_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path))
    assert run(
        """
        print(run("profile", sys.argv[1], "-o", sys.argv[2], "--scheduler", "threads"), shared)
        """,
        *(TRACES / "v3-posix-mix-4r", tmp_path / "out.yaml"),
    ) == ["0 []"]


@pytest.mark.parametrize("room", [True, False])
def test_the_same_forks_work_in_all_passes(tmp_path, monkeypatch, room):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path))
    assert run(
        f"""
        {"pass" if room else "no_room()"}
        print(run("profile", sys.argv[1], "-o", sys.argv[2]), len(shared), len(made))
        """,
        *(TRACES / "v3-posix-mix-4r", tmp_path / "out.yaml"),
    ) == [f"0 {3 if room else 4} 2"]


def test_a_program_that_uses_the_library_is_not_forked(monkeypatch):
    forked: list[bool] = []
    monkeypatch.setattr("os.fork", lambda: forked.append(True))
    monkeypatch.setattr("vani.engine.here._FEWEST_FORKED", 1)
    engine = Engine()
    try:
        assert engine.map(int, range(4), calls=4) == [0, 1, 2, 3]
    finally:
        engine.close()
    assert not forked
