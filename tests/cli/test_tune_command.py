"""`vani tune` from a user's view, with a program that is faster under the layout and hints it finds."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from compiled_timer import compile_once
from repository import ROOT

from tests.readers.strace_logs import strace_or_skip
from vani.cli.tune import tune
from vani.schema.advice import Advice, TunableSetting
from vani.schema.profile import Profile
from vani.schema.tuned import Tuned

LFS = """#!/bin/sh
# lfs setstripe -c COUNT FOLDER | setstripe -d FOLDER | setstripe --yaml=FILE FOLDER | getstripe -d [--raw|--yaml] FOLDER
eval folder=\\${$#}
layouts=$LAYOUTS/$(printf %s "$folder" | tr / _)
case "$1 $2" in
"setstripe -c") printf 'stripe_count: %s\\n' "$3" >"$layouts" ;;
"setstripe -d") rm -f "$layouts" ;;
"setstripe --yaml="*) cp "${2#--yaml=}" "$layouts" ;;
"getstripe -d") cat "$layouts" 2>/dev/null || echo 'stripe_count: 0' ;;
esac
exit 0
"""
PROGRAM = """
import getpass, os, shutil, sys, time
folder = sys.argv[1]
layout = os.path.join(os.environ["LAYOUTS"], folder.replace("/", "_"))
stripes = int(open(layout).read().split()[1]) if os.path.exists(layout) else 1
hints = dict(line.split() for line in open(os.environ["ROMIO_HINTS"])) if "ROMIO_HINTS" in os.environ else {}
for name, value in hints.items():
    print(f"key = {name}     value = {value}")
if hints.get("cb_nodes") == os.environ.get("FAILS_WITH", "none"):
    sys.exit(7)
open(os.path.join(folder, "out.dat"), "w").write(hints.get("cb_nodes", "right"))
if "DARSHAN_LOGPATH" in os.environ:
    log = f"{getpass.getuser()}_program_id{os.getpid()}-{os.getpid()}_1.darshan"
    shutil.copyfile(os.environ["LOG"], os.path.join(os.environ["DARSHAN_LOGPATH"], log))
time.sleep(float(os.environ.get("SECONDS", "0")))
# A clock of its own, which a busy machine does not slow down; runs differ by 1 %.
runs = (int(folder.rpartition("-")[2]) - 1) // 2 if "vani-tune-" in folder else 0
print("took", (0.1 if stripes == 8 else 0.4) * (1 + runs % 2 / 100), "s")
"""
CLOCK = "sed -n 's/^took \\(.*\\) s$/\\1/p' \"$VANI_LOG\""


@pytest.fixture
def scratch(run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The output folder, next to program.py and advice.yaml with two tunable."""
    layouts, programs, scratch = desk.parent / "layouts", desk.parent / "programs", desk / "scratch"
    for folder in (layouts, programs, scratch):
        folder.mkdir()
    (programs / "lfs").write_text(LFS)
    (programs / "lfs").chmod(0o755)
    (desk / "program.py").write_text(PROGRAM)
    monkeypatch.setattr("vani.cli.tune_trials.compile_units", compile_once)
    monkeypatch.setenv("LAYOUTS", str(layouts))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    run("advise", ROOT / "tests" / "golden" / "v3-haccio-ssf-8r.yaml", "--select", "MAT001", "-o", "advice.yaml")
    advice = Advice.load("advice.yaml")
    first = advice.recommendations[0].model_copy(update={"severity": "high"})
    layout = TunableSetting(kind="layout", folder=str(scratch / "run"), values=[{"options": "-c 8"}])
    items = [
        first.model_copy(update={"rule": "LUS002", "settings": [layout]}),
        first.model_copy(update={"rule": "MPI003", "settings": [TunableSetting(kind="hints", values=[{"cb_nodes": "8"}])]}),
        first.model_copy(update={"rule": "POS001", "settings": [], "apply": ["# in the program: ..."]}),
    ]
    advice.model_copy(update={"recommendations": items}).save("advice.yaml")
    return scratch


def words(*options: str, clock: str = CLOCK) -> list[str]:
    timed = ["--time", clock] if clock else []
    program = [sys.executable, "program.py", "{data}"]
    return ["tune", "--data", "scratch", "--advice", "advice.yaml", *timed, *options, "--", *program]


