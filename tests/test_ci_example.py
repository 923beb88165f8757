"""examples/ci: a program without MPI, with a change that passes its tests and fails its I/O policy.

`test_docs.py` runs the commands of its README, like those of all pages.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.traces.recorder_writer import default_functions
from vani.schema.check import Baseline

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "ci"
COMPILER = shutil.which(os.environ.get("CC", "cc"))

compiled = pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="needs a C compiler on Linux"
)


@pytest.fixture
def place(tmp_path) -> Path:
    """A copy of the example, as in a user's repository."""
    shutil.copytree(EXAMPLE, tmp_path / "app")
    return tmp_path / "app"


def run(
    place: Path, *arguments: object, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if not key.startswith("RECORDER_")}
    settings |= {"PYTHONPATH": str(ROOT), "VANI_CACHE": str(place / "cache")} | environment
    done = subprocess.run(
        [str(one) for one in arguments], cwd=place, env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def vani(place: Path, *arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    return run(place, sys.executable, "-m", "vani", *arguments, status=status)


def verdict(place: Path, version: str, status: int) -> dict:
    vani(place, "check", f"traces/{version}/heat", "--quiet", "--output", "json=verdict.json", status=status)
    return json.loads((place / "verdict.json").read_text())


# --- the two runs ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_accepted_version_passes(place):
    found = verdict(place, "before", 0)
    assert found["verdict"] == "pass"
    assert {one["status"] for one in found["judgements"]} == {"pass"}


@pytest.mark.slow
def test_change_fails_only_if_it_adds_requests(place):
    found = verdict(place, "after", 1)
    assert found["verdict"] == "fail"
    failed = {
        one["check"]: (one["level"], one["value"]) for one in found["judgements"] if one["status"] == "fail"
    }
    # 20 saves of 256 rows, each opened, written and closed; the file is opened and closed once to create it.
    rows = 20 * 256
    assert failed.pop("metadata-operations") == ("error", 2 * rows + 2)
    assert failed.pop("large-writes") == ("warning", 256 * 8)
    assert failed.pop("writes") == ("error", rows)
    assert [(name, level) for name, (level, _) in failed.items()] == [("rules.POS003", "error")]
    held = {one["check"] for one in found["judgements"] if one["status"] == "pass"}
    assert {"output-size", "bytes-written"} <= held


def test_baseline_comes_from_the_accepted_version(place):
    saved = Baseline.load(place / ".vani" / "baseline.yaml").figures
    vani(place, "check", "traces/before/heat", "--quiet", "--save", "new.yaml")
    now = Baseline.load(place / "new.yaml").figures
    for figures in (saved, now):
        io = figures["workflow"]["io"]
        assert {k: n for k, n in io["ops"].items() if n} == {"write": 20, "metadata": 2}
        assert io["bytes"]["written"] == 20 * 256 * 256 * 8
    assert saved["workflow"]["io"]["time_s"] == now["workflow"]["io"]["time_s"]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "status"), [("before", 0), ("after", 1)])
def test_every_format_at_once_and_the_same_bytes_twice(place, version, status):
    formats = ("sarif", "junit", "github", "gitlab", "json", "text")
    written = []
    for attempt in ("1", "2"):
        outputs = [f"--output={name}={name}.{attempt}" for name in formats]
        vani(place, "check", f"traces/{version}/heat", *outputs, status=status)
        written.append({name: (place / f"{name}.{attempt}").read_bytes() for name in formats})
    assert written[0] == written[1]
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "tests" / "data" / "sarif-schema-2.1.0.json").read_text())
    jsonschema.Draft4Validator(schema).validate(json.loads(written[0]["sarif"]))
    assert len(json.loads(written[0]["gitlab"])) == (2 if status else 0)  # Two causes of four failures.
    assert (written[0]["github"] == b"") == (status == 0)


# --- the program and its traces -------------------------------------------------------------------


