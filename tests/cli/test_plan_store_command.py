"""`vani plan store` and `vani plan interactions` from a user's view."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from vani.centre.placement_library import database as table
from vani.centre.plan.schema.plans import PlacePlan

ROWS = """\
file_name,file_size,extent_id,extent_start,extent_end,stripe_size,stripe_count,mpi_rank,ost_list
/lustre/a.0,8589934592,1,0,134217728,134217728,1,0,10
/lustre/a.0,8589934592,2,134217728,,134217728,3,0,24 29 34
/lustre/b.0,,1,0,,1048576,4,,
"""


@pytest.fixture
def rows(desk: Path) -> Path:
    path = desk / "rows.csv"
    path.write_text(ROWS)
    return path


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_listed_interactions_can_be_stored_again(run, desk, rows):
    done = run("plan", "store", rows, "--database", "now.sqlite")
    assert (done.status, done.out, done.err) == (0, "", "stored 3 extents of 2 files\n")
    assert run("plan", "interactions", "--database", "now.sqlite").out == ROWS
    one = run("plan", "interactions", "--database", "now.sqlite", "/lustre/b.0")
    assert one.out.splitlines()[1:] == ["/lustre/b.0,,1,0,,1048576,4,,"]
    assert run("plan", "interactions", "--database", "sqlite:///now.sqlite", "-o", "again.csv").status == 0
    assert run("plan", "store", "again.csv", "--database", "again.sqlite", "--quiet").err == ""
    assert run("plan", "interactions", "--database", "again.sqlite").out == ROWS
    assert sorted(path.name for path in desk.iterdir()) == [
        "again.csv",
        "again.sqlite",
        "now.sqlite",
        "rows.csv",
    ]


def test_unsaved_file_is_an_empty_table_with_a_line(run, rows):
    run("plan", "store", rows, "--database", "now.sqlite")
    done = run("plan", "interactions", "--database", "now.sqlite", "/lustre/a\n")
    assert (done.status, done.line) == (0, "nothing is stored for /lustre/a\\n")
    assert done.out == ROWS.splitlines(keepends=True)[0]


def test_layout_that_lustre_refuses_is_stored_with_a_note(run, desk):
    (desk / "rows.csv").write_text(ROWS.replace(",134217728,1,0,10", ",100663296,1,0,10"))
    done = run("plan", "store", "rows.csv", "--database", "now.sqlite", "--quiet")
    assert (done.status, done.line) == (
        0,
        "Lustre will refuse this layout and use its default: /lustre/a.0: "
        "extent end 134,217,728 is not a multiple of its stripe size 100,663,296",
    )


def test_the_environment_names_the_database(run, rows, monkeypatch):
    monkeypatch.setenv("VANI_DATABASE", "now.sqlite")
    assert run("plan", "store", rows).status == 0
    assert run("plan", "interactions").out == ROWS


def test_program_with_the_file_open_keeps_the_old_version(run, desk, rows):
    run("plan", "store", rows, "--database", "now.sqlite")
    with closing(sqlite3.connect("file:now.sqlite?mode=ro&immutable=1", uri=True)) as job:
        counted = "SELECT count(*) FROM vani_interaction"
        assert job.execute(counted).fetchone() == (3,)
        (desk / "more.csv").write_text(ROWS.replace("/lustre/a", "/lustre/c"))
        run("plan", "store", "more.csv", "--database", "now.sqlite")
        assert job.execute(counted).fetchone() == (3,)
    assert len(run("plan", "interactions", "--database", "now.sqlite").out.splitlines()) == 6


def test_a_plan_that_places_no_files_is_refused(run, desk):
    six = Path(__file__).resolve().parents[2] / "examples" / "plan" / "six-jobs.yaml"
    run("plan", "forward", six, "--io-nodes", 12, "-o", "plan.yaml")
    done = run("plan", "store", "plan.yaml", "--database", "now.sqlite")
    assert done.status == 2
    assert done.line.startswith(
        "plan.yaml: is a plan of kind 'forward', which places no files; give one of kind"
    )
    assert not (desk / "now.sqlite").exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda path: path.write_text("schema: vani.plan/1\n"),
            "is not a database, or is damaged; name another file",
        ),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(4080)), "is not a database, or is damaged"),
        (lambda path: path.mkdir(), "is a folder, not a file to write"),
        (lambda path: path.symlink_to("/dev/null"), "is not an SQLite file"),
        (
            lambda path: made(path, "CREATE TABLE moz_places (id)"),
            "is a database of another program (table 'moz_places')",
        ),
        (lambda path: made(path, "CREATE VIEW vani_interaction AS SELECT 1 AS id"), "the database reports: "),
        (
            lambda path: made(path, "CREATE TABLE vani_interaction (id)"),
            "belongs to another version or program",
        ),
    ],
    ids=["text", "damaged", "folder", "device", "foreign", "view", "other-version"],
)
def test_foreign_database_is_refused_and_unchanged(run, desk, rows, make, said):
    make(desk / "now.sqlite")
    before = bytes_below(desk)
    done = run("plan", "store", rows, "--database", "now.sqlite")
    assert done.status == 2
    assert said in done.line
    assert bytes_below(desk) == before
    assert run("plan", "interactions", "--database", "now.sqlite").status == 2


def made(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)


def test_a_read_only_database_is_not_replaced(run, desk, rows):
    run("plan", "store", rows, "--database", "now.sqlite")
    (desk / "now.sqlite").chmod(0o444)
    done = run("plan", "store", rows, "--database", "now.sqlite")
    assert (done.status, done.line.startswith("now.sqlite: is read-only, and is not replaced")) == (2, True)


@pytest.mark.slow
def test_a_locked_database_is_refused_after_a_while(run, desk, rows, monkeypatch):
    monkeypatch.setattr("vani.centre.database._WAIT_S", 0.1)
    run("plan", "store", rows, "--database", "now.sqlite")
    with closing(sqlite3.connect("now.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = run("plan", "store", rows, "--database", "now.sqlite")
        assert (done.status, done.line) == (
            2,
            "now.sqlite: is locked by another process; try again when that has ended",
        )
    assert run("plan", "interactions", "--database", "now.sqlite").out == ROWS


def test_invalid_rows_leave_the_database_unchanged(run, desk, rows):
    run("plan", "store", rows, "--database", "now.sqlite")
    before = bytes_below(desk)["now.sqlite"]
    rows.write_text(ROWS.replace("/lustre/b.0", "b.0"))
    done = run("plan", "store", rows, "--database", "now.sqlite")
    assert (done.status, done.line.startswith("b.0: is not an absolute path")) == (2, True)
    assert bytes_below(desk)["now.sqlite"] == before
    assert run("plan", "store", rows, "--database", "new.sqlite").status == 2
    assert not (desk / "new.sqlite").exists()


def test_failure_while_writing_a_new_file_leaves_no_file(run, desk, rows, monkeypatch):
    monkeypatch.setattr(table, "to_row", lambda one: {"file_hash": None})
    assert run("plan", "store", rows, "--database", "now.sqlite").status == 2
    assert sorted(path.name for path in desk.iterdir()) == ["rows.csv"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "postgresql://me:geheim@127.0.0.1:1/runs",
            "postgresql://me:***@127.0.0.1:1/runs: the server does not answer",
        ),
        (
            "postgresql://me:geheim@127.0.0.1:1/runs?ssl=geheim",
            "postgresql://me:***@127.0.0.1:1/runs: the database reports: ",
        ),
        ("postgresql://me:geheim@127.0.0.1:1", "the URL names no database"),
        ("oracle://me:geheim@h/x", "'oracle' is not a supported kind of database; give FILE.sqlite or "),
        ("postgresql://me:ge@heim:x@h", "is not the URL of a database"),
        ("sqlite://", "does not name an SQLite file"),
        ("sqlite:///now.sqlite?mode=memory", "does not name an SQLite file"),
        ("-", "names no file"),
        (":memory:", "names no file"),
        ("", "names no file"),
        ("nowhere.sqlite", "nowhere.sqlite: no such database; create it with `vani plan store`"),
    ],
)
def test_unusable_database_is_reported_in_one_line_without_its_password(run, rows, url, said):
    shown = run("plan", "interactions", "--database", url)
    assert shown.status == 2
    assert said in shown.line
    assert "geheim" not in shown.line
    if "://" in url:
        stored = run("plan", "store", rows, "--database", url)
        assert stored.status == 2
        assert "geheim" not in stored.line


def test_missing_library_is_named_with_its_extra(run, monkeypatch):
    monkeypatch.setattr("vani.centre.database.find_spec", lambda name: None)
    done = run("plan", "interactions", "--database", "now.sqlite")
    assert (done.status, done.line) == (2, "databases need SQLAlchemy; pip install 'vani-io[centre]'")


def test_the_database_is_not_overwritten_by_its_own_listing(run, rows):
    run("plan", "store", rows, "--database", "now.sqlite")
    done = run("plan", "interactions", "--database", "now.sqlite", "-o", "now.sqlite")
    assert (done.status, "is an input of this command" in done.line) == (2, True)
    assert run("plan", "store", rows, "--database", rows).status == 2


@pytest.mark.slow
def test_a_plan_of_osts_is_stored_with_stripes_that_lustre_takes(run, desk):
    examples = Path(__file__).resolve().parents[2] / "examples" / "plan"
    snapshot = examples / "testbed-empty.yaml"
    assert (
        run("plan", "place", examples / "ior-files.yaml", "--snapshot", snapshot, "-o", "plan.yaml").status
        == 0
    )
    done = run("plan", "store", "plan.yaml", "--database", "now.sqlite")
    assert (done.status, done.err) == (0, "stored 48 extents of 16 files\n")
    first, *rows = run("plan", "interactions", "--database", "now.sqlite").out.splitlines()
    assert len(rows) == 48
    plan = PlacePlan.load(desk / "plan.yaml")
    third = dict(zip(first.split(","), rows[2].split(","), strict=True))
    extent = plan.files[0].extents[2]
    assert (third["stripe_size"], extent.set_stripe_size) == ("4194304", 4 << 20)
    assert (third["ost_list"], plan.pin) == ("", False)


def test_a_file_that_begins_on_the_metadata_target_is_planned_and_stored(run, desk):
    (desk / "jobs.yaml").write_text(
        "schema: vani.jobs/1\njobs:\n- name: a\n  nodes: 1\n  creations:\n"
        '  - {path: /l/small, size: 3000, layout: "-E 1M -L mdt -E -1 -c 4"}\n'
        '  - {path: /l/large, size: 9437184, layout: "-E 1M -L mdt -E -1 -c 4"}\n'
    )
    snapshot = Path(__file__).resolve().parents[2] / "examples" / "plan" / "testbed-empty.yaml"
    assert run("plan", "place", "jobs.yaml", "--snapshot", snapshot, "-o", "plan.yaml").status == 0
    plan = PlacePlan.load(desk / "plan.yaml")
    assert [[extent.on_mdt for extent in file.extents] for file in plan.files] == [[3000, None], [1 << 20, None]]
    assert plan.files[1].command == "lfs setstripe -E 1M -L mdt -E -1 -c 4 -S 2M /l/large"
    done = run("plan", "store", "plan.yaml", "--database", "now.sqlite")
    assert (done.status, done.err) == (0, "stored 4 extents of 2 files\n")
    rows = run("plan", "interactions", "--database", "now.sqlite").out.splitlines()
    assert [row.split(",")[3:7] for row in rows if row.startswith("/l/large")] == [
        ["0", "1048576", "1048576", "0"],
        ["1048576", "9437184", "2097152", "4"],
    ]