def layouts() -> list[Path]:
    return [*Path(os.environ["LAYOUTS"]).iterdir()]


def test_helpful_settings_are_proven_and_kept(run, scratch):
    (scratch / "mine").write_text("mine")
    done = run(*words())
    assert (done.status, done.err) == (0, "")
    tuned = Tuned.load("tuned.yaml")
    assert [known.candidates for known in tuned.runs] == [[], [0], [0, 1], []]
    assert tuned.result.verdict == "proven"
    assert tuned.result.low < 4 < tuned.result.high
    tries, reason, first, cost, *_ = done.out.splitlines()
    assert tries.startswith("Tries        -c 8: ")
    assert reason.startswith("Tries        cb_nodes 8: ")
    assert first.startswith("Run 1 of 5   as it is ")
    assert cost.startswith("At most      4 more runs, about ")
    assert cost.endswith("each writes 5 B, which is removed after its run")
    assert "Proven: " in done.out
    assert "POS001: needs a change inside the program" in done.out
    hinted = next(known for known in tuned.runs if 1 in known.candidates)
    assert hinted.hints == {"cb_nodes": "8"}
    # Each run has its own folder, which is removed; existing files remain.
    assert [path.name for path in scratch.iterdir()] == ["mine"]
    assert layouts() == []
    subprocess.run(["sh", "tuned.sh", "--apply"], check=True, capture_output=True)
    assert [path.read_text() for path in layouts()] == ["stripe_count: 8\n"]
    subprocess.run(["sh", "tuned.sh", "--undo"], check=True, capture_output=True)
    assert layouts() == []
    applied = run("apply", "tuned.yaml")
    assert f"ok      {scratch}: new files get -c 8\n" in applied.out
    run("apply", "tuned.yaml", "--undo")
    assert layouts() == []


def test_kept_output_stays_beside_existing_files(run, scratch):
    (scratch / "mine").write_text("mine")
    assert run(*words("--keep", "--budget", "2")).status == 0
    assert sorted(path.name for path in scratch.iterdir()) == ["mine", "vani-tune-1", "vani-tune-2"]


OVERWRITES = "import sys; open(sys.argv[1] + '/out.dat', 'a').write('again')"


def test_program_that_names_its_folder_runs_in_copies_of_it(run, scratch):
    (scratch / "out.dat").write_text("mine")
    done = run("tune", "--data", "scratch", "--advice", "advice.yaml", "--budget", "2", "--keep", "--io-time", "off", "--", sys.executable, "-c", OVERWRITES, "scratch")
    assert (done.status, done.err) == (0, "")
    assert (scratch / "out.dat").read_text() == "mine"
    copies = sorted(scratch.parent.glob("scratch-vani-tune-*"))
    assert [(path / "out.dat").read_text() for path in copies] == ["mineagain"] * 2


def test_program_that_may_overwrite_files_is_refused(run, scratch):
    (scratch / "out.dat").write_text("mine")
    Path("fixed.py").write_text(f"open({str(scratch / 'out.dat')!r}, 'w').write('lost')")
    done = run("tune", "--data", "scratch", "--advice", "advice.yaml", "--", sys.executable, "fixed.py")
    assert (done.status, (scratch / "out.dat").read_text()) == (2, "mine")
    assert "contains files that a run could overwrite" in done.line
    assert not Path("vani-tune-state").exists()


def test_without_a_folder_and_a_terminal_nothing_runs(run, scratch):
    done = run("tune", "--advice", "advice.yaml", "--", "touch", "ran")
    assert (done.status, Path("ran").exists(), Path("vani-tune-state").exists()) == (2, False, False)
    assert "a terminal is needed to confirm the folder" in done.err


def test_what_a_pipeline_prints_is_no_file_that_runs_overwrite(tmp_path, monkeypatch):
    strace_or_skip()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    questions = []
    command = ["sh", "-c", "echo text | tee out.txt | wc -c"]
    tuned = tune(command, Path.cwd(), budget="1", tracer="strace", confirm=lambda text: bool(questions.append(text) or True))
    assert [run.outcome for run in tuned.runs] == ["ended"]
    assert questions[0].startswith("The program writes 1 file below its working folder. ")