@pytest.fixture
def make_traces(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    spec = importlib.util.spec_from_file_location("make_traces", EXAMPLE / "stand-in" / "make_traces.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@compiled
@pytest.mark.parametrize("version", ["before", "after"])
@pytest.mark.slow
def test_bundled_trace_contains_the_calls_of_the_program(make_traces, tmp_path, version):
    """Byte by byte except for the times and the folder: the same call table and grammar."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    calls = make_traces.listed_calls(EXAMPLE / version / "heat.c", folder)
    there = str(folder.resolve())
    moved = [
        (f, start, end, tuple(a.replace(there, "/scratch/heat") for a in args))
        for f, start, end, args in calls
    ]
    make_traces.encode(moved, tmp_path / "heat")
    bundled = EXAMPLE / "traces" / version / "heat"
    assert {path.name for path in bundled.iterdir()} == {path.name for path in (tmp_path / "heat").iterdir()}
    for name in ("0.cst", "0.cfg", "recorder.mt", "VERSION"):
        assert (tmp_path / "heat" / name).read_bytes() == (bundled / name).read_bytes()


@compiled
@pytest.mark.skipif(shutil.which("nm") is None, reason="reads symbols with nm")
@pytest.mark.parametrize("version", ["before", "after"])
def test_stand_in_for_the_tracer_sees_every_file_call(tmp_path, version):
    program = tmp_path / "heat"
    subprocess.run([COMPILER, "-O2", "-o", program, EXAMPLE / version / "heat.c"], check=True)
    shown = subprocess.run(
        ["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True
    )
    wanted = set(re.findall(r" U (\w+)", shown.stdout))
    listed = set(
        re.findall(r"^(?:int|ssize_t) (\w+)\(", (EXAMPLE / "stand-in" / "calls.c").read_text(), re.MULTILINE)
    )
    assert listed == {"open", "write", "close"}
    # Functions that Recorder would trace; with fwrite the program writes to stderr if something is wrong.
    assert wanted & set(default_functions("2.5g")) - {"fwrite"} == listed


@compiled
def test_both_versions_write_the_same_file(tmp_path):
    for version in ("before", "after"):
        program = tmp_path / version
        subprocess.run([COMPILER, "-O2", "-o", program, EXAMPLE / version / "heat.c"], check=True)
        subprocess.run([program, tmp_path / f"{version}.out"], check=True)
    assert (tmp_path / "before.out").stat().st_size == 20 * 256 * 256 * 8
    assert (tmp_path / "before.out").read_bytes() == (tmp_path / "after.out").read_bytes()


def test_the_change_is_small(place):
    texts = [(place / version / "heat.c").read_text().splitlines() for version in ("before", "after")]
    changed = [line for line in difflib.ndiff(*texts) if line[0] in "+-"]
    assert 10 < len(changed) < 30


# --- what to copy ---------------------------------------------------------------------------------


def test_workflow_gives_the_action_existing_inputs():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = yaml.safe_load((EXAMPLE / "github-workflow.yml").read_text())["jobs"]["check"]["steps"]
    (step,) = [step for step in steps if step.get("id") == "vani"]
    assert step["with"].keys() <= action["inputs"].keys()
    used = set(re.findall(r"steps\.vani\.outputs\.(\w+)", (EXAMPLE / "github-workflow.yml").read_text()))
    assert used <= action["outputs"].keys()


def test_pipeline_gives_the_component_existing_inputs():
    spec, _ = yaml.safe_load_all((ROOT / "packaging" / "gitlab" / "vani-check.yml").read_text())
    pipeline = yaml.safe_load((EXAMPLE / "gitlab-ci.yml").read_text())
    assert pipeline["include"][0]["inputs"].keys() <= spec["spec"]["inputs"].keys()
    # The job shown in the README is the component's.
    assert spec["spec"]["inputs"]["job"]["default"] in pipeline


def test_hook_exists_in_the_repository():
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (repository,) = yaml.safe_load((EXAMPLE / "pre-commit-config.yaml").read_text())["repos"]
    assert {hook["id"] for hook in repository["hooks"]} <= {hook["id"] for hook in hooks}


# --- run.sh ---------------------------------------------------------------------------------------


def test_bundled_trace_replaces_a_missing_recorder(place):
    done = run(place, "./run.sh", "before", PATH="/usr/bin:/bin")
    if "Recorder is not installed" not in done.stderr:
        pytest.skip("a Recorder is installed here")
    assert done.stdout == "traces/before/heat\n"


def test_missing_recorder_is_an_error(place):
    done = run(place, "./run.sh", "after", RECORDER_LIB="/nowhere/librecorder.so", status=2)
    assert done.stdout == ""
    assert (
        done.stderr
        == "run.sh: RECORDER_LIB is /nowhere/librecorder.so, which is not a file; name librecorder.so\n"
    )


@pytest.mark.parametrize("arguments", [[], ["--help"], ["other"]])
def test_running_without_a_version_explains_how(place, arguments):
    assert run(place, "./run.sh", *arguments, status=2).stderr.startswith("usage: run.sh before|after")


@compiled
@pytest.mark.slow
def test_program_is_traced_with_recorder(place, tmp_path):
    """A stand-in for Recorder's library leaves the bundled trace where Recorder would."""
    source = tmp_path / "recorder.c"
    source.write_text(
        """
        #include <stdlib.h>
        __attribute__((constructor)) static void begin(void) {
            if (!getenv("RECORDER_WITH_NON_MPI") || getenv("RECORDER_TRACES_DIR")) return;
            unsetenv("LD_PRELOAD");
            system("cp -r \\"$BUNDLED\\" ./host-me-heat-1-20260101");
        }
        """
    )
    library = tmp_path / "librecorder.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    scratch = tmp_path / "job 1"
    bundled = str(EXAMPLE / "traces" / "after" / "heat")
    done = run(
        place,
        "./run.sh",
        "after",
        scratch,
        RECORDER_LIB=str(library),
        BUNDLED=bundled,
        RECORDER_TRACES_DIR="/tmp",
    )
    assert done.stdout == f"{scratch}/host-me-heat-1-20260101\n"
    assert (scratch / "heat.out").stat().st_size == 20 * 256 * 256 * 8
    assert run(place, "./run.sh", "--check", RECORDER_LIB=str(library)).stdout == f"{library}\n"
    vani(place, "check", done.stdout.strip(), "--quiet", status=1)


@compiled
def test_a_library_that_leaves_no_trace_is_an_error(place, tmp_path):
    (tmp_path / "empty.c").write_text("")
    library = tmp_path / "librecorder.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, tmp_path / "empty.c"], check=True)
    done = run(place, "./run.sh", "before", tmp_path / "job", RECORDER_LIB=str(library), status=1)
    assert done.stdout == ""
    assert "left no trace in" in done.stderr
