"""Destinations of output: documents complete or not at all, only documents on stdout, summaries on stderr."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import yaml
from repository import ROOT, TRACES

from tests.traces.recorder_writer import Call, write_trace
from vani import Profile

VANI = [sys.executable, "-m", "vani"]


@pytest.mark.parametrize("extra", [[], ["-o", "-"], ["--quiet"], ["-q", "--files", "all"]])
@pytest.mark.sampled(2)
def test_stdout_is_the_document_and_nothing_else(run, mix, extra):
    done = run("profile", mix, *extra)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("schema: vani.profile/4\n")
    assert yaml.load(done.out, yaml.CSafeLoader)["workflow"]["processes"] == 4


def test_file_contains_what_stdout_would(run, mix, desk):
    shown = run("profile", mix).out
    done = run("profile", mix, "-o", "p.yaml")
    assert (done.status, done.out) == (0, "")
    assert (desk / "p.yaml").read_text() == shown
    assert [path.name for path in desk.iterdir()] == ["p.yaml"]


@pytest.mark.slow
def test_a_document_does_not_depend_on_the_encoding_of_the_terminal(run, mix, desk):
    # The trace has file names with characters beyond ASCII (see its README).
    run("profile", mix, "-o", "p.yaml")
    done = subprocess.run(
        [*VANI, "profile", mix],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout == (desk / "p.yaml").read_bytes()
    assert not done.stdout.isascii()


@pytest.mark.slow
def test_demo_runs_on_a_terminal_with_few_characters(desk):
    done = subprocess.run(
        [*VANI, "demo"], capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert b"-m vani profile TRACE" in done.stdout
    assert done.stderr == b""


@pytest.mark.slow
def test_all_or_no_files_are_listed_on_request(run, mix):
    everything = yaml.load(run("profile", mix, "--files", "all").out, yaml.CSafeLoader)
    assert len(everything["files"]) == everything["workflow"]["files"]["total"] == 57
    assert yaml.load(run("profile", mix, "--files", "0").out, yaml.CSafeLoader)["files"] == []
    three = yaml.load(run("profile", mix, "--files", "3").out, yaml.CSafeLoader)
    assert three["files"] == everything["files"][:3]
    assert three["workflow"] == everything["workflow"]


def test_a_path_with_spaces_and_quotes(run, desk):
    odd = desk / """it's a "run" of mine"""
    shutil.copytree(TRACES / "v3-cm1like-16r", odd)
    done = run("profile", odd.name, "-o", "a 'b'.yaml", "--graph", 'g "x".json', "--store", "my store")
    assert (done.status, done.out) == (0, "")
    assert Profile.load("a 'b'.yaml").traces[0].path == str(odd)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("nowhere/p.yaml", "cannot be written: its folder does not exist; create nowhere first"),
        ("folder", "is a folder, not a file to write; name a file"),
        ("file/p.yaml", "cannot be written: its folder does not exist; create file first"),
        pytest.param(
            "locked/p.yaml",
            "cannot be written: its folder is read-only; name another one",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere"),
        ),
    ],
)
@pytest.mark.parametrize("option", ["-o", "--graph"])
def test_unwritable_output_is_detected_before_the_work(
    run, desk, monkeypatch, option, output, said
):
    (desk / "folder.dot").mkdir()
    (desk / "folder").mkdir()
    (desk / "file").write_text("")
    (desk / "locked").mkdir(mode=0o555)
    name = output.replace(".yaml", ".dot").replace("folder", "folder.dot") if option == "--graph" else output
    # The work itself would first complain about a trace that does not exist.
    done = run("profile", "no-trace", option, name)
    assert done.status == 2
    assert done.line == f"{name}: {said}"


def test_two_outputs_do_not_share_a_name(run, mix):
    done = run("profile", mix, "-o", "x.json", "--graph", "x.json")
    assert done.status == 2
    assert done.line == "x.json: is used for two outputs; give each a different name"