def test_more_runs_continue_an_ended_session(run, scratch):
    assert run(*words("--budget", "2")).status == 0
    done = run("tune", "--resume", "--budget", "9")
    assert (done.status, "--more N adds runs to it" in done.err) == (2, True)
    assert run("tune", "--resume", "--more", "4").status == 0
    tuned = Tuned.load("vani-tune-state/tuned.yaml")
    assert (tuned.most_runs, tuned.earlier_ends, tuned.result.verdict) == (6, [2], "proven")


def test_session_ends_before_a_run_that_has_no_room(run, scratch, monkeypatch):
    monkeypatch.setattr("vani.tune.session.shutil.disk_usage", lambda place: shutil._ntuple_diskusage(9, 8, 1))
    done = run(*words())
    assert done.status == 2
    assert "has room for 1 B, and a run needs 5 B" in done.err
    monkeypatch.undo()


def test_file_system_that_does_not_state_its_size_stops_no_run(run, scratch, monkeypatch):
    # CephFS without a manager.
    monkeypatch.setattr("vani.tune.session.shutil.disk_usage", lambda place: shutil._ntuple_diskusage(0, 0, 0))
    assert run(*words("--budget", "2")).status == 0


def test_crash_on_a_full_file_system_says_so(run, scratch, monkeypatch):
    monkeypatch.setattr("vani.tune.session.shutil.disk_usage", lambda place: shutil._ntuple_diskusage(9, 9, 0))
    done = run("tune", "--data", "scratch", "--advice", "advice.yaml", "--", "sh", "-c", "echo no room >&2; exit 3", "{data}")
    assert done.status == 1
    assert "crashed  (status 3, its file system is full: no room)" in done.out


def test_emptied_folder_is_empty_and_has_no_layout(run, scratch):
    assert run(*words("--clean", "--budget", "4")).status == 0
    assert [*scratch.iterdir()] == []
    assert layouts() == []
    (scratch / "mine").write_text("mine")
    done = run(*words("--clean", "--state", "other", "-o", "other.yaml"))
    assert (done.status, (scratch / "mine").read_text()) == (2, "mine")
    assert "is not empty" in done.line
    assert not Path("other").exists()


@pytest.mark.parametrize("way", ["fails", "wrong"])
def test_setting_that_makes_the_program_fail_is_not_kept(run, scratch, way, monkeypatch):
    if way == "fails":
        monkeypatch.setenv("FAILS_WITH", "8")
    done = run(*words("--verify", 'test "$(cat "$VANI_DATA/out.dat")" = right'))
    assert done.status == 0
    assert ("crashed  (status 7: key = cb_nodes" if way == "fails" else "wrong results  (--verify") in done.out
    assert Tuned.load("vani-tune-state/tuned.yaml").result.candidates in ([0], [])


def test_layout_that_fails_to_be_set_is_not_kept(run, scratch, monkeypatch):
    program = Path(os.environ["PATH"].split(os.pathsep)[0], "lfs")
    program.write_text("#!/bin/sh\ncase \"$1 $2\" in 'setstripe -c') echo 'error: too many stripes' >&2; exit 22 ;; esac\n")
    done = run(*words())
    assert done.status == 0
    assert "not applied  (error: too many stripes)" in done.out
    program.unlink()
    # Another one, such as on a node of Lustre, is not found either.
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(one for one in folders if not Path(one, "lfs").exists()))
    done = run(*words("--state", "other"))
    assert done.status == 0
    assert "not applied  (lfs is not installed here)" in done.out


def test_continued_session_does_not_overwrite_existing_files(run, scratch):
    assert run(*words("--budget", "4")).status == 0
    Path("mine.yaml").write_text("mine")
    done = run("tune", "--resume", "-o", "mine.yaml")
    assert (done.status, Path("mine.yaml").read_text()) == (2, "mine")
    assert run("tune", "--resume").status == 0


def test_traced_run_gives_the_settings_to_try(run, scratch):
    strace_or_skip()
    done = run("tune", "--data", "scratch", "--tracer", "strace", "--budget", "1", "--", sys.executable, "program.py", "{data}")
    assert (done.status, done.err) == (0, "")
    # The traced run is not one of the measured runs.
    assert [known.number for known in Tuned.load("vani-tune-state/tuned.yaml").runs] == [1]
    written = [file.path for file in Profile.load("vani-tune-state/profile.yaml").files]
    assert str(scratch / "vani-tune-0" / "out.dat") in written


