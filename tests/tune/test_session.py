"""Sessions whose surroundings fail: all is as before, and what was measured stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.errors import InputError, NoRoomError
from vani.schema.tuned import Candidate, Setting, Tuned
from vani.tune.session import Session, locked
from vani.tune.trial import environment_of


class Layouts:
    """Notes what is set and taken back."""

    def __init__(self) -> None:
        self.now: list[str] = []

    def set(self, folder: Path, options: str) -> str | None:
        self.now.append(options)
        return None

    def undo(self) -> None:
        self.now.clear()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "state").mkdir()
    return tmp_path / "data"


def session(data: Path, command: str = "echo x >{data}/x; mkdir {data}/deep; ln -s / {data}/deep/root") -> Session:
    candidate = Candidate(rule="R", name="r", reason="", expected=None, setting=Setting(layout="-c 8"))
    tuned = Tuned(
        version="1", begun="2026-03-03T00:00:00+00:00", host="n1", command=["sh", "-c", command], data=str(data),
        fresh="emptied", most_runs=4, candidates=[candidate],
    )  # fmt: skip
    return Session(tuned, data.parent / "state", Layouts(), lambda text: {})


def carried_out(going: Session) -> Tuned:
    with locked(going.state) as lock:
        return going.carry_out(lock)


@pytest.mark.parametrize("last", range(1, 7))
def test_a_full_disk_leaves_no_layout_and_no_output(data, monkeypatch, last):
    save, saved = Tuned.save, []

    def save_if_there_is_room(tuned: Tuned, path: Path) -> None:
        if len(saved) == last:
            raise NoRoomError("no room", where=path)
        saved.append(tuned)
        save(tuned, path)

    going = session(data)
    with monkeypatch.context() as full:
        full.setattr(Tuned, "save", save_if_there_is_room)
        with pytest.raises(InputError, match="no room"):
            carried_out(going)
    assert (going.layouts.now, [*data.iterdir()]) == ([], [])
    # Once there is room, it goes on from what was saved.
    again = session(data)
    again.tuned = saved[-1]
    assert len([run for run in carried_out(again).runs if run.outcome == "ended"]) >= 2


def test_what_a_killed_run_left_in_an_emptied_folder_is_reported_and_stays(data):
    (data / "half").write_text("of a run that was killed")
    with pytest.raises(InputError, match="is not empty"):
        carried_out(session(data))
    assert (data / "half").exists()


def test_a_session_is_carried_out_once_at_a_time(data):
    going = session(data)
    with locked(going.state), pytest.raises(InputError, match="still under way"):
        carried_out(going)


def test_a_run_that_takes_much_longer_is_stopped(data, monkeypatch):
    monkeypatch.setattr("vani.tune.session._LEAST_PATIENCE_S", 0.5)
    going = session(data, 'test -e "$0" && exec sleep 60; touch "$0"')
    going.tuned = going.tuned.model_copy(update={"command": [*going.tuned.command, str(data.parent / "second")]})
    tuned = carried_out(going)
    assert [run.outcome for run in tuned.runs][:2] == ["ended", "too_slow"]
    assert tuned.runs[1].seconds < 30


def test_hints_on_trial_come_before_the_users_own_and_reach_every_mpi(tmp_path, monkeypatch):
    (tmp_path / "own").write_text("cb_nodes 2\nromio_ds_write disable\n")
    monkeypatch.setenv("ROMIO_HINTS", str(tmp_path / "own"))
    monkeypatch.delenv("MPICH_MPIIO_HINTS", raising=False)
    setting = Setting(hints={"cb_nodes": "8", "cb_buffer_size": "1048576", "cb_config_list": "*:2"})
    environment = environment_of(setting, tmp_path, tmp_path / "hints")
    lines = "cb_nodes 8\ncb_buffer_size 1048576\ncb_config_list *:2\nromio_ds_write disable\n"
    assert Path(environment["ROMIO_HINTS"]).read_text() == lines
    assert environment["MPICH_MPIIO_HINTS"] == "*:cb_nodes=8:cb_buffer_size=1048576:cb_config_list=*:2"
    assert {name: value for name, value in environment.items() if name.startswith("OMPI_MCA_io")} == {
        "OMPI_MCA_io_ompio_num_aggregators": "8", "OMPI_MCA_io_ompio_bytes_per_agg": "1048576",
    }  # fmt: skip
