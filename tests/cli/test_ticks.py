"""Ticks of a timer while a command works."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from vani.cli.ticks import ticking, ticks_come_here

pytestmark = pytest.mark.skipif(not ticks_come_here(), reason="this system has no timers")


def wait_for(done: list[object], many: int) -> None:
    until = time.monotonic() + 20
    while len(done) < many and time.monotonic() < until:
        time.sleep(0.001)


def test_ticks_come_after_a_while_and_end_with_the_work():
    came: list[float] = []
    before = signal.getsignal(signal.SIGALRM)
    begun = time.monotonic()
    with ticking(lambda: came.append(time.monotonic()), after_s=0.05, every_s=0.01):
        wait_for(came, 3)
    assert len(came) >= 3
    assert came[0] - begun >= 0.05
    many = len(came)
    time.sleep(0.05)
    assert len(came) == many
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_one_that_takes_longer_is_not_begun_again_before_it_ends():
    depth, most, came = [0], [0], []

    def tick() -> None:
        depth[0] += 1
        most[0] = max(most[0], depth[0])
        time.sleep(0.01)
        came.append(depth[0])
        depth[0] -= 1

    with ticking(tick, after_s=0.001, every_s=0.001):
        wait_for(came, 5)
    assert most == [1]


def test_a_terminal_that_is_gone_does_not_hinder_the_work():
    came = []

    def tick() -> None:
        came.append(1)
        raise BrokenPipeError

    with ticking(tick, after_s=0.001, every_s=0.001):
        wait_for(came, 3)
    assert len(came) >= 3


def test_it_ends_where_the_work_fails():
    with pytest.raises(KeyError), ticking(lambda: None, after_s=1, every_s=1):
        raise KeyError
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_ticks_come_to_the_main_thread_alone():
    found = []
    other = threading.Thread(target=lambda: found.append(ticks_come_here()))
    other.start()
    other.join()
    assert found == [False]