def test_io_time_of_a_run_comes_from_its_darshan_log(run, scratch, monkeypatch):
    (scratch.parent / "logs").mkdir()
    monkeypatch.setenv("DARSHAN_LOGPATH", str(scratch.parent / "logs"))
    # 1.28 s per run, and 5.8 % to 23 % of it in I/O.
    monkeypatch.setenv("LOG", str(ROOT / "tests" / "data" / "darshan" / "v3-ior-ssf-posix-8r.darshan"))
    done = run(*words(clock=""))
    first = Tuned.load("vani-tune-state/tuned.yaml").runs[0]
    assert (first.io_s, first.io.source, first.io_why) == (0.073913, "darshan", "")
    assert first.io.write_s <= first.io_s < first.io.most_s
    assert re.search(r", I/O [\d.]+ ms \(write [\d.]+ ms\): worth tuning\n", done.out.splitlines(keepends=True)[2])
    result = Tuned.load("vani-tune-state/tuned.yaml").result
    # All runs leave the same log, so no setting changes the time that decides.
    assert (result.verdict, result.noise) == ("nothing_helps", pytest.approx(0))
    assert "I/O time" not in done.out


def test_io_time_of_a_run_comes_from_its_requested_trace(run, scratch, monkeypatch):
    strace_or_skip()
    monkeypatch.setenv("SECONDS", "0.1")
    done = run(*words("--io-time", "strace", "--budget", "1", clock=""))
    tuned = Tuned.load("vani-tune-state/tuned.yaml")
    assert 0 < tuned.runs[0].io_s < tuned.runs[0].seconds
    gain = tuned.most_gain
    ends = ": nothing to tune" if gain < 0.02 else "little to gain" if gain < 0.05 else ": worth tuning"
    assert next(line for line in done.out.splitlines() if line.startswith("Run 1")).endswith(ends)
    assert Profile.load("vani-tune-state/run-1.json").traces[0].tool == "strace"
    assert not Path("vani-tune-state/run-1.trace").exists()


def test_a_budget_in_node_hours_needs_to_know_the_nodes(run, scratch, monkeypatch):
    done = run(*words("--budget", "2nh"))
    assert (done.status, Path("vani-tune-state").exists()) == (2, False)
    assert "the number of nodes of a run is not known" in done.line
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "8")
    assert run(*words("--budget", "1nh", "--nodes", "900")).status == 0
    tuned = Tuned.load("vani-tune-state/tuned.yaml")
    assert (tuned.nodes, tuned.most_node_hours, tuned.most_runs) == (900, 1, None)
    assert sum(known.seconds for known in tuned.runs) < 8
    assert run(*words("--budget", "9nh", "--state", "other", "-o", "other.yaml")).status == 0
    other = Tuned.load("other/tuned.yaml")
    assert (other.nodes, other.result.verdict) == (8, "proven")


