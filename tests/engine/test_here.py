"""Work on this machine: the same results however it runs, and an end without delay."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import time
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

from vani.engine import Engine
from vani.engine.parcel import load, pack
from vani.errors import InputError, VaniError

SLOW_TO_END = """
import time
from multiprocessing.context import SpawnProcess

end = SpawnProcess.terminate
SpawnProcess.terminate = lambda process: (end(process), time.sleep(0.3))
"""
SLEEPER = """
from vani.engine import Engine

if __name__ == "__main__":
    begun = "import os, time; os.write(1, bytes([66, 10])); time.sleep(60)"
    Engine("processes").map(exec, [begun] * 20)
"""


@pytest.fixture(params=["threads", "processes", "synchronous"])
def engine(request):
    engine = Engine(request.param)
    yield engine
    engine.close()


def test_results_come_in_the_order_of_the_items(engine):
    assert engine.map(partial(operator.mul, 3), range(20), stage="any") == list(range(0, 60, 3))


def test_a_reduction_combines_all_results(engine):
    assert engine.reduce(partial(operator.mul, 3), range(20), sum) == 570


def test_a_reduction_of_nothing_is_what_combine_makes_of_nothing(engine):
    assert engine.map(abs, []) == []
    assert engine.reduce(abs, [], sum) == 0


def test_the_second_use_finds_the_engine_as_the_first_did(engine):
    assert [engine.map(abs, [-1, 2]), engine.map(abs, [3, -4])] == [[1, 2], [3, 4]]


def test_progress_counts_every_item(engine):
    seen = []
    told = Engine(engine.scheduler, progress=lambda stage, done, total: seen.append((stage, done, total)))
    told.map(abs, [1, 2, 3], stage="s")
    told.close()
    assert seen[0] == ("s", 0, 3)
    assert seen[-1] == ("s", 3, 3)


def test_what_tasks_share_travels_once():
    shared = np.arange(100_000)
    task = pack((operator.getitem, [(shared, 3)]), [shared])
    assert len(task) < 200
    function, [(array, index)] = load(task, [shared])
    assert function(array, index) == 3
    assert array is shared


def test_what_tasks_share_reaches_other_processes():
    shared = np.arange(10)
    engine = Engine("processes")
    try:
        assert engine.map(partial(np.take, shared), [[1], [2]], constants=[shared]) == [[1], [2]]
    finally:
        engine.close()


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

    with patch("vani.engine.here.workers_here", return_value=2):
        engine = Engine("threads")
        with pytest.raises(ZeroDivisionError):
            engine.map(work, range(40))
        assert sorted(begun) == sorted(ended)
        time.sleep(0.3)
        assert sorted(begun) == sorted(ended)
        assert len(begun) < 39, "what had not begun never did"
        assert engine.map(abs, [-1, 2]) == [1, 2], "the engine can be used again"
        engine.close()


def test_an_error_in_a_process_is_the_error_of_the_run():
    engine = Engine("processes")
    with pytest.raises(ZeroDivisionError):
        engine.map(partial(operator.truediv, 1), [1, 0, 1])


def test_a_process_that_is_killed_is_told_in_one_line():
    engine = Engine("processes")
    with pytest.raises(
        VaniError, match="worker process was killed, as happens where memory runs out"
    ) as told:
        engine.map(os._exit, [1, 1])
    assert told.value.exit_code == 3
    engine.close()


@pytest.mark.parametrize("machine", ["", SLOW_TO_END], ids=["quick machine", "busy machine"])
def test_an_interrupt_does_not_wait_for_what_runs(machine):
    # Was: until the parts that were begun were done, seconds each; on a busy machine, a thread's traceback, too.
    with subprocess.Popen(
        [sys.executable, "-c", machine + SLEEPER],
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
def test_what_is_no_scheduler_is_refused_at_once(name):
    with pytest.raises(InputError, match="scheduler"):
        Engine(name)
