"""`vani history predict`, `evaluate` and `phases`, and `vani advise --next`, from a user's view."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.history.logs import write_log
from vani.centre.prediction.schema import BehaviourPrediction, Prediction
from vani.schema.advice import Advice

HEAD = "app,user,processes,start,end,bytes_read,bytes_written,metadata_ops"
ROW = "a,u,4,{start},{end},0,{written},10"


def rows(count: int, **more: object) -> list[str]:
    told = [{"start": 100 * n, "end": 100 * n + 50, "written": 10 ** (6 + n % 3)} for n in range(count)]
    return [ROW.format(**one | more) for one in told]


@pytest.fixture
def db(desk: Path, run) -> Path:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (vani-io[centre])")
    for number in range(6):
        write_log(desk / "logs", number=number, day=number + 1, user="u1")
    run("history", "add", desk / "logs", "--database", "h.sqlite", "--totals", "--judge", 0, "-q")
    return desk / "h.sqlite"


def app_of(run, db) -> str:
    return run("history", "top", "--database", db).out.splitlines()[2].split()[1]


def test_the_next_run_is_predicted_from_the_store(run, desk, db):
    application = app_of(run, db)
    shown = run("history", "predict", application, "--database", db)
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(f"Next run of {application} by u1 on ")
    assert "5 of the last 5 runs matched the prediction." in shown.out
    assert run("history", "predict", application, "--database", db, "-o", "p.yaml").status == 0
    found = Prediction.load(desk / "p.yaml")
    assert isinstance(found, BehaviourPrediction)
    assert found.behaviours[0].probability > 0.8
    assert found.behaviours[0].resembles.paths[0].endswith(".darshan")


def test_unknown_predictions_are_reported(run, db):
    application = app_of(run, db)
    shown = run("history", "predict", application, "--processes", 7, "--database", db)
    assert shown.status == 0
    assert shown.out.startswith(
        "Outside of the model: no run with 7 processes is known (there are runs with "
    )
    for asked, why in (
        (("nobody",), "no runs of nobody in this time"),
        ((application, "--user", "u9"), f"no runs of {application} by u9 in this time"),
        ((application, "--processes", 0), "--processes: is 0; give a whole number, 1 to 10,000,000"),
    ):
        done = run("history", "predict", *asked, "--database", db)
        assert done.status == 2
        assert done.line.startswith(why)
    assert run("history", "predict", application, "--database", "none.sqlite").status == 2


def test_advice_before_a_run_comes_from_similar_runs(run, desk, db):
    application = app_of(run, db)
    done = run("advise", "--next", application, "--database", db, "-o", "a.yaml", "-q")
    assert (done.status, done.err) == (0, "")
    advice = Advice.load(desk / "a.yaml")
    assert advice.next_run is not None
    assert advice.next_run.default is None
    assert advice.next_run.behaviours[0].run.endswith(".darshan")
    assert advice.recommendations or advice.no_recommendation


def test_defaults_remain_if_too_little_is_known(run, desk, db):
    application = app_of(run, db)
    shown = run("advise", "--next", application, "--processes", 7, "--database", db, "--format", "text")
    assert shown.status == 0
    assert "Leave the defaults as they are: no run with 7 processes is known" in shown.out.replace("\n", " ")
    for log in (desk / "logs").rglob("*.darshan"):
        log.unlink()
    gone = run("advise", "--next", application, "--database", db, "--format", "text").out
    assert "without a profile" in gone
    assert "Leave the defaults as they are" in gone


def test_advice_is_on_a_profile_or_on_a_next_run(run, desk):
    assert "Missing argument 'PROFILE|TRACE' (or --next)" in run("advise").err
    assert run("advise", "p.yaml", "--next", "a").line.startswith("p.yaml: --next excludes a profile")
    assert run("advise", "p.yaml", "--user", "u").line.startswith(
        "--user and --processes need --next"
    )


def test_a_table_of_runs_is_evaluated_with_all_known_and_with_those_that_had_ended(run, desk):
    with gzip.open(desk / "runs.csv.gz", "wt") as file:
        file.write("\n".join([HEAD, *rows(60)]) + "\n")
    done = run("history", "evaluate", "runs.csv.gz")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(
        "60 runs, 1 category, 3 behaviours; predicted: runs since 1970-01-01 01:10 UTC"
    )
    assert sum(line.startswith("auto ") and " 1.000 " in line for line in lines) == 2
    assert "Each from earlier runs that had ended: 18 runs of 1 category; all known" in lines


def test_a_history_is_evaluated_as_a_table_is(run, db):
    done = run("history", "evaluate", "--database", db, "--last", 0.5)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("6 runs, 1 category, 1 behaviour")


def test_runs_may_be_in_any_order(run, desk):
    (desk / "r.csv").write_text("\n".join([HEAD, *reversed(rows(30))]))
    shown = run("history", "evaluate", "r.csv")
    assert shown.status == 0
    assert "Note: 29 runs of the table started before the run above." in shown.out


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "r.csv: has no runs; add a row per run"),
        ([HEAD], "r.csv: has no runs; add a row per run"),
        ([HEAD.replace("user,", "")], "r.csv: has no runs"),
        ([HEAD.replace("user", "who"), *rows(3)], "r.csv: no column user; add it: one row is one run"),
        ([HEAD.replace("user", "app"), *rows(3)], "r.csv: column 'app' appears twice; leave one out"),
        ([HEAD.replace("user", "application"), *rows(3)], "r.csv: columns application and app are the same"),
        ([HEAD, *rows(3), rows(1, written="")[0]], "r.csv: row 5: no bytes_written; correct it or leave the row out"),
        ([HEAD, *rows(3), rows(1, written="NaN")[0]], "r.csv: row 5: bytes_written is 'NaN'"),
        ([HEAD, *rows(3), rows(1, written="many")[0]], "r.csv: row 5: bytes_written is 'many'"),
        ([HEAD, *rows(3), rows(1, written="-1")[0]], "r.csv: row 5: bytes_written is '-1'"),
        ([HEAD, *rows(3), rows(1, end=-5)[0]], "r.csv: row 5: end is '-5'"),
        ([HEAD, *rows(3), rows(1, start=9, end=5)[0]], "r.csv: row 5: ends at 5, before it starts at 9"),
        ([HEAD, *rows(3), "a,u,4"], "r.csv: cannot be read as CSV"),
        ([HEAD, "a,u,0,1,2,3,4,5"], "r.csv: row 2: processes is '0'"),
        ([HEAD, ",u,4,1,2,3,4,5"], "r.csv: row 2: no app"),
        ([HEAD, *rows(1)], "runs: 1 run: of the last 30% none belongs to a known category"),
    ],
)  # fmt: skip
def test_invalid_table_costs_one_line(run, desk, lines, why):
    (desk / "r.csv").write_text("\n".join(lines) + "\n")
    done = run("history", "evaluate", "r.csv")
    assert (done.status, done.out) == (2, "")
    assert done.line.startswith(why)


@pytest.mark.parametrize("written", [0, 2**62])
def test_equal_runs_are_predicted(run, desk, written):
    (desk / "r.csv").write_text("\n".join([HEAD, *rows(30, written=written)]) + "\n")
    shown = run("history", "evaluate", "r.csv")
    assert shown.status == 0
    assert sum(line.startswith("auto ") and " 1.000 " in line for line in shown.out.splitlines()) == 2


def test_evaluation_refuses_an_invalid_share_and_two_inputs(run, desk):
    (desk / "r.csv").write_text(HEAD)
    assert run("history", "evaluate", "r.csv", "--last", 1).line.startswith("--last: is 1;")
    assert run("history", "evaluate", "r.csv", "--database", "h").line.startswith(
        "r.csv: a table and a history"
    )
    assert run("history", "evaluate", "none.csv").line.startswith("none.csv: no such file")
    assert run("history", "evaluate", desk).line.endswith("is a directory; name a CSV file")


def test_phases_of_a_trace_and_runs_that_behave_alike(run, mix):
    pytest.importorskip("pywt")
    done = run("history", "phases", mix, mix)
    assert (done.status, done.err) == (0, "")
    assert done.out.count(": behaviour 0, ") == 2
    assert "(calls, samples of " in done.out


def test_a_log_of_totals_has_no_phases(run, desk):
    pytest.importorskip("pywt")
    log = write_log(desk / "logs", number=1, day=1, user="u1") or next((desk / "logs").rglob("*.darshan"))
    done = run("history", "phases", log)
    assert done.status == 2
    assert "has only totals, without times of transfers" in done.line
