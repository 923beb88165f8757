"""`vani history` from a support team's view."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (vani-io[centre])")

from tests.history.logs import write_log
from tests.traces.darshan_month import generate_month
from vani.centre.history.schema import Ranking

OLDER = Path(__file__).parents[1] / "database" / "older_history.sql"


@pytest.fixture
def month(desk: Path) -> Path:
    generate_month(desk / "logs", 120, seed=4, damaged=0.03)
    return desk / "logs"


def test_a_month_from_the_logs_to_the_letter(run, desk, month):
    added = run("history", "add", month, "--database", "h.sqlite", "--totals", "--judge", 8)
    assert (added.status, added.out) == (0, "")
    assert added.err.startswith("117 runs added (totals); ")
    assert "files damaged (vani history damaged)" in added.err
    shown = run("history", "top", "--database", "h.sqlite", "--limit", 3)
    assert (shown.status, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0].startswith("November 2026: 117 runs, ")
    # No curve of the machine shows what more targets gain.
    assert "heat3d" in lines[2]
    assert "gain not known" in lines[2]
    assert "lfs setstripe -c" in lines[2]
    application, user = "heat3d", "u20001"
    story = run("history", "show", application, user, "--database", "h.sqlite").out
    assert "Worst run on 2026-11-" in story
    letter = run("history", "letter", application, user, "--database", "h.sqlite").out
    assert letter.startswith(f"Subject: I/O of {application}\n\nDear {user},\n")
    assert "\n    lfs setstripe -c" in letter
    # Already striped well; no model gives the gain of aggregators.
    unknown = run("history", "letter", "climate", "u20200", "--database", "h.sqlite").out
    assert "the possible saving is not known" in unknown
    settings = run("history", "top", "--settings", "--database", "h.sqlite").out
    assert "POS004" in settings


@pytest.mark.slow
def test_a_ranking_in_all_formats(run, desk, month):
    run("history", "add", month, "--database", "h.sqlite", "--judge", 3, "-q")
    for name in ("top.txt", "top.json", "top.csv", "top.md", "top.html"):
        assert run("history", "top", "--database", "h.sqlite", "-o", name).status == 0
    found = Ranking.model_validate(json.loads((desk / "top.json").read_text()))
    rows = list(csv.DictReader(io.StringIO((desk / "top.csv").read_text())))
    assert [row["application"] for row in rows] == [row.application for row in found.rows]
    assert float(rows[0]["in_io_s"]) == pytest.approx(found.rows[0].in_io_s)
    # No recommendation for these runs has a number of seconds.
    said = [(one.saved.rule, one.saved.state, "") if one.saved else ("", "", "") for one in found.rows]
    assert [(row["rule"], row["state"], row["saved_expected_s"]) for row in rows] == said
    # Rows that can save nothing are not shown.
    shown = sum(one.saved is not None for one in found.rows)
    assert (desk / "top.md").read_text().count("\n| ") == shown + 2
    page = (desk / "top.html").read_text()
    assert page.count("<tr>") == shown + 1
    assert "<script" not in page
    for by in ("user", "app", "category", "file-system"):
        for more in ((), ("--settings",)):
            assert run("history", "top", "--database", "h.sqlite", "--by", by, *more).status == 0


@pytest.fixture
def db(desk: Path, run) -> Path:
    for number in range(4):
        write_log(desk / "logs", number=number, day=number * 20, user="<b>u1|x")
    run("history", "add", desk / "logs", "--database", "h.sqlite", "--totals", "--judge", 0, "-q")
    return desk / "h.sqlite"


def test_names_from_logs_are_not_markup(run, db):
    assert "<b>" not in run("history", "top", "--database", db, "--format", "html").out
    assert "u1\\|x" in run("history", "top", "--database", db, "--format", "markdown").out


def test_user_is_an_argument_or_option_of_every_application_command(run, db):
    by_word = run("history", "show", "solver", "<b>u1|x", "--database", db)
    assert by_word.status == 0 and by_word.out
    assert run("history", "show", "solver", "--user", "<b>u1|x", "--database", db).out == by_word.out
    for command in ("show", "predict", "creations"):
        done = run("history", command, "solver", "ada", "--user", "bob", "--database", db)
        assert (done.status, "USER is 'ada' and --user is 'bob'" in done.line) == (2, True)


def test_days_choose_the_runs(run, db):
    assert run("history", "top", "--database", db, "--since", "2026-12").out.startswith("December 2026: 2 runs")
    assert run("history", "top", "--database", db, "--until", "2026-11-01").out.startswith(
        "November 2026: 1 run, 1 user"
    )
    none = run("history", "top", "--database", db, "--since", "2030-01")
    assert none.out.splitlines()[0].startswith("No runs: 0 runs")
    assert none.status == 0


def test_unnamed_history_is_found_through_the_variable(run, db, monkeypatch):
    monkeypatch.setenv("VANI_HISTORY", str(db))
    assert run("history", "list").out.startswith(f"{db}: 4 runs, 0 profiles, 0 runs judged\n")


def test_history_can_be_listed_removed_and_exported(run, desk, db):
    (desk / "logs" / "cut.darshan").write_bytes(b"3.41")
    run("history", "add", desk / "logs", "--database", db, "-q")
    listed = run("history", "damaged", "--database", db)
    assert listed.out == f"{desk}/logs/cut.darshan: is not a Darshan log\n"
    assert run("history", "export", "--database", db, "-o", "all.gz").err == "4 runs exported\n"
    assert run("history", "import", "all.gz", "--database", "new.sqlite").err == "4 runs of 4 were new\n"
    assert (
        run("history", "anonymise", "--database", "new.sqlite", "--key", "key").err
        == "4 runs anonymised; the key is in key\n"
    )
    assert run("history", "remove", "--user", "<b>u1|x", "--database", db).err == "4 runs removed\n"


def bad_logs(desk: Path) -> None:
    (desk / "empty.darshan").write_bytes(b"")
    (desk / "old.darshan").write_bytes(b"2.06\0\0\0\0" + bytes(3000))
    (desk / "text.darshan").write_text("hello\n" * 400)
    (desk / "folder").mkdir()
    (desk / "notes.txt").write_text("notes")
    with sqlite3.connect(desk / "mail.sqlite") as connection:
        connection.execute("CREATE TABLE mails (id INTEGER)")
    connection.close()
    with sqlite3.connect(desk / "older.sqlite") as connection:
        connection.executescript(OLDER.read_text())
    connection.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "empty.darshan", "--database", "h"), "empty.darshan: is an empty file, not a Darshan log"),
        (("add", "old.darshan", "--database", "h"), "old.darshan: is a damaged Darshan log: it lacks the number of logs of Darshan 2"),
        (("add", "text.darshan", "--database", "h"), "text.darshan: is not a Darshan log"),
        (
            ("add", "folder", "--database", "h"),
            "folder: contains no Darshan logs, no profiles, no traces and no sessions of vani tune; name the folder of the logs",
        ),
        (("add", "nowhere", "--database", "h"), "nowhere: cannot be read (No such file or directory)"),
        (("add", "/dev/null", "--database", "h"), "/dev/null: is neither a file nor a folder"),
        (("add", "logs", "--database", "notes.txt"), "notes.txt: is not a database, and was not changed"),
        (
            ("add", "logs", "--database", "mail.sqlite"),
            "mail.sqlite: is a database of another program, and was not changed",
        ),
        (("add", "logs", "--database", "folder"), "folder: is a folder, not a history; name a file"),
        (("add", "logs", "--database", "mysql://x/y"), "'mysql' is not a supported kind of database"),
        (("add", "logs", "--database", "h", "--workers", "0"), "--workers: is 0; give a whole number, 1 to 1,024"),
        (("top", "--database", "nowhere"), "nowhere: is not a history; `vani history add PATH` makes one"),
        (("top", "--database", "h.sqlite", "--limit", "0"), "--limit: is 0; give a whole number, 1 to 1,000,000"),
        (
            ("top", "--database", "h.sqlite", "--since", "soon"),
            "--since: 'soon' is not a day; write YYYY-MM-DD or YYYY-MM",
        ),
        (("show", "solvr", "--database", "h.sqlite"), "no runs of solvr in this time; did you mean 'solver'?"),
        (("letter", "solver", "nobody", "--database", "h.sqlite"), "no runs of solver by nobody in this time; its users are <b>u1|x"),
        (("remove", "--user", "nobody", "--database", "h.sqlite"), "h.sqlite: no runs by nobody"),
        (("import", "notes.txt", "--database", "h"), "notes.txt: its first line does not name JobIDRaw"),
        (("anonymise", "--database", "h.sqlite", "--key", "folder/none/key"), "folder/none/key: cannot be used (No such file or directory)"),
        (("add", "logs", "--database", "older.sqlite"), "older.sqlite: is the history of an older Vani; make it again: "),
        (("top", "--database", "older.sqlite"), "older.sqlite: is the history of an older Vani; make it again: "),
        (
            ("export", "--database", "h.sqlite", "-o", "h.sqlite"),
            "h.sqlite: is a history: it is not overwritten",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)


@pytest.mark.sampled(7)
def test_bad_input_gives_one_line_and_status_2(run, desk, db, words, said):
    bad_logs(desk)
    before = db.read_bytes()
    done = run("history", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.line
    assert db.read_bytes() == before


def test_a_folder_with_some_damaged_logs_is_fine(run, desk):
    write_log(desk / "logs", number=1)
    for number in range(3):
        (desk / "logs" / f"{number}.darshan").write_bytes(b"")
    done = run("history", "add", "logs", "--database", "h", "--totals", "--judge", 0)
    assert (done.status, done.err) == (0, "1 run added (totals); 3 files damaged (vani history damaged)\n")


@pytest.mark.parametrize("command", ["top", "list", "damaged", "show solver", "export -o e", "add logs"])
@pytest.mark.slow
def test_no_command_is_a_fault_or_makes_a_file_without_its_libraries(tmp_path, command):
    # In a separate process, since here they are already loaded.
    write_log(tmp_path / "logs")
    code = "import sys; sys.modules['sqlalchemy'] = None; from vani.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "history", *command.split(), "--database", "h"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    line = "vani: a history of runs needs SQLAlchemy; pip install 'vani-io[centre]'\n"
    assert (done.returncode, done.stderr) == (2, line)
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@pytest.mark.slow
def test_a_report_of_a_history_is_a_page_of_its_ranking(run, desk, month):
    run("history", "add", month, "--database", "h.sqlite", "--totals", "--judge", 3, "-q")
    for name, kind in (("team.html", "html"), ("team.md", "markdown"), ("team.txt", "text")):
        assert run("report", "--history", "h.sqlite", "-o", name).status == 0
        ranked = run("history", "top", "--database", "h.sqlite", "--format", kind).out
        page = (desk / name).read_text()
        assert page.startswith(ranked.removesuffix("</body></html>\n"))
        assert "Expected behaviour of the next runs" in page
        assert "as expected" in page
    assert (desk / "team.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    "options",
    [
        ["--system", "lassen"],
        ["--advice", "a.yaml"],
        ["--store", "stores"],
        ["--scheduler", "processes"],
    ],
)
def test_options_unusable_in_a_history_report_are_refused_in_one_line(run, desk, options):
    result = run("report", "--history", "h.sqlite", *options, "-o", "team.html")
    assert result.status == 2
    assert result.line.startswith(f"--history excludes {options[0]}; its runs")
    assert list(desk.iterdir()) == []


def test_a_report_is_of_a_run_or_of_a_history(run, desk, mix):
    kept = desk / "h.sqlite"
    kept.write_bytes(b"")
    both = run("report", mix, "--history", kept)
    assert both.status == 2
    assert both.line.startswith("--history excludes a run; its runs were judged")
    neither = run("report")
    assert neither.status == 2
    assert "Missing argument 'PROFILE|TRACE' (or --history)" in neither.err
    nothing = run("report", "--history", "none.sqlite", "-o", "team.html")
    assert nothing.line == "none.sqlite: is not a history; `vani history add PATH` makes one"
    over = run("report", "--history", kept, "-o", kept)
    assert over.status == 2
    assert not (desk / "team.html").exists()
