"""Sessions with failing surroundings: everything is restored, and measurements are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.collect.tracing.launchers import mapped
from vani.errors import InputError, NoRoomError
from vani.schema.tuned import Candidate, Setting, Tuned
from vani.tune.session import Session, environment_of, locked


class Layouts:
    """Records which layouts are set and undone."""

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
    # Once there is room, it continues from the saved state.
    again = session(data)
    again.tuned = saved[-1]
    assert len([run for run in carried_out(again).runs if run.outcome == "ended"]) >= 2


def test_leftovers_of_a_killed_run_in_an_emptied_folder_are_reported_and_remain(data):
    (data / "half").write_text("of a run that was killed")
    with pytest.raises(InputError, match="is not empty"):
        carried_out(session(data))
    assert (data / "half").exists()


def test_a_session_is_carried_out_once_at_a_time(data):
    going = session(data)
    with locked(going.state), pytest.raises(InputError, match="still in progress"):
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


def near_session(data: Path, setting: Setting, command: str) -> Session:
    """A session that tries one setting, with a program that gets its folder twice."""
    going = session(data, command)
    candidate = going.tuned.candidates[0].model_copy(update={"setting": setting})
    going.tuned = going.tuned.model_copy(
        update={"candidates": [candidate], "fresh": "subfolder", "keep": True, "verify": 'test "$(cat "$VANI_DATA/x")" = a'}
    )
    return going


def test_staged_out_output_is_written_locally_and_copied_back(data, tmp_path):
    near = tmp_path / "near"
    near.mkdir()
    command = "test $VANI_DATA = {data}; echo {data} >>%s; printf a >{data}/x" % (tmp_path / "places")
    tuned = carried_out(near_session(data, Setting(stage_out=str(near)), command))
    assert [run.outcome for run in tuned.runs[:2]] == ["ended", "ended"]
    places = [Path(line).parent for line in (tmp_path / "places").read_text().splitlines()]
    assert places[:2] == [data, near]
    assert [(Path(run.folder) / "x").read_text() for run in tuned.runs] == ["a"] * len(tuned.runs)
    # Neither near files nor a record of them remain.
    assert [*near.iterdir()] == []
    assert not (tmp_path / "state" / "near.txt").exists()


def test_staged_in_input_is_read_from_a_copy(data, tmp_path):
    inputs, near = tmp_path / "in", tmp_path / "near"
    for folder in (inputs, near):
        folder.mkdir()
    (inputs / "x").write_text("a")
    command = f"cp {inputs}/x {{data}}/x; echo {inputs} >>{tmp_path}/places"
    tuned = carried_out(near_session(data, Setting(stage_in={str(inputs): str(near)}), command))
    assert [run.outcome for run in tuned.runs[:2]] == ["ended", "ended"]
    places = [Path(line) for line in (tmp_path / "places").read_text().splitlines()]
    assert (places[0], places[1].parent) == (inputs, near)
    assert ([*near.iterdir()], (inputs / "x").read_text()) == ([], "a")


def test_staging_is_dropped_if_nothing_can_be_staged(data, tmp_path):
    tuned = carried_out(near_session(data, Setting(stage_out=str(tmp_path / "nowhere")), "printf a >{data}/x"))
    assert tuned.runs[1].outcome == "not_applied"
    assert "cannot be copied to near storage (No such file or directory)" in tuned.runs[1].remark


def test_near_files_of_a_killed_session_are_removed(data, tmp_path):
    mine, left = tmp_path / "vani-tune-mine", tmp_path / "vani-tune-0123456789ab"
    for folder in (mine, left):
        folder.mkdir()
    (tmp_path / "state" / "near.txt").write_text(f"{left}\n{tmp_path / 'data'}\n")
    carried_out(near_session(data, Setting(stage_out=str(tmp_path)), "printf a >{data}/x"))
    assert (left.exists(), mine.exists(), data.exists()) == (False, True, True)


def test_processes_are_dealt_out_by_the_options_of_the_launcher(data):
    going = near_session(data, Setting(mapping="cyclic"), "printf a >{data}/x")
    orders = []
    going.mapped = lambda words, order: orders.append(order) or list(words)
    tuned = carried_out(going)
    assert orders == ["cyclic"] * sum(run.candidates == [0] for run in tuned.runs)
    assert orders


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("srun -n 4 ./a", "srun --distribution=cyclic -n 4 ./a"),
        ("mpiexec.mpich -n 4 ./a", "mpiexec.mpich -ppn 1 -n 4 ./a"),
        ("mpirun.openmpi -n 4 ./a", "mpirun.openmpi --map-by node -n 4 ./a"),
        ("jsrun -n 4 ./a", "jsrun --launch_distribution cyclic -n 4 ./a"),
        ("flux run -n 4 ./a", "flux run --taskmap=cyclic -n 4 ./a"),
        ("./a", None),
        ("aprun -n 4 ./a", None),
        ("srun --distribution=block -n 4 ./a", None),
        ("mpiexec.mpich -ppn 2 -n 4 ./a", None),
    ],
)
def test_known_launcher_distributes_processes_round_robin(command, words):
    assert mapped(command.split(), "cyclic") == (None if words is None else words.split())


def test_a_run_is_judged_by_the_seconds_that_the_users_line_prints(data):
    going = near_session(data, Setting(layout="-c 8"), "printf a >{data}/x; echo took 12.5 s")
    going.tuned = going.tuned.model_copy(update={"time": "sed -n 's/took \\(.*\\) s/\\1/p' $VANI_LOG"})
    assert {run.seconds for run in carried_out(going).runs} == {12.5}


@pytest.mark.parametrize("line", ["echo fast", "echo -1", "echo inf", "false"])
def test_missing_printed_seconds_are_reported(data, line):
    going = near_session(data, Setting(layout="-c 8"), "printf a >{data}/x")
    going.tuned = going.tuned.model_copy(update={"time": line})
    with pytest.raises(InputError, match="where seconds should be"):
        carried_out(going)
