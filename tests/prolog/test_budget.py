"""Work within a time budget."""

import os
import signal
import time
from pathlib import Path

import pytest

from vani.centre.prolog import budget
from vani.centre.prolog.budget import Deadline, age_of_process_s, within
from vani.errors import InputError


@pytest.fixture
def begun(monkeypatch):
    """A process that has just started, since tests run longer than any budget."""
    monkeypatch.setattr(budget, "age_of_process_s", lambda: 0.0)


def test_work_reports_its_result(begun):
    assert within(Deadline(5.0), bool, lambda: "done") == (True, "done")


@pytest.mark.parametrize(
    ("error", "said"),
    [(InputError("is full", where="/x"), "/x: is full"), (OSError(30, "Read-only file system", "/x"), "/x: Read-only file system"), (MemoryError(), "MemoryError"), (KeyboardInterrupt(), "KeyboardInterrupt")],
    ids=["input", "system", "memory", "interrupt"],
)  # fmt: skip
def test_an_error_is_a_line(begun, error, said):
    def fail():
        raise error

    assert within(Deadline(5.0), bool, fail) == (False, said)


def test_a_crash_is_a_line(begun):
    assert within(Deadline(5.0), bool, lambda: os.kill(os.getpid(), signal.SIGKILL) or "") == (
        False, "the planning process died (killed, or out of memory)"
    )  # fmt: skip


def test_work_that_hangs_is_killed_when_the_budget_is_used_up(begun, tmp_path):
    def hang():
        (tmp_path / "pid").write_text(str(os.getpid()))
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
        while True:
            time.sleep(1)

    begin = time.monotonic()
    assert within(Deadline(0.6), bool, hang) == (False, "not finished within the budget")
    assert 0.5 < time.monotonic() - begin < 2.0
    child = int((tmp_path / "pid").read_text())
    for _ in range(100):
        status = Path(f"/proc/{child}/status")
        if not status.exists() or "\nState:\tZ" in status.read_text():
            return
        time.sleep(0.02)
    pytest.fail("the child lives on")


def test_the_budget_counts_from_the_start_of_the_process():
    assert 0.0 < age_of_process_s() < 3600.0


def test_first_work_is_done_even_after_the_deadline_without_waiting(begun, tmp_path):
    def first():
        time.sleep(1.0)
        (tmp_path / "registered").touch()

    begin = time.monotonic()
    said = within(Deadline(0.2), first, lambda: (tmp_path / "planned").write_text("") or "done")
    assert said == (False, "not finished within the budget")
    assert time.monotonic() - begin < 0.9
    for _ in range(100):
        time.sleep(0.05)
        if (tmp_path / "registered").exists():
            break
    assert (tmp_path / "registered").exists()


def test_error_of_the_first_part_is_left_to_the_work(begun):
    assert within(Deadline(5.0), lambda: 1 / 0, lambda: "done") == (True, "done")
