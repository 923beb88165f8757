"""A month with known costs, and how a history reports it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydarshan import pydarshan_records

from tests.history.logs import assert_letters_follow_the_advice
from tests.traces.darshan_month import KINDS, Month, generate_month, logs_of
from tests.traces.darshan_writer import log_bytes
from vani import centre
from vani.centre.history.rows import StoredRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store

JUDGED = 12


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Month:
    return generate_month(tmp_path_factory.mktemp("month"), 400, seed=3, damaged=0.02, copied=0.02)


@pytest.fixture(scope="module")
def history(month: Month, tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("history") / "h.sqlite"
    centre.history_add(month.folder, db=db, totals=True, workers=1, judge=JUDGED)
    return db


def costs_differ(month: Month, db: Path) -> float:
    """The largest relative difference between a pair's cost and the known cost."""
    with Store(db).reading() as connection:
        found = {one.pair: one for one in read.groups(connection, "pair", read.Period())}
    assert set(found) == set(month.runs)
    assert {pair: one.runs for pair, one in found.items()} == month.runs
    return max(
        abs(cost / known[pair] - 1)
        for pair, one in found.items()
        for cost, known in ((one.in_io_s, month.in_io_s), (one.waiting_s, month.waiting_s))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_pydarshan_reads_the_written_log(tmp_path, kind):
    pytest.importorskip("darshan", reason="PyDarshan is not installed")
    log, in_io = next((log, in_io) for *_, found, log, in_io, _ in logs_of(200, 1) if found == kind)
    path = tmp_path / "a.darshan"
    path.write_bytes(log_bytes(log))
    records = pydarshan_records(path)
    assert (records.exe, records.ranks) == (log.exe, log.processes)
    assert set(records.names) == {one.path for one in log.records}
    times = sum(
        float(column.sum())
        for name, module in records.modules.items() if name != "MPI-IO"
        for counter, column in module.times.items() if counter.endswith(("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME"))
    )  # fmt: skip
    assert times == pytest.approx(in_io)


@pytest.mark.slow
def test_costs_per_user_and_application_are_the_known_ones(month, history):
    assert costs_differ(month, history) < 1e-6


@pytest.mark.slow
def test_copies_count_once_and_all_damaged_logs_are_listed(month, history):
    assert len(month.copies) >= 3
    assert len(month.damaged) >= 3
    assert {one.path for one in centre.history_damaged(db=history)} == {str(path) for path in month.damaged}
    assert centre.history_list(db=history).runs == month.files - len(month.copies) - len(month.damaged)


@pytest.mark.slow
def test_two_processes_find_the_same(month, history, tmp_path):
    centre.history_add(month.folder, db=tmp_path / "h.sqlite", totals=True, workers=2, judge=0)
    with Store(history).reading() as one, Store(tmp_path / "h.sqlite").reading() as other:
        assert {run.digest: run for run in read.rows(one, StoredRun)} == {
            run.digest: run for run in read.rows(other, StoredRun)
        }


def test_well_striped_run_ranks_low_and_single_writer_is_found(month, history):
    found = centre.history_top(db=history)
    # Both severities are low, and heat3d waits longer.
    first = [(row.application, row.saved.state, row.saved.severity) for row in found.rows[:2]]
    assert first == [("heat3d", "gain_unknown", 1), ("postproc", "gain_unknown", 1)]
    assert [month.kinds[row.application] for row in found.rows[2:7]] == ["rank-zero"] * 5
    rules = {month.kinds[row.application]: row.saved.rule for row in found.rows if row.saved is not None}
    assert rules["rank-zero"] == "POS004"
    # Without a curve of the machine it has no number.
    assert rules["narrow"] == "LUS002"
    by_cost = max(found.rows, key=lambda row: row.in_io_s)
    assert month.kinds[by_cost.application] == "well-striped"
    striped = [
        row.saved for row in found.rows if month.kinds[row.application] == "well-striped" and row.saved
    ]
    assert striped
    # Their profiles contain the layout of their files, so there is no advice on it, and none with a number.
    assert {(saved.expected_s or 0.0, saved.rule.startswith("LUS")) for saved in striped} == {(0.0, False)}


@pytest.mark.slow
def test_no_letter_contradicts_the_advice_on_a_log(history):
    assert_letters_follow_the_advice(history)


def test_waiting_time_reveals_costs_hidden_in_io_time(month, history):
    rows = {row.application: row for row in centre.history_top(db=history, by="app", limit=100).rows}
    # 256 processes wait for one that writes.
    assert rows["postproc"].waiting_s == pytest.approx(256 * rows["postproc"].in_io_s)


@pytest.mark.slow
def test_costs_of_a_whole_month_are_exact(tmp_path):
    month = generate_month(tmp_path / "month", 20_000)
    centre.history_add(month.folder, db=tmp_path / "h.sqlite", judge=0)
    assert costs_differ(month, tmp_path / "h.sqlite") < 1e-6
    assert len(centre.history_damaged(db=tmp_path / "h.sqlite")) == len(month.damaged)
