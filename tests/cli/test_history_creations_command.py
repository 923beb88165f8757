"""`vani history creations` from a user's view."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (vani-io[centre])")

from tests.history.logs import write_log
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.prediction.schema import CreationsPrediction


@pytest.fixture
def history(run, desk):
    for number in range(1, 5):
        write_log(desk / "logs", number=number, day=number, values={"MAX_BYTE_WRITTEN": (1 << 20) - 1})
    run("history", "add", "logs", "--database", "h.sqlite", "--totals", "--judge", 0)
    return desk


def test_from_the_logs_to_the_placement(run, history):
    told = run("history", "creations", "solver", "--database", "h.sqlite", "-o", "next.yaml",
               "--table", "rows.csv", "--jobs", "jobs.yaml", "--layout", "2")  # fmt: skip
    assert (told.status, told.out, told.err) == (0, "", "")
    assert len(CreationsPrediction.load(history / "next.yaml").creations) == 4
    assert len(Jobs.load(history / "jobs.yaml").jobs[0].creations) == 4
    assert (
        run("plan", "store", "rows.csv", "--database", "place.sqlite").err == "stored 4 extents of 4 files\n"
    )


def test_as_text(run, history):
    told = run("history", "creations", "solver", "--database", "h.sqlite")
    assert told.status == 0
    lines = told.out.splitlines()
    assert lines[0] == "solver by u1, 4 processes: the next run creates 4 files, 4.19 MB."
    assert lines[1] == "By last_value, from 4 runs."
    assert "Within 1 % of 2 runs held out: last_value 100 %" in told.out or "runs held out" in told.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody"], "no runs of nobody"),
        (["solver", "--method", "oracle"], "--method: oracle is no method; there are last_value, "),
        (["solver", "--least", "2"], "--least: is 2; give a number, 0 to 1"),
        (["solver", "--begun", "none.csv"], "none.csv: no such file"),
        (["solver", "--layout", "-E 3G", "--table", "t.csv"], "vani: "),
        (["solver", "--layout", "-E -1 -c -1", "--table", "t.csv"], "is on all OSTs"),
        (["solver", "-o", "h.sqlite"], "h.sqlite"),
    ],
)
def test_bad_input_gives_one_line_and_no_output(run, history, arguments, told):
    before = sorted(path.name for path in history.iterdir())
    found = run("history", "creations", *arguments, "--database", "h.sqlite")
    assert (found.status, found.out) == (2, "")
    assert told in found.err
    assert found.err.count("\n") == 1
    assert sorted(path.name for path in history.iterdir()) == before


def test_history_without_creations_names_the_input_to_add(run, desk):
    write_log(desk / "logs", values={"BYTES_WRITTEN": 0, "WRITES": 0})
    run("history", "add", "logs", "--database", "h.sqlite", "--totals", "--judge", 0)
    found = run("history", "creations", "solver", "--database", "h.sqlite")
    assert (found.status, "the next run creates 0 files" in found.out) == (0, True)


def test_no_history_at_all(run, desk):
    found = run("history", "creations", "solver", "--database", "h.sqlite")
    assert (found.status, found.out) == (2, "")
    assert "is not a history" in found.err
