"""A run is named by its profile or its trace: all commands decide which in the same way, and accept both."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest
from distribution import declared
from repository import ROOT

from vani.cli import sources
from vani.cli.main import commands
from vani.readers import open as opening
from vani.readers.trace_reader import Format

PROFILE = ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml"
CALLS = """\
0,open,/s/out,,,0,10000
0,write,/s/out,0,100,10000,40000
0,close,/s/out,,,60000,1000
1,open,/s/out,,,100000,10000
1,read,/s/out,0,100,110000,20000
1,close,/s/out,,,130000,1000
"""
COMMANDS = {
    "check": ["check", "--allow-empty"],
    "advise": ["advise"],
    "report": ["report", "--format", "txt"],
    "plot": ["plot", "ops", "-o", "x.json"],
    "plot over time": ["plot", "heat-map", "-o", "x.json"],
    "diff": ["diff", str(PROFILE)],
    "check --save": ["check", "--save", "b.yaml"],
}
each_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


@pytest.fixture
def csv_reader(tmp_path, desk, monkeypatch):
    """The example reader, installed; its traces may be files."""
    site = tmp_path / "site"
    site.mkdir()
    declared(site, {"vani.readers": {"csv": "csv_reader:CSV"}})
    monkeypatch.setattr(sys, "path", [str(site), str(ROOT / "examples"), *sys.path])
    importlib.invalidate_caches()
    opening._plug_ins.cache_clear()
    yield importlib.import_module("csv_reader")
    opening._plug_ins.cache_clear()


@pytest.fixture
def calls(csv_reader, desk):
    """A trace that consists of one file."""
    (desk / "calls.csv").write_text(CALLS)
    return desk / "calls.csv"


@each_command
@pytest.mark.sampled(3)
def test_single_file_trace_is_accepted_like_its_profile(run, calls, desk, command):
    # Formerly "holds only '0,open,...', not a mapping of keys; start it with `schema: vani.profile/4`".
    done = run(*command, calls.name, "--store", "stores", "-q")
    assert (done.status, done.err) == (0, ""), done.err
    made = done.out or next(p for p in desk.iterdir() if p.name in ("x.json", "b.yaml")).read_text()
    assert run("profile", calls.name, "--store", "stores", "--files", "all", "-o", "p.yaml", "-q").status == 0
    for name in ("x.json", "b.yaml"):
        (desk / name).unlink(missing_ok=True)
    again = run(*command, "p.yaml", "--store", "stores", "-q")
    assert again.status == 0
    saved = again.out or next(p for p in desk.iterdir() if p.name in ("x.json", "b.yaml")).read_text()
    # The only difference is the source of the figures: a profile in a file has a path.
    differs = {"p.yaml", "calls.csv", "profile: {path"}
    assert [line for line in made.splitlines() if not any(word in line for word in differs)] == [
        line for line in saved.splitlines() if not any(word in line for word in differs)
    ]


@each_command
@pytest.mark.sampled(2)
def test_trace_folder_is_accepted_as_well(run, mix, command):
    # Formerly refused by `plot` and `advise`.
    assert run(*command, mix, "-q").status == 0


@each_command
def test_a_profile_in_a_pipe_is_read_once(run, desk, command):
    # Formerly `report` read it a second time and waited for ever.
    shutil.copy(PROFILE, "p.yaml")
    if command[:2] == ["plot", "heat-map"]:
        pytest.skip("its trace is not there")
    end, begin = os.pipe()

    def write() -> None:
        with os.fdopen(begin, "wb") as pipe:
            pipe.write(PROFILE.read_bytes())

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    done = run(*command, f"/dev/fd/{end}", "-q")
    writer.join(timeout=10)
    os.close(end)
    assert (done.status, writer.is_alive()) == (0, False), done.err


@each_command
def test_named_pipe_is_refused_because_it_may_block_for_ever(run, desk, command):
    # Formerly waited for ever.
    os.mkfifo("pipe.yaml")
    done = run(*command, "pipe.yaml")
    assert (done.status, done.line) == (2, "pipe.yaml: is a named pipe; name a file")


def test_no_format_takes_a_document_of_vani_for_its_trace(csv_reader, desk, monkeypatch):
    monkeypatch.setattr(csv_reader, "CSV", Format("greedy", Path.is_file, csv_reader.CsvReader))
    opening._plug_ins.cache_clear()
    shutil.copy(PROFILE, "p.txt")
    Path("p.json").write_text('{\n "generator": {},\n "schema": "vani.profile/4"}')
    Path("else").write_text("x")
    assert [sources.is_trace(name) for name in ("p.txt", "p.json", "else", ".", "none")] == [
        False, False, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["profile", "advise", "check", "diff", "report", "plot"])
def test_commands_that_decode_a_trace_share_their_options(name):
    context = commands.make_context("vani", [], resilient_parsing=True)
    command = commands
    for word in name.split():
        command = command.get_command(context, word)
    options = {option.name: option.help for option in command.params if getattr(option, "help", None)}
    profile = {option.name: option for option in commands.get_command(context, "profile").params}
    for option in ("store", "scheduler"):
        assert options[option] == profile[option].help


@pytest.mark.parametrize("name", ["advise", "check", "diff", "report", "plot"])
def test_unknown_scheduler_is_reported_before_anything_is_read(run, desk, name):
    words = {"plot": ["plot", "ops", "-o", "x.svg"], "diff": ["diff", "none.yaml"]}.get(name, [name])
    done = run(*words, "none.yaml", "--scheduler", "nowhere")
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith("unknown scheduler 'nowhere'; known are threads, processes, synchronous")


READ = (
    "name the folder of a Recorder trace (recorder.dat, or recorder.mt and VERSION), a .darshan log, .pfw files, an archive of "
    "OTF2 or a log of strace -f -ttt -T -y"
)
TODO = f"{READ}, or name a profile"


@each_command
@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("zeros", bytes(5000), f"zeros: is a file, not a trace; {TODO}"),
        ("rubbish", b"\x93\xff\0" * 2000, f"rubbish: is a file, not a trace; {TODO}"),
        ("note", b"hello\n", f"note: is a file, not a trace; {TODO}"),
        ("empty", b"", "empty: is an empty file; copy it again from where the tracer wrote it, or leave it out, or name a profile"),
        ("list.yaml", b"- a\n- b\n", "list.yaml: contains a list, not a mapping of keys; start it with `schema: vani.profile/4`"),
        ("recorder.mt", b"\x93\xff\0", "recorder.mt: is one file of a Recorder trace; name its folder, ., or name a profile"),
        ("x.tar.gz", b"\x93\xff\0", "x.tar.gz: is an archive; unpack it and name the trace's folder, or name a profile"),
        ("folder", None, f"folder: is an empty folder; {READ}"),
        ("advice.yaml", b"schema: vani.advice/3\n", "advice.yaml:1: schema is 'vani.advice/3', advice, for `vani apply ADVICE` and `vani report PROFILE --advice ADVICE`; known here is vani.profile/4"),
    ],
)  # fmt: skip
def test_input_that_is_neither_profile_nor_trace_gives_one_line(run, desk, command, name, content, line):
    (desk / name).mkdir() if content is None else (desk / name).write_bytes(content)
    done = run(*command, name)
    assert (done.status, done.out, done.line) == (2, "", line)
    assert [path.name for path in desk.iterdir()] == [name]


@each_command
@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@pytest.mark.parametrize("content", [bytes(5000), b"\x93\xff\0" * 2000], ids=["zeros", "rubbish"])
def test_file_named_like_a_document_is_reported_if_it_is_not_one(run, desk, command, suffix, content):
    (desk / f"d{suffix}").write_bytes(content)
    done = run(*command, f"d{suffix}")
    assert (done.status, done.out) == (2, "")
    assert any(words in done.line for words in ("not YAML", "is binary, not text"))


@each_command
def test_a_profile_with_an_unknown_key_is_refused(run, desk, command):
    Path("p.yaml").write_text(PROFILE.read_text().replace("\nworkflow:", "\nbogus: 1\nworkflow:", 1))
    done = run(*command, "p.yaml")
    assert (done.status, done.out) == (2, "")
    assert "unknown key 'bogus' at the top" in done.line
