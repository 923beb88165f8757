"""The folder of running jobs."""

import multiprocessing
import os

import pytest

from vani.centre.prolog.state import State
from vani.errors import InputError


def env(number, **more):
    return {"SLURM_JOB_ID": str(number), "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4"} | more


def running(state, now_s=None, expire_s=1e9, said=None):
    now = os.times().elapsed if now_s is None else now_s
    return [
        job.job
        for job in state.running(now_s=now, expire_s=expire_s, say=(said if said is not None else []).append)
    ]


def registers(folder, number):
    State(folder).register(env(number))


@pytest.mark.slow
def test_a_hundred_processes_that_register_at_once_lose_no_job(tmp_path):
    with multiprocessing.get_context("fork").Pool(16) as pool:
        pool.starmap(registers, [(tmp_path / "s", number) for number in range(1, 101)], chunksize=1)
    assert sorted(map(int, running(State(tmp_path / "s")))) == list(range(1, 101))


def test_job_registered_by_a_shell_equals_ours(tmp_path):
    state = State(tmp_path / "s")
    told = env(7, SLURM_JOB_NAME="a\n'b\"=c") | {"PATH": "/bin"}
    (state.folder / "jobs" / "7").write_bytes(b"".join(f"{k}={v}\0".encode() for k, v in told.items()))
    (state.folder / "7.env").write_text("planned")
    job = state.register(told)
    assert job.name == "a\n'b\"=c"
    assert state.is_planned("7"), "a job that the script registered is not registered anew"
    assert state.register(told | {"SLURM_JOB_RESTART_COUNT": "1"}).job == "7"
    assert not state.is_planned("7"), "one that was requeued is planned for anew"


def test_job_without_a_reported_end_expires(tmp_path):
    state = State(tmp_path / "s")
    begin = state.register(env(1)).start_s
    state.register(env(2, SLURM_JOB_END_TIME=str(int(begin) + 60)))
    said = []
    assert running(state, begin + 3500, 1e6, said) == ["1", "2"]
    assert running(state, begin + 3700, 1e6, said) == ["1"]
    assert running(state, begin + 1e6 + 1, 1e6, said) == []
    assert said == [
        "job 2 was removed: its end was not reported",
        "job 1 was removed: its end was not reported",
    ]


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\x00", b"SLURM_JOB_ID=8\0", b"x" * (1 << 21)],
    ids=["empty", "bytes", "other", "long"],
)
def test_invalid_job_file_is_set_aside(tmp_path, content):
    state = State(tmp_path / "s")
    state.register(env(1))
    (state.folder / "jobs" / "9").write_bytes(content)
    said = []
    assert running(state, said=said) == ["1"]
    assert len(said) == 1
    assert "was set aside" in said[0]
    assert (state.folder / "jobs" / "9.broken").exists()
    assert running(state, said=[]) == ["1"]


def test_leftovers_of_ended_jobs_and_killed_processes_are_removed(tmp_path):
    state = State(tmp_path / "s")
    begin = state.register(env(1)).start_s
    for name in (
        "1.env",
        "1.map",
        "2.env",
        "2.map",
        "2.yaml",
        "notes.yaml",
        ".3.map.77.partial",
        "jobs/.5.77.partial",
    ):
        (state.folder / name).write_text("")
    state.sweep(begin)
    assert (state.folder / ".3.map.77.partial").exists(), "somebody may be writing it"
    state.sweep(begin + 7200)
    left = sorted(str(one.relative_to(state.folder)) for one in state.folder.rglob("*") if one.is_file())
    assert left == ["1.env", "1.map", "jobs/1", "notes.yaml"]


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000], ids=["cut", "bytes", "deep"])
def test_damaged_state_is_set_aside(tmp_path, content):
    state = State(tmp_path / "s")
    (state.folder / "state.json").write_bytes(content)
    said = []
    assert state.load(said.append) == {}
    assert len(said) == 1
    assert state.load(said.append) == {}
    assert (state.folder / "state.json.broken").read_bytes() == content


def test_world_writable_folder_is_refused(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s").chmod(0o777)
    with pytest.raises(InputError, match="is writable by everyone; chmod o-w"):
        State(tmp_path / "s")


def test_folder_with_a_missing_parent_is_not_created(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        State(tmp_path / "mistyped" / "s")


def test_lock_has_one_owner_and_waiting_for_it_ends(tmp_path):
    state = State(tmp_path / "s")
    with state.locked(lambda: False) as first:
        child = os.fork()  # Locks of this kind are between processes.
        if child == 0:
            with state.locked(lambda: True) as second:
                os._exit(0 if second else 7)
        assert first
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