def test_a_full_device_is_named(run, mix):
    done = run("profile", mix, "-o", "/dev/full")
    assert done.status == 2
    assert done.line.startswith("/dev/full: cannot be written (No space left on device)")


def test_failed_run_keeps_existing_files(run, desk):
    (desk / "p.yaml").write_text("mine")
    assert run("profile", TRACES / "v3-killed-2r", "-o", "p.yaml").status == 2
    assert (desk / "p.yaml").read_text() == "mine"
    assert [path.name for path in desk.iterdir()] == ["p.yaml"]


def test_existing_file_is_replaced_and_a_link_followed_or_replaced(run, desk, mix):
    (desk / "p.yaml").write_text("old")
    assert run("profile", mix, "-o", "p.yaml").status == 0
    assert Profile.load(desk / "p.yaml").workflow.processes == 4


def test_readable_part_of_a_damaged_trace_is_profiled(run, cut):
    done = run("profile", cut)
    assert (done.status, done.err) == (0, "")
    trace = yaml.load(done.out, yaml.CSafeLoader)["traces"][0]
    assert trace["complete"] is False
    assert "1.ts" in trace["problems"][0]


def test_a_graph_of_apps_names_the_files_between_them(run, desk):
    done = run("profile", ROOT / "examples" / "coupled", "--graph", "g.json", "-o", "p.yaml", "-q")
    assert (done.status, done.err) == (0, "")
    graph = json.loads((desk / "g.json").read_text())
    assert {node["id"] for node in graph["nodes"]} == {"sim", "weather", "analysis", "resim"}
    # 02-analysis reads the last checkpoint of 01a-sim: its header and the files of two of four ranks.
    assert [(e["source"], e["target"], e["files"]) for e in graph["edges"]] == [("sim", "analysis", 3)]


def test_a_graph_of_processes_is_a_graph(run, desk):
    trace = TRACES / "v3-ckpt-then-restart-8r"
    assert run("profile", trace, "--graph", "g.dot", "--graph-of", "processes", "-o", "p.yaml").status == 0
    text = (desk / "g.dot").read_text()
    assert text.startswith("digraph vani {\n")
    # Every rank reads the checkpoint of the next (8 edges) and the header that rank 0 wrote (7, of which one is known).
    assert text.count(" -> ") == 14


def test_a_graph_of_processes_leads_from_app_to_app(run, desk):
    arguments = ("--graph", "g.json", "--graph-of", "processes", "-o", "p.yaml", "-q")
    done = run("profile", ROOT / "examples" / "coupled", *arguments)
    assert (done.status, done.err) == (0, "")
    edges = {(e["source"], e["target"]): e for e in json.loads((desk / "g.json").read_text())["edges"]}
    # Each of two ranks reads the header of rank 0 and the cells of the rank after its own.
    between = {pair: e for pair, e in edges.items() if pair[0].split("/")[0] != pair[1].split("/")[0]}
    assert {pair: (e["files"], e["files_by_extents"]) for pair, e in between.items()} == {
        ("sim/0/0", "analysis/2/0"): (1, 1),
        ("sim/0/1", "analysis/2/0"): (1, 1),
        ("sim/0/0", "analysis/2/1"): (2, 2),
    }
    assert {pair[0].split("/")[0] for pair in set(edges) - set(between)} == {"resim"}


def test_graph_marks_dependencies_known_only_by_file(run, desk):
    calls = {
        "1-print": [Call("fopen", ("/d/t", "w"), start=0, end=1), Call("fclose", ("/d/t",), start=2, end=3)],
        "2-scan": [Call("fopen", ("/d/t", "r"), start=0, end=1), Call("fclose", ("/d/t",), start=2, end=3)],
    }
    for number, (name, own) in enumerate(calls.items()):
        write_trace(desk / "w" / name, [own], layout="3.0", start_unix=1.7e9 + number)
    assert run("profile", "w", "--graph", "g.dot", "-o", "p.yaml").status == 0
    label = "files=1, files_by_extents=0, bytes_written=unknown, bytes_read=unknown"
    assert f'  "print" -> "scan" [label="{label}", style=dashed];\n' in (desk / "g.dot").read_text()


