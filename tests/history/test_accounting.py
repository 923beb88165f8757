"""Jobs from Slurm's accounting, combined with the runs of a history."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.database.test_run_tables import a_run
from vani import centre
from vani.centre.history.accounting import FIELDS, read_sacct
from vani.centre.history.reading import _job
from vani.centre.history.rows import AccountedJob
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.cli.main import commands
from vani.errors import InputError

HEAD = "|".join(FIELDS)
LINES = (
    "101|ada|climate|high",
    '102|eve|"fusion"|normal',
    "102.batch||fusion|",
    "103|||",
)


@pytest.fixture
def sacct(tmp_path):
    place = tmp_path / "sacct.csv"
    place.write_text("\n".join((HEAD, *LINES)) + "\n")
    return place


@pytest.fixture
def db(tmp_path):
    """Two runs of job 101, one of 102, one of a job missing from the accounting, and one of no job."""
    store = Store(tmp_path / "h.sqlite")
    jobs = {1: "101", 2: "101", 3: "102", 4: "999", 5: None}
    with store.writing(make=True) as connection:
        write.add_runs(connection, [a_run(n, job=job, user=f"u{n}", waiting_s=10.0**n) for n, job in jobs.items()])
    return tmp_path / "h.sqlite"


def test_each_line_is_a_job_except_steps(sacct):
    first, second, third = read_sacct(sacct)
    assert first == AccountedJob("101", "ada", "climate", "high")
    # sacct quotes nothing.
    assert second.account == '"fusion"'
    assert third == AccountedJob("103", None, None, None)


def test_fields_may_be_separated_by_commas_in_any_order(tmp_path):
    (tmp_path / "s").write_text('Account,JobIDRaw,JobName\nclimate,7,"a,b"\n')
    (job,) = read_sacct(tmp_path / "s")
    assert (job.job, job.account) == ("7", "climate")


@pytest.mark.parametrize(
    ("line", "fault"), [("x|4", ":3: 'x' is not a job number"), ("7|4|9", ":3: has 3 fields, not 2")]
)
def test_invalid_line_is_reported_and_skipped(tmp_path, line, fault):
    (tmp_path / "s").write_text(f"JobIDRaw|Account\n6|4\n{line}\n8|4\n")
    first, bad, last = read_sacct(tmp_path / "s")
    assert (first.job, last.job) == ("6", "8")
    assert fault in str(bad)


@pytest.mark.parametrize("text", ["", "User|Account\nada|x\n", "\0\xff"])
def test_file_without_accounting_is_refused(tmp_path, text):
    (tmp_path / "s").write_text(text)
    with pytest.raises(InputError, match="does not name JobIDRaw"):
        centre.history_import_jobs(tmp_path / "s", db=tmp_path / "h.sqlite")
    assert not (tmp_path / "h.sqlite").exists()


def test_adding_the_same_file_again_changes_nothing(sacct, db):
    done = centre.history_import_jobs(sacct, db=db)
    assert (done.jobs, done.new, done.with_runs, done.refused) == (3, 3, 2, 0)
    with Store(db).reading() as connection:
        before = list(read.rows(connection, AccountedJob))
    assert centre.history_import_jobs(sacct, db=db).new == 0
    with Store(db).reading() as connection:
        assert list(read.rows(connection, AccountedJob)) == before


def test_a_job_that_went_on_is_replaced(sacct, db):
    centre.history_import_jobs(sacct, db=db)
    sacct.write_text("JobIDRaw|Account|State\n101|other|FAILED\n")
    assert centre.history_import_jobs(sacct, db=db).new == 0
    with Store(db).reading() as connection:
        job = next(iter(read.rows(connection, AccountedJob)))
    assert (job.account, job.user) == ("other", None)


def test_accounts_are_ranked_by_the_waiting_time_of_their_runs(sacct, db):
    centre.history_import_jobs(sacct, db=db)
    rows = centre.history_top(db=db, by="account").rows
    assert {row.account: (row.runs, row.waiting_s) for row in rows} == {
        "climate": (2, 110.0), '"fusion"': (1, 1000.0), "": (2, 110_000.0),
    }  # fmt: skip
    qos = centre.history_top(db=db, by="qos", since="1970-01-01", until="1970-01-01").rows
    assert sum(row.runs for row in qos) == 5


def test_command_states_what_is_new_and_names_bad_lines(sacct, db):
    with sacct.open("a") as file:
        file.write("x|||\n")
    done = CliRunner().invoke(commands, ["history", "import", str(sacct), "--database", str(db)])
    assert done.exit_code == 0
    assert done.stderr == (
        f"vani: {sacct}:6: 'x' is not a job number; it is left out\n"
        "3 jobs of 3 were new, 2 have runs, 1 line left out\n"
    )
    shown = CliRunner().invoke(commands, ["history", "top", "--by", "account", "--database", str(db)]).stdout
    assert "not in the accounting" in shown
    assert "climate" in shown


def test_jobs_are_carried_over_hidden_and_forgotten(sacct, db, tmp_path):
    centre.history_import_jobs(sacct, db=db)
    centre.history_export(tmp_path / "e.gz", db=db)
    centre.history_import(tmp_path / "e.gz", db=tmp_path / "copy.sqlite")
    for place in (db, tmp_path / "copy.sqlite"):
        with Store(place).reading() as connection:
            assert [job.account for job in read.rows(connection, AccountedJob)] == ["climate", '"fusion"', None]
    centre.history_anonymise(tmp_path / "key", db=tmp_path / "copy.sqlite")
    assert b"climate" not in (tmp_path / "copy.sqlite").read_bytes()
    with pytest.raises(InputError, match="is anonymised"):
        centre.history_import_jobs(sacct, db=tmp_path / "copy.sqlite")
    with Store(db).writing() as connection:
        write.forget_user(connection, "ada")
        assert [job.job for job in read.rows(connection, AccountedJob)] == ["102", "103"]


@pytest.mark.parametrize(
    ("name", "number"), [("7", "7"), ("7.server", "7"), ("12_3", "12_3"), ("ƒABC", None), (None, None), ("7x", None)]
)
def test_job_number_of_a_profile_matches_the_accounting(name, number):
    assert _job(name) == number