def test_program_that_fails_unchanged_is_reported(run, scratch):
    done = run(*words("--verify", "exit 3"))
    assert done.status == 1
    assert "Unfinished: run 1, without a setting: --verify ended with status 3" in done.out
    assert not Path("tuned.yaml").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--budget", "many"], "--budget: many is neither a number of runs, nor a time"),
        (["--data", "nowhere"], "is not a folder"),
        (["--state", "scratch/state"], "is in the folder of the output"),
        (["-o", "advice.yaml"], "already exists"),
        (["--resume"], "a session has its command and folder already"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(run, scratch, options, line):
    done = run(*words(*options))
    assert (done.status, done.out) == (2, "")
    assert line in done.line
    assert not Path("vani-tune-state").exists()


MOMENTS = [pytest.param(s, marks=() if s == 1.3 else pytest.mark.slow) for s in (0.6, 0.7, 0.8, 0.9, 1.0, 1.3, 1.6, 2.0, 2.4, 2.8)]


@pytest.mark.parametrize("after_s", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.sampled(1)
def test_killed_session_continues_or_explains_why_not(run, scratch, after_s, number, monkeypatch):
    monkeypatch.setenv("SECONDS", "0.6")
    (scratch / "mine").write_text("mine")
    process = subprocess.Popen([sys.executable, "-m", "vani", *words()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not Path("vani-tune-state/run-1.log").exists():
        time.sleep(0.02)
    time.sleep(after_s - 0.6)
    process.send_signal(number)
    assert process.wait() == (-9 if number == signal.SIGKILL else 130)
    if number == signal.SIGINT:
        assert layouts() == []
    assert (scratch / "mine").read_text() == "mine"
    done = run("tune", "--resume")
    while "still in progress" in done.err:
        time.sleep(0.1)
        done = run("tune", "--resume")
    assert done.status == 0, done.err
    assert "under way" not in done.out
    tuned = Tuned.load("vani-tune-state/tuned.yaml")
    assert tuned.result.verdict == "proven"
    assert sum(known.outcome == "ended" for known in tuned.runs) >= 4
    assert layouts() == []
    assert run("tune", "--show").out.splitlines()[-2:] != []


KILLED_AT_A_SAVE = """
import os, signal, sys
from vani.cli.main import main
from vani.schema.tuned import Tuned
save, saves = Tuned.save, 0
def save_and_be_killed(tuned, path):
    global saves
    saves += 1
    last = saves == int(sys.argv[1])
    if last and sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    save(tuned, path)
    if last:
        os.kill(os.getpid(), signal.SIGKILL)
Tuned.save = save_and_be_killed
main(sys.argv[3:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 8))
def test_session_killed_while_saving_loses_no_saved_run(run, scratch, number, moment, monkeypatch):
    line = [sys.executable, "-c", KILLED_AT_A_SAVE, str(number), moment, *words()]
    assert subprocess.run(line, check=False, capture_output=True).returncode == -signal.SIGKILL
    if (number, moment) == (1, "before"):
        done = run("tune", "--resume")
        assert (done.status, "contains no started session" in done.line) == (2, True)
        return
    before = Tuned.load("vani-tune-state/tuned.yaml")
    assert run("tune", "--resume").status == 0
    tuned = Tuned.load("vani-tune-state/tuned.yaml")
    ended = [known for known in before.runs if known.outcome != "running"]
    # No run has started at the first save; each has two.
    assert len(ended) == max(0, (number - (2 if moment == "before" else 1)) // 2)
    assert tuned.runs[: len(ended)] == ended
    assert [known.outcome for known in tuned.runs].count("interrupted") == len(before.runs) - len(ended)
    assert tuned.result is not None
    assert layouts() == []


def test_history_provides_measurements_for_advice_and_the_next_session(run, scratch, monkeypatch):
    monkeypatch.setenv("FAILS_WITH", "8")
    golden, named = ROOT / "tests" / "golden" / "v3-haccio-ssf-8r.yaml", ("--system", "titan", "--history", "h.sqlite")
    done = run(*words(*named))
    assert done.status == 0, done.err
    tuned = Tuned.load("tuned.yaml")
    assert (tuned.application, tuned.machine, tuned.processes, tuned.nodes) == ("v3-haccio-ssf-8r", "titan", 8, None)
    assert tuned.ended >= tuned.begun
    assert done.out.endswith("History      contains the measurements: vani advise PROFILE --history shows them\n")
    advised = run("advise", golden, *named, "--format", "text", "-q").out
    assert "Another setting was proven on this machine, and is not recommended here: -c 8." in " ".join(advised.split())
    # The same session again, whether it is resumed or added by hand.
    assert run("tune", "--resume", "--history", "h.sqlite", "-o", "again.yaml").status == 0
    assert run("history", "add", "tuned.yaml", "--database", "h.sqlite").err == "0 runs added; 1 copy was already stored\n"
    # Nothing is known about it on another machine.
    assert "Another setting" not in run("advise", golden, "--system", "lassen", "--history", "h.sqlite", "--format", "text").out
    done = run(*words(*named, "--state", "other", "-o", "other.yaml", "--budget", "2"))
    assert "Not tried    MPI003: cb_nodes 8: measured on this machine: the program failed with it, " in done.out
    assert "; without --history, it is tried again\n" in done.out
    assert [item.rule for item in Tuned.load("other/tuned.yaml").candidates] == ["LUS002"]


@pytest.mark.parametrize("content", [b"not a database", b""], ids=["text", "folder"])
def test_unusable_history_is_refused_before_the_program_runs(run, scratch, content):
    Path("h.sqlite").write_bytes(content) if content else Path("h.sqlite").mkdir()
    done = run(*words("--history", "h.sqlite"))
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith("h.sqlite: is ")
    assert not Path("vani-tune-state").exists()
