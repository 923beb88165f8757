"""The tables of runs: their versions, what is looked up by an index, and databases that cannot be used."""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from vani import centre
from vani.centre.history.rows import Source, StoredRun, Verdict
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.errors import InputError, StoreError

OLDER = Path(__file__).with_name("older_history.sql")
"""A history of layout 10, as the last Vani wrote it that upgraded histories."""


def a_run(number: int = 1, **more: object) -> StoredRun:
    names = dict.fromkeys(StoredRun.__slots__)
    told = {
        "digest": f"{number:064x}", "kind": "darshan", "user": "u1", "application": "app", "processes": 4,
        "submitted": 1000.0 * number, "runtime_s": 10.0, "in_io_s": 2.0, "slowest_s": 1.0, "waiting_s": 4.0,
        "file_system": "lustre", "mount": "/s", "complete": True,
    }  # fmt: skip
    return StoredRun(**names | told | more)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "h.sqlite", patience_s=0.1)
    with made.writing(make=True) as connection:
        write.add_runs(connection, [a_run(number) for number in range(1, 4)])
    return made


def test_run_is_stored_once(store):
    with store.writing() as connection:
        assert write.add_runs(connection, [a_run(1), a_run(9), a_run(9)]) == {a_run(9).digest}
    with store.reading() as connection:
        assert read.whole(connection, read.Period()).runs == 4


def test_run_survives_writing_and_reading(store):
    with store.reading() as connection:
        assert next(iter(read.rows(connection, StoredRun))) == a_run(1)


@pytest.mark.parametrize(
    ("question", "index"),
    [
        ("SELECT * FROM history_runs WHERE user = 'u' AND application = 'a' AND processes = 4 ORDER BY submitted", "history_runs_of_category"),
        ("SELECT max(waiting_s) FROM history_runs WHERE application = 'a'", "history_runs_of_category"),
        ("SELECT sum(in_io_s) FROM history_runs WHERE submitted >= 1e9 AND submitted < 2e9", "history_runs_by_time"),
        ("SELECT id FROM history_runs WHERE digest = 'x'", "history_runs_digest"),
        ("SELECT path FROM history_sources WHERE digest = 'x'", "history_sources_of_run"),
    ],
    ids=["category", "application", "month", "digest", "files of a run"],
)  # fmt: skip
def test_frequent_queries_use_an_index(store, question, index):
    with store.reading() as connection:
        (plan,) = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question}").all()
    assert f"INDEX {index} (" in plan[3]
    assert "SCAN" not in plan[3]


def test_columns_are_the_fields_of_the_rows():
    for kind, table in tables.OF_ROWS.items():
        assert set(kind.__slots__) == {column.name for column in table.columns} - {"id", "place"}


def test_store_of_an_older_vani_is_refused_with_the_command_that_makes_it_again(tmp_path):
    place = tmp_path / "older.sqlite"
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(OLDER.read_text())
    before = place.read_bytes()
    store = Store(place)
    for act in (store.reading, store.writing, lambda: store.writing(make=True)):
        with (
            pytest.raises(
                StoreError,
                match="is the history of an older Vani; make it again: move it away, then `vani history add LOGS`",
            ),
            act(),
        ):
            pass
    assert place.read_bytes() == before


def sums_by_hand(store: Store, period: read.Period) -> dict[tuple, tuple]:
    with store.reading() as connection:
        runs = [run for run in read.rows(connection, StoredRun) if _is_in(run, period)]
    names = {(run.application, run.user, run.processes) for run in runs}
    return {
        name: (len(some := [run for run in runs if (run.application, run.user, run.processes) == name]),
               sum(run.processes * (run.runtime_s or 0) for run in some), sum(run.waiting_s or 0 for run in some))
        for name in names
    }  # fmt: skip


def _is_in(run: StoredRun, period: read.Period) -> bool:
    if period == read.Period():
        return True
    at = run.submitted
    return at is not None and (period.since or 0) <= at and (period.until is None or at < period.until)


def random_run(random: np.random.Generator, number: int) -> StoredRun:
    at = None if number % 17 == 0 else float(random.uniform(19_000, 19_150) * 86400)
    return a_run(
        number, submitted=at, user=f"u{random.integers(3)}", uid=int(random.integers(3)), application=f"a{random.integers(2)}",
        processes=int(2 ** random.integers(1, 3)), waiting_s=None if number % 11 == 0 else float(random.random()),
    )  # fmt: skip


