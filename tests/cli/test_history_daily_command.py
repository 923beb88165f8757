"""`vani history daily`, from the view of a user who runs a benchmark every night."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.logs import write_log

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (vani-io[centre])")

NIGHTS = (10.0, 10.4, 9.8, 10.2, 10.1, 9.9, 10.3, 10.0)
"""Seconds of the slowest process."""


def add(run, desk: Path, *nights: float, first: int = 0, start: int = 100, **job: object) -> None:
    for day, seconds in enumerate(nights, start=first):
        write_log(desk / "logs", app="ior", day=day, seconds=seconds, number=start + day, **job)
    run("history", "add", desk / "logs", "--database", "h.sqlite", "--totals", "--judge", 0, "-q")


def daily(run, *options: object):
    return run("history", "daily", "ior", *options, "--database", "h.sqlite")


def test_usual_and_faster_nights_pass_and_a_slow_one_fails(run, desk):
    add(run, desk, *NIGHTS)
    shown = daily(run)
    assert (shown.status, shown.err) == (0, "")
    assert " usual " in shown.out.splitlines()[2]
    add(run, desk, 16.0, first=8)
    assert (daily(run).status, " SLOWER " in daily(run).out) == (1, True)
    add(run, desk, 4.0, first=9)
    assert (daily(run).status, " faster " in daily(run).out) == (0, True)


def test_seven_runs_are_not_enough(run, desk):
    add(run, desk, *NIGHTS[:7])
    assert daily(run).status == 2


def test_writes_and_reads_of_a_night_are_two_series(run, desk):
    add(run, desk, *NIGHTS)
    add(run, desk, *[40.0] * 8, start=500, values={"BYTES_WRITTEN": 0, "WRITES": 0, "READS": 10, "BYTES_READ": 1000})
    shown = daily(run)
    assert shown.status == 0
    assert len(shown.out.splitlines()) == 4
