"""`vani centre init`, `check` and `run`: one file, one service, closed by default."""

from __future__ import annotations

import threading
import tomllib

import pytest
from click.testing import CliRunner

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (vani-io[centre])")

from tests.history.logs import write_log
from vani import centre
from vani.centre.history.runs.store import Store
from vani.centre.service import run
from vani.centre.service import setup as init
from vani.centre.service.configuration import CentreConfiguration, load, written
from vani.centre.service.setup import centre_check, centre_init, unit_text
from vani.centre.service.task_prolog import FOLDER
from vani.cli.main import commands
from vani.collect.node import NoAnswer
from vani.errors import InputError, StoreError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for number in range(3):
        write_log(tmp_path / "logs", number=number)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "read_mounts", lambda: [])
    return tmp_path


def vani(*words):
    return CliRunner().invoke(commands, ["centre", *map(str, words)])


def test_init_without_a_terminal_asks_nothing_and_prints_the_unit(folder):
    done = vani("init", "--darshan", "logs", "--mount", "/scratch")
    assert done.exit_code == 0
    assert f" centre run --config {folder}/centre.toml" in done.stdout
    assert "UMask=0077" in done.stdout
    tree = tomllib.loads((folder / "centre.toml").read_text())
    assert (tree["darshan"], tree["file_system"]["mount"]) == (str(folder / "logs"), "/scratch")
    with pytest.raises(InputError, match="exists and is not replaced"):
        centre_init(darshan="logs")


def test_init_needs_the_folder_of_logs(folder):
    with pytest.raises(InputError, match="--darshan: is missing; name the folder of Darshan's logs"):
        centre_init()
    with pytest.raises(InputError, match="nowhere: is not a folder"):
        centre_init(darshan="nowhere")
    assert not (folder / "centre.toml").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [("ports = 1", r"centre.toml:3: .*ports"), ("port = 'x'", r"centre.toml:3: .*port"), ("open =", "not TOML")],
)
def test_wrong_line_of_the_file_is_named(folder, line, said):
    (folder / "centre.toml").write_text(f'darshan = "logs"\nhistory = "h.sqlite"\n{line}\n')
    with pytest.raises(InputError, match=said):
        load(folder / "centre.toml")


def test_from_nothing_to_pages(folder):
    centre_init(darshan="logs")
    before = {finding.what: finding.todo for finding in centre_check(folder / "centre.toml", programs=nothing)}
    assert before["logs"] == ""
    assert before["history"] == before["pages"] == "vani centre run makes it"
    assert vani("check").exit_code == 1
    done = vani("run", "--once")
    assert (done.exit_code, "3 runs added" in done.stderr) == (0, True)
    assert (folder / "history.sqlite").stat().st_mode & 0o777 == 0o600
    after = {finding.what: finding.state for finding in centre_check(folder / "centre.toml", programs=nothing)}
    assert after["history"] == "3 runs, 0 damaged files"
    assert centre.history_top(db=folder / "history.sqlite").whole.runs == 3


def nothing(command):
    raise init_no_answer()


def init_no_answer():
    return NoAnswer("is not installed")


def test_service_prints_its_token_once_and_is_closed(folder, monkeypatch):
    centre_init(darshan="logs", port=0)
    servers, said = [], []
    monkeypatch.setattr(run.threading, "Thread", lambda **_: threading.Event())
    monkeypatch.setattr(threading.Event, "start", lambda self: None, raising=False)
    monkeypatch.setattr(centre.HistoryServer, "serve_forever", lambda self: servers.append(self.token))
    for _ in range(2):
        said.append(vani("run").stderr)
    assert servers[0] == servers[1] == (folder / "centre.token").read_text().strip()
    assert f"?token={servers[0]}" in said[0]
    assert servers[0] not in said[1]
    assert (folder / "centre.token").stat().st_mode & 0o777 == 0o600