def test_sums_match_the_runs_after_any_additions_removals_and_renames(store, tmp_path):
    random = np.random.default_rng(4)
    with store.writing() as connection:
        write.forget_user(connection, "u1")
        for start in range(100, 400, 50):
            runs = [random_run(random, number) for number in range(start, start + 60)]
            new = write.add_runs(connection, runs)
            write.settle_users(connection, [replace(run, user="u2") for run in runs if run.digest not in new])
        write.forget_user(connection, "u1", "a0")
        write.forget_user(connection, "u0")
    centre.history_anonymise(tmp_path / "key", db=store.file)
    with store.writing() as connection:
        write.add_runs(connection, [random_run(random, number) for number in range(500, 540)])
    days = [None, 19_000, 19_020, 19_031, 19_059, 19_060, 19_080, 19_150]
    for first, last in itertools.combinations_with_replacement(days, 2):
        since, until = (None if day is None else 86400.0 * day for day in (first, last))
        period = read.Period(since, until if last != first or last is None else until + 86400)
        expected = sums_by_hand(store, period)
        with store.reading() as connection:
            groups = {group.names[::2] + group.names[1:2]: group for group in read.groups(connection, "category", period)}
            whole = read.whole(connection, period)
        found = {(app, user, processes): (g.runs, g.core_s, g.waiting_s) for (app, processes, user), g in groups.items()}
        assert found == {name: pytest.approx(costs) for name, costs in expected.items()}, period
        assert whole.runs == sum(costs[0] for costs in expected.values())
        assert whole.users == len({user for _, user, _ in expected})


def test_newer_store_is_refused_and_unchanged(store, tmp_path):
    with store.writing() as connection:
        write.set_fact(connection, "layout", "99")
    before = (tmp_path / "h.sqlite").read_bytes()
    for act in (store.reading, store.writing):
        with (
            pytest.raises(
                StoreError, match=r"has layout 99, which is newer than this Vani knows \(13\); update Vani"
            ),
            act(),
        ):
            pass
    assert (tmp_path / "h.sqlite").read_bytes() == before


def test_error_leaves_no_partial_output(store):
    with pytest.raises(RuntimeError), store.writing() as connection:
        write.add_runs(connection, [a_run(50)])
        raise RuntimeError
    with store.reading() as connection:
        assert read.whole(connection, read.Period()).runs == 3


def test_locked_store_is_reported_as_locked(store, tmp_path):
    other = sqlite3.connect(tmp_path / "h.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with (
        pytest.raises(StoreError, match="is locked by another process; try again when that has ended"),
        store.writing(),
    ):
        pass
    other.close()


def test_full_disk_is_reported_and_leaves_no_files(store):
    sa.event.listen(
        store.engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 1")
    )
    with (
        pytest.raises(StoreError, match="the disk is full: nothing of this step was stored"),
        store.writing() as connection,
    ):
        write.put(connection, [Source(f"/{n}" * 500, 1, 1, None, "x") for n in range(200)])
    with store.reading() as connection:
        assert read.count_damaged(connection) == 0


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder that everybody can read, looked at by a user who may write nothing."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        yield Path(folder)


def test_a_read_only_store_can_be_read_and_is_not_written(as_nobody):
    place = as_nobody / "h.sqlite"
    store = Store(place)
    with store.writing(make=True) as connection:
        write.add_runs(connection, [a_run(1)])
    place.chmod(0o644)
    os.seteuid(65534)
    try:
        with store.reading() as connection:
            assert read.whole(connection, read.Period()).runs == 1
        with (
            pytest.raises(StoreError, match="is read-only; make the file and its folder writable"),
            store.writing(),
        ):
            pass
        with (
            pytest.raises(StoreError, match="cannot be opened"),
            Store(as_nobody / "new.sqlite").writing(make=True),
        ):
            pass
    finally:
        os.seteuid(0)


def test_foreign_databases_and_files_are_unchanged(tmp_path):
    foreign = tmp_path / "mail.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mails (id INTEGER)")
    connection.close()
    text = tmp_path / "notes.txt"
    text.write_text("my notes")
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(foreign.read_bytes()[:1500])
    for place, said in (
        (foreign, "is a database of another program, and was not changed"),
        (text, "is not a database, and was not changed"),
        (cut, "damaged"),
        (tmp_path, "is a folder, not a history"),
    ):
        before = place.read_bytes() if place.is_file() else b""
        with pytest.raises(StoreError, match=said), Store(place).writing(make=True):
            pass
        assert place.is_dir() or place.read_bytes() == before


def test_reading_does_not_create_a_missing_database(tmp_path):
    with (
        pytest.raises(StoreError, match="is not a history; `vani history add PATH` makes one"),
        Store(tmp_path / "h").reading(),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["oracle://x/y", "http://example.org", "sqlite+pysqlite:///x"])
def test_other_urls_are_refused(url):
    with pytest.raises(InputError, match="is not a supported kind of database"):
        Store(url)


def test_unreachable_server_is_reported_without_the_password():
    with pytest.raises(StoreError) as error, Store("postgresql://me:secret@127.0.0.1:1/runs").reading():
        pass
    assert "postgresql://me:***@127.0.0.1:1/runs: the server does not answer" in str(error.value)
    assert "secret" not in str(error.value)


def test_verdict_and_file_replace_older_ones(store):
    verdict = Verdict(a_run(1).digest, "m", 1.0, 2.0, 3.0, "LUS002", "s", "w", ("a", "b"), True)
    with store.writing() as connection:
        for saved in (2.0, 2.5):
            write.put(connection, [replace(verdict, saved_s=saved)])
        for digest in (None, a_run(1).digest):
            write.put(connection, [Source("/a", 1, 1, digest, None if digest else "cut")])
    with store.reading() as connection:
        assert [one.saved_s for one, _ in read.verdicts(connection)] == [2.5]
        assert [one.digest for one in read.rows(connection, Source)] == [a_run(1).digest]
