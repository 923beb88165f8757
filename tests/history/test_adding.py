"""Adding runs: once each, repeatedly, concurrently, and after an interruption."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.history.logs import write_log
from tests.readers.strace_logs import written
from vani import centre
from vani.centre.history import ingest, reading
from vani.centre.history.discovery import discover
from vani.centre.history.rows import StoredRun
from vani.centre.history.runs import read, tables
from vani.centre.history.runs.store import Store
from vani.errors import InputError
from vani.schema.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml"
TRACE = ROOT / "tests" / "data" / "traces" / "v3-cm1like-16r"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(6):
        write_log(tmp_path / "logs" / str(number % 2), number=number)
    return tmp_path / "logs"


def runs_in(db: Path) -> list[tuple[str, str, int]]:
    with Store(db).reading() as connection:
        return sorted((run.user, run.application, run.processes) for run in read.rows(connection, StoredRun))


def add(*paths, db, **more):
    return centre.history_add(*paths, db=db, judge=0, **{"totals": True, "workers": 1, **more}).added


def test_a_folder_is_searched_with_all_below(logs, tmp_path):
    added = add(logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.files, added.damaged) == (6, 6, 0)
    assert runs_in(tmp_path / "h.sqlite") == [("u1", "solver", 4)] * 6


def test_files_that_did_not_change_are_not_opened_again(logs, tmp_path, monkeypatch):
    add(logs, db=tmp_path / "h.sqlite")
    monkeypatch.setattr(reading, "open_log", lambda path: pytest.fail(f"{path} was opened"))
    added = add(logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.unchanged) == (0, 6)


def test_a_file_that_changed_is_read_again(logs, tmp_path):
    broken = logs / "0" / "broken.darshan"
    broken.write_bytes(b"")
    assert add(logs, db=tmp_path / "h.sqlite").damaged == 1
    shutil.copyfile(write_log(tmp_path, number=77), broken)
    added = add(logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.unchanged, added.damaged) == (1, 6, 0)


def test_copies_count_once_under_any_name(logs, tmp_path):
    first = sorted(logs.rglob("*.darshan"))[0]
    shutil.copyfile(first, logs / "0" / f"copy-{first.name}")
    shutil.copyfile(first, logs / "1" / "a.darshan")
    added = add(logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.copies) == (6, 2)
    assert runs_in(tmp_path / "h.sqlite") == [("u1", "solver", 4)] * 6


def test_folders_that_link_to_each_other_are_entered_once(logs, tmp_path):
    (logs / "0" / "up").symlink_to(logs)
    (logs / "1" / "up").symlink_to(logs / "0")
    (logs / "self.darshan").symlink_to(logs / "self.darshan")
    added = add(logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.copies) == (6, 0)


def test_entries_that_vanish_meanwhile_are_skipped(logs, tmp_path):
    files = discover([logs])
    next(files)
    shutil.rmtree(logs / "1")
    assert len(list(files)) == 2


def test_file_that_vanishes_before_it_is_read_is_listed_as_vanished(logs, tmp_path, monkeypatch):
    real = reading.open_log

    def vanishing(path, **options):
        path.unlink()
        return real(path, **options)

    monkeypatch.setattr(reading, "open_log", vanishing)
    added = add(logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.damaged) == (0, 6)
    assert {one.reason for one in centre.history_damaged(db=tmp_path / "h.sqlite")} == {
        "cannot be read (No such file or directory)"
    }


def test_damaged_log_loses_only_itself(logs, tmp_path):
    for number, path in enumerate(sorted(logs.rglob("*.darshan"))[:3]):
        path.write_bytes((b"", b"#!/bin/sh\n" * 200, path.read_bytes()[:-20])[number])
    added = add(logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.damaged, added.refused) == (3, 3, [])
    assert [one.reason for one in centre.history_damaged(db=tmp_path / "h.sqlite")] == [
        "is an empty file, not a Darshan log",
        "is not a Darshan log",
        "is a damaged Darshan log: a region ends at byte 1,620 of 1,600: it was cut off",
    ]


def test_names_of_logs_and_programs_cannot_reach_a_terminal(tmp_path):
    path = write_log(tmp_path / "logs", exe="/bin/evil\x1b[2J\n\r -x")
    path.rename(path.with_name("u\x1b]0;x\x07\n1_evil_id4-4_1-1-1-1.darshan"))
    add(tmp_path / "logs", db=tmp_path / "h.sqlite")
    ((user, app, _),) = runs_in(tmp_path / "h.sqlite")
    assert user.isprintable()
    assert app.isprintable()


def test_non_utf_8_name_is_kept_as_text(tmp_path):
    path = write_log(tmp_path / "logs")
    path.rename(path.with_name(os.fsdecode(b"\xff\xfe_solver_id4-4.darshan")))
    added = add(tmp_path / "logs", db=tmp_path / "h.sqlite")
    assert (added.runs, added.damaged) == (1, 0)
    assert add(tmp_path / "logs", db=tmp_path / "h.sqlite").unchanged == 1


def test_profiles_and_traces_count_as_runs(tmp_path):
    folder = tmp_path / "all"
    folder.mkdir()
    shutil.copyfile(PROFILE, folder / "run.yaml")
    (folder / "other.yaml").write_text("a: 1\n")
    shutil.copytree(TRACE, folder / TRACE.name)
    added = add(folder, db=tmp_path / "h.sqlite", user="u9")
    assert (added.files, added.runs, added.damaged) == (2, 2, 0)
    assert runs_in(tmp_path / "h.sqlite") == [("u9", "v3-cm1like-16r", 16)] * 2


def test_whole_profile_is_stored_if_totals_are_not_enough(tmp_path):
    path = write_log(tmp_path / "logs")
    add(tmp_path / "logs", db=tmp_path / "h.sqlite", totals=False)
    with Store(tmp_path / "h.sqlite").reading() as connection:
        ((digest, content),) = read.contents(connection, tables.profiles)
    assert len(digest) == 64
    assert reading.unpack_profile(content).traces[0].path == str(path)


def test_a_profile_that_names_its_user_is_not_of_the_owner_of_the_file(tmp_path):
    profile = Profile.load(PROFILE)
    job = profile.job.model_copy(update={"user": "ada"})
    profile.model_copy(update={"job": job}).save(tmp_path / "run.yaml")
    add(tmp_path / "run.yaml", db=tmp_path / "h.sqlite")
    assert [user for user, _, _ in runs_in(tmp_path / "h.sqlite")] == ["ada"]


def test_named_file_must_be_a_run(logs, tmp_path):
    broken = tmp_path / "broken.darshan"
    broken.write_bytes(b"no log")
    added = add(broken, logs, db=tmp_path / "h.sqlite")
    assert (added.runs, added.refused) == (6, [f"{broken}: is not a Darshan log"])


def test_missing_path_or_folder_without_runs_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="contains no Darshan logs"):
        add(tmp_path / "empty", db=tmp_path / "h.sqlite")
    with pytest.raises(InputError, match="No such file"):
        add(tmp_path / "nothing", db=tmp_path / "h.sqlite")


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "vani", "history", *map(str, words)]


def test_a_process_that_only_reads_logs_loads_no_database_and_no_other_reader():
    code = (
        "import sys; import vani.centre.history.reading; "
        "print(sorted({'sqlalchemy', 'vani.centre.history.runs.tables', 'vani.readers.open'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_processes_read_on_while_the_database_is_written(logs, tmp_path, monkeypatch):
    """At the first transaction, the processes had received twice as many logs as it writes."""
    monkeypatch.setattr(ingest, "_AT_ONCE", 4)
    monkeypatch.setattr(reading, "_CHUNK", 1)
    monkeypatch.setattr(reading, "_AHEAD", 8)
    for number in range(10, 30):
        write_log(logs / "more", number=number)
    handed, keep, at_writing = [], ingest._keep, []
    submit = reading.ProcessPoolExecutor.submit
    monkeypatch.setattr(
        reading.ProcessPoolExecutor,
        "submit",
        lambda self, *args: (handed.append(1), submit(self, *args))[1],
    )
    monkeypatch.setattr(ingest, "_keep", lambda *args: (at_writing.append(len(handed)), keep(*args))[1])
    assert add(logs, db=tmp_path / "h.sqlite", workers=2).runs == 26
    assert at_writing[0] >= 8


@pytest.mark.slow
def test_concurrent_adds_store_each_run_once(tmp_path):
    for number in range(120):
        write_log(tmp_path / "logs", number=number)
    words = ("add", tmp_path / "logs", "--database", tmp_path / "h.sqlite", "--totals", "--judge", "0", "-q")
    both = [subprocess.Popen(command(*words), stderr=subprocess.PIPE, cwd=ROOT, text=True) for _ in range(2)]
    assert [one.communicate(timeout=60)[1] for one in both] == ["", ""]
    assert len(runs_in(tmp_path / "h.sqlite")) == 120


def test_killed_add_is_continued_without_partial_runs(tmp_path, monkeypatch):
    for number in range(3):
        write_log(tmp_path / "logs", number=number)
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from vani import centre\n"
        "from vani.centre.history.runs import write\n"
        "from vani.centre.history import ingest\n"
        "ingest._AT_ONCE = 1\n"
        "real = write.put\n"
        "done = []\n"
        "def put(connection, rows):\n"
        "    rows = list(rows)\n"
        "    if rows and len(done) == 2:\n"  # The run is written, its file is not, and nothing is committed.
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    done.extend([1] * bool(rows))\n"
        "    real(connection, rows)\n"
        "write.put = put\n"
        "centre.history_add(sys.argv[1], db=sys.argv[2], totals=True, workers=1, judge=0)\n"
    )
    db = tmp_path / "h.sqlite"
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "logs"), str(db)], cwd=ROOT, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(runs_in(db)) == 2
    added = add(tmp_path / "logs", db=db)
    assert (added.runs, added.unchanged, added.copies) == (1, 2, 0)


@pytest.mark.slow
def test_reading_processes_end_with_the_killed_one(tmp_path):
    for number in range(60):
        write_log(tmp_path / "logs", number=number)
    code = (
        "import os, signal, sys, time\n"
        "from vani import centre\n"
        "from vani.centre.history import ingest\n"
        "def keep(*_):\n"
        "    import multiprocessing\n"
        "    print(*(one.pid for one in multiprocessing.active_children()), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "ingest._keep, ingest._AT_ONCE = keep, 1\n"
        "if __name__ == '__main__':\n"
        "    centre.history_add(sys.argv[1], db=sys.argv[2], totals=True, workers=2, judge=0)\n"
    )
    script = tmp_path / "adding.py"
    script.write_text(code)
    told = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "logs"), str(tmp_path / "h.sqlite")],
        stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False, text=True,
    )  # fmt: skip
    children = [int(word) for word in told.stdout.split()]
    assert children
    for _ in range(100):
        if not any(Path(f"/proc/{child}").exists() for child in children):
            return
        time.sleep(0.1)
    pytest.fail("they are still there")


def test_folders_and_logs_that_vani_trace_made_with_strace_are_runs(tmp_path):
    lines = (
        'openat(AT_FDCWD</job>, "out", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</job/out> <0.000010>',
        'write(3</job/out>, ""..., 100) = 100 <0.000020>',
        "+++ exited with 0 +++",
    )
    for rank in range(2):
        folder = tmp_path / "traces" / "solver.trace"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vani-trace.json").write_text('{"tracer": "strace", "command": ["./solver"]}')
        written(folder, *(f"{rank + 7} {line}" for line in lines), name=f"rank-{rank:05}.strace")
    alone = written(tmp_path, *(f"7 {line}" for line in lines), name="run.strace")
    added = add(tmp_path / "traces", alone, db=tmp_path / "h.sqlite", user="u9")
    assert (added.runs, added.damaged, added.refused) == (2, 0, [])
    assert runs_in(tmp_path / "h.sqlite") == [("u9", "run", 1), ("u9", "solver", 2)]