def test_check_says_that_others_can_read_the_history(folder):
    centre_init(darshan="logs")
    vani("run", "--once")
    (folder / "history.sqlite").chmod(0o644)
    (finding,) = (f for f in centre_check(folder / "centre.toml", programs=nothing) if f.what == "history")
    assert finding.todo == f"chmod 0600 {folder}/history.sqlite"


def test_sacct_that_keeps_no_jobs_is_not_used(folder, monkeypatch):
    def disabled(command, timeout_s=0.0):
        assert command[0] == "sacct"
        raise NoAnswer("sacct failed: Slurm accounting storage is disabled")

    monkeypatch.setattr(init, "ask", disabled)
    assert centre_init(darshan="logs").jobs is None
    known = CentreConfiguration(darshan="logs", history="h.sqlite", jobs="sacct")
    (folder / "centre.toml").write_text(written(known))
    (finding,) = (f for f in centre_check(folder / "centre.toml", programs=disabled) if f.what == "jobs")
    assert finding.state == "sacct failed: Slurm accounting storage is disabled"
    assert "leave `jobs` out" in finding.todo
    monkeypatch.setattr(run, "ask", disabled)
    assert "vani: sacct failed: Slurm accounting storage is disabled; leave" in vani("run", "--once").stderr


def test_unknown_group_is_refused_without_a_file(tmp_path):
    with pytest.raises(StoreError, match="cannot be given to the group nogroupatall"), Store(
        tmp_path / "h.sqlite", group="nogroupatall"
    ).writing(make=True):
        pass
    assert not (tmp_path / "h.sqlite").exists()


def test_file_system_without_locks_is_named(tmp_path, monkeypatch):
    import errno  # noqa: PLC0415
    import fcntl  # noqa: PLC0415

    import sqlalchemy as sa  # noqa: PLC0415

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    store = Store(tmp_path / "h.sqlite")
    with pytest.raises(StoreError, match="is on a file system without file locks"), store.writing(make=True):
        raise sa.exc.OperationalError("", {}, Exception("database is locked"))


def test_unit_runs_the_service_with_its_file(tmp_path):
    assert f"centre run --config {tmp_path}/centre.toml" in unit_text(tmp_path / "centre.toml")


def test_advice_is_renewed_once_a_day(folder, monkeypatch):
    centre_init(darshan="logs", mount="/scratch")
    made = []
    monkeypatch.setattr(run, "advice_in", lambda *_: made.append(1) or run_advice())
    for _ in range(2):
        assert vani("run", "--once").exit_code == 0
    assert made == [1]


def run_advice():
    from vani.centre.service.advise import SiteAdvice  # noqa: PLC0415

    return SiteAdvice(layout=None, why_none="too few jobs", slow_targets=[], letters=[])


@pytest.mark.parametrize(
    ("hook", "printed", "state", "todo"),
    [
        (None, "", "off: no job runs it", ""),
        ("/elsewhere", "", "jobs read /var/lib/vani/hook, not /elsewhere", "set hook"),
        (FOLDER, "TaskProlog              = (null)\n", "Slurm runs no TaskProlog of Vani", "restart slurmd"),
        (FOLDER, "TaskProlog  = /etc/slurm/vani-task-prolog\n", "Slurm runs /etc/slurm/vani-task-prolog", ""),
    ],
)
def test_hook_that_slurm_has_not_loaded_is_reported(tmp_path, hook, printed, state, todo):
    (tmp_path / "logs").mkdir()
    known = CentreConfiguration(darshan=str(tmp_path / "logs"), history=str(tmp_path / "h.sqlite"), hook=hook)
    (tmp_path / "centre.toml").write_text(written(known))
    findings = centre_check(tmp_path / "centre.toml", programs=lambda _: printed)
    (found,) = (finding for finding in findings if finding.what == "hook")
    assert found.state == state
    assert todo in found.todo and bool(todo) == bool(found.todo)
