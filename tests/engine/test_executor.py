"""Work on this machine: the same results for every executor, and an end without delay."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from vani.engine.cluster import open_executor
from vani.errors import InputError

SLEEPER = """
from vani.engine import executor
from vani.engine.cluster import open_executor

if __name__ == "__main__":
    # A second worker might still be starting when the first one is interrupted.
    executor.available_processors = lambda: 1
    begun = "import os, time; os.write(1, bytes([66, 10])); time.sleep(60)"
    open_executor("processes").map(exec, [begun] * 20)
"""

TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "v3-cm1like-16r"
NO_THREADS = """
import sys, threading

def refused(thread):
    raise RuntimeError("can't start new thread")

threading.Thread.start = refused
from vani.cli.main import main
from vani.engine import executor
from vani.store import write

write.LARGE_PART = 1
executor.available_processors = lambda: 2
main(sys.argv[1:])
"""


@pytest.fixture(scope="module", params=["threads", "processes", "synchronous"])
def executor(request):
    with patch("vani.engine.executor.available_processors", return_value=2), open_executor(request.param) as executor:
        yield executor


@pytest.mark.sampled(2)
def test_results_come_in_the_order_of_the_items(executor):
    assert executor.map(partial(operator.mul, 3), range(20), stage="any") == list(range(0, 60, 3))


def test_a_reduction_combines_all_results(executor):
    assert executor.reduce(partial(operator.mul, 3), range(20), sum) == 570


def test_reduction_of_no_items_equals_combine_of_no_items(executor):
    assert executor.map(abs, []) == []
    assert executor.reduce(abs, [], sum) == 0


def test_every_task_gets_the_broadcast_objects(executor):
    table = np.arange(10)
    for _ in range(2):
        assert executor.map(pow, [1, 2, 3], broadcast=[3, 5]) == [1, 3, 2]
        in_table = executor.reduce(np.isin, [[1], [20]], np.concatenate, broadcast=[table])
        assert sorted(in_table.tolist()) == [False, True]


def test_an_error_of_a_task_is_the_error_of_the_run(executor):
    with pytest.raises(ZeroDivisionError):
        executor.map(operator.truediv, [1, 2], broadcast=[0])
    assert executor.map(abs, [-1, 2]) == [1, 2], "it can be used again"


def test_progress_counts_every_item(executor):
    calls = []
    with patch.object(executor, "_progress", lambda *call: calls.append(call)):
        executor.map(abs, [1, 2, 3], stage="s")
    assert calls[0] == ("s", 0, 3)
    assert calls[-1] == ("s", 3, 3)


def test_one_processor_needs_no_threads():
    with patch("vani.engine.executor.available_processors", return_value=1):
        assert open_executor("threads").workers == 1


def test_nothing_is_at_work_any_more_when_an_error_arrives():
    begun, ended = [], []

    def work(item):
        if not item:
            while not begun:
                time.sleep(0.001)
            raise ZeroDivisionError
        begun.append(item)
        time.sleep(0.2)
        ended.append(item)

    with patch("vani.engine.executor.available_processors", return_value=2), open_executor() as executor:
        with pytest.raises(ZeroDivisionError):
            executor.map(work, range(40))
        assert sorted(begun) == sorted(ended)
        time.sleep(0.3)
        assert sorted(begun) == sorted(ended)
        assert len(begun) < 39, "what had not begun never did"
        assert executor.map(abs, [-1, 2]) == [1, 2], "it can be used again"


@pytest.mark.parametrize("allowed", [0, 1])
def test_calling_thread_works_if_none_can_start(monkeypatch, allowed):
    started, start = [], threading.Thread.start

    def refused(thread):
        if len(started) == allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    with patch("vani.engine.executor.available_processors", return_value=3), open_executor() as executor:
        monkeypatch.setattr(threading.Thread, "start", refused)
        assert executor.map(operator.neg, range(30)) == [-item for item in range(30)]
        assert executor.reduce(operator.neg, range(30), sum) == -435
        assert executor.workers == 1


@pytest.mark.parametrize(("scheduler", "status"), [("threads", 0), ("processes", 2)])
@pytest.mark.slow
def test_command_without_threads_works_or_fails_in_one_line(tmp_path, scheduler, status):
    arguments = ["profile", str(TRACE), "-q", "-o", str(tmp_path / "p.yaml"), "--scheduler", scheduler]
    run = subprocess.run(
        [sys.executable, "-c", NO_THREADS, *arguments, "--store", str(tmp_path / "stores")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == status
    line = "vani: --scheduler processes: worker processes cannot be started (can't start new thread); use --scheduler "
    assert run.stderr == (line + "threads\n" if status else "")


def test_work_of_one_part_loads_no_dask():
    code = "import sys; from vani.engine.cluster import open_executor as o; print(o().reduce(abs, [-3], sum))"
    code += "; print(sorted({'dask', 'distributed'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "3\n[]\n"


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs the list of open ports")
def test_processes_open_no_port():
    with open_executor("processes") as executor:
        listening = executor.map(_listening, range(3))
    assert listening == [set()] * 3


def _opened(descriptor: Path) -> Path:
    try:
        return descriptor.readlink()
    except FileNotFoundError:
        return descriptor


def _listening(_: int) -> set[str]:
    """Sockets of this process and its parent that wait for connections."""
    sockets = {
        str(target)[8:-1]
        for process in (os.getpid(), os.getppid())
        for target in map(_opened, Path(f"/proc/{process}/fd").iterdir())
        if str(target).startswith("socket:")
    }
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[3] == "0A"} & sockets


def _killed(item: int, once: str = "") -> int:
    """End the worker process silently: always, or if the file `once` does not exist yet."""
    try:
        if once:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return item
    os.kill(os.getpid(), signal.SIGKILL)
    return item


@pytest.mark.slow
def test_process_killed_once_changes_no_result(tmp_path):
    with patch("vani.engine.executor.available_processors", return_value=2), open_executor("processes") as executor:
        assert executor.map(_killed, range(4), broadcast=[str(tmp_path / "killed")]) == [0, 1, 2, 3]
        assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_task_that_kills_every_process_is_reported_in_one_line():
    with (
        patch("vani.engine.executor.available_processors", return_value=1),
        open_executor("processes") as executor,
        pytest.raises(InputError) as raised,
    ):
        executor.map(_killed, [1, 2], stage="decode")
    assert raised.value.exit_code == 2
    assert str(raised.value) == (
        "--scheduler processes: a worker process died 4 times while decoding, as happens where memory runs out; "
        "use --scheduler synchronous, or a machine with more memory"
    )


@pytest.mark.slow
def test_interrupt_does_not_wait_for_running_tasks():
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"B\n", "it sleeps now"
        os.killpg(run.pid, signal.SIGINT)
        began = time.monotonic()
        _, errors = run.communicate(timeout=30)
    assert time.monotonic() - began < 20
    assert errors.count(b"Traceback") == errors.count(b"KeyboardInterrupt") == 1, "of the parent alone"


@pytest.mark.parametrize(
    "name", ["slurm", "tcp", "tcp://", "tcp://:8786", "tcp://host:99999", "ftp://host:21", 3]
)
def test_invalid_scheduler_is_refused_immediately(name):
    with pytest.raises(InputError, match="scheduler"):
        open_executor(name)