def test_store_is_written_completely_and_silently(run, desk, mix):
    done = run("convert", mix, "store")
    assert (done.status, done.out, done.err) == (0, "", "")
    manifest = json.loads((desk / "store" / "manifest.json").read_text())
    assert manifest["complete"] is True
    assert [path.name for path in desk.iterdir()] == ["store"]


def test_a_folder_of_traces_becomes_a_folder_of_stores(run, desk):
    assert run("convert", ROOT / "examples" / "coupled", "stores").status == 0
    found = sorted(path.parent.name for path in desk.rglob("manifest.json"))
    assert found == ["01a-sim", "01b-weather", "02-analysis", "03-resim"]


def test_help_loads_no_heavy_library_but_pydantic():
    code = (
        "import sys; from vani.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(sorted({'dask', 'numpy', 'pyarrow', 'pydantic', 'networkx', 'rich', 'yaml'} & set(sys.modules)))"
    )
    for arguments, loaded in ((["--help"], []), (["profil"], []), (["profile", "--help"], ["pydantic"])):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == str(loaded), arguments


def test_unread_pipe_is_not_an_error(desk, mix):
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m vani profile "$1" --files all | head -n 1', sys.executable, str(mix)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("schema: vani.profile/4\n", "")


def test_clock_beyond_python_s_range_is_named(run, mix, monkeypatch):
    # As `time` raises it where the system's clock shows the year 2311.
    def broken(*_, **__):
        raise OverflowError("timestamp too large to convert to C _PyTime_t")

    monkeypatch.setattr("vani.cli.characterise.characterise", broken)
    done = run("profile", mix)
    assert (done.status, done.out) == (2, "")
    assert done.line == "this machine's clock is later than the year 2262, beyond what Python can represent; set it"


@pytest.mark.parametrize("is_checkout", [True, False])
def test_internal_error_is_reported_in_one_line(run, mix, monkeypatch, tmp_path, is_checkout):
    def broken(*_, **__):
        raise RuntimeError("two and two\nis five")

    monkeypatch.setattr("vani.cli.characterise.characterise", broken)
    if not is_checkout:
        monkeypatch.setattr("vani.plug_ins._ROOT", tmp_path)
    done = run("profile", mix)
    assert (done.status, done.out) == (3, "")
    if is_checkout:
        # In a checkout the file may be the user's own, so the line names it.
        assert re.match(r"RuntimeError: two and two\\nis five at tests/cli/test_output\.py:\d+; fix it there", done.line)
    else:
        assert done.line.startswith("a fault of Vani itself: RuntimeError: two and two\\nis five; please report it")


def test_interrupted(run, mix, desk, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("vani.cli.characterise.characterise", interrupted)
    done = run("profile", mix, "-o", "p.yaml")
    assert (done.status, done.line) == (130, "interrupted")
    assert list(desk.iterdir()) == []


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
@pytest.mark.slow
def test_ctrl_c_during_the_work_leaves_no_files(desk, scheduler):
    # Decoding starts with a folder named .partial; paused there, the run cannot finish too early.
    (desk / "sitecustomize.py").write_text(
        "import time\n"
        "import vani.store.write as write\n"
        "def slow(task, reader):\n"
        "    for _ in range(600): time.sleep(0.05)\n"
        "write.decode_part = slow\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(desk), str(ROOT)])}
    arguments = [
        "profile",
        TRACES / "v3-cm1like-16r",
        "--store",
        "stores",
        "-o",
        "p.yaml",
        "--scheduler",
        scheduler,
    ]
    process = subprocess.Popen(
        [*VANI, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 30
        while not list(desk.glob("stores/.*.partial/calls")):
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert (out, err.strip()) == ("", "vani: interrupted")
    assert not (desk / "p.yaml").exists()
    assert list((desk / "stores").iterdir()) == []
