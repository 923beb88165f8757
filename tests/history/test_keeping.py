"""A history can be hidden, deleted and moved elsewhere, completely or not at all."""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from tests.history.logs import write_log
from vani import centre
from vani.centre.history.names import Names
from vani.centre.history.rows import Source, StoredRun
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.centre.prediction.creations import series
from vani.errors import DocumentError, InputError, StoreError

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    for number in range(9):
        write_log(
            tmp_path / "logs" / "secretproject",
            user=("alice", "bobby", "carol")[number % 3],
            number=number,
            uid=number % 3,
        )
    (tmp_path / "logs" / "alice_cut_id9.darshan").write_bytes(b"3.41")
    place = tmp_path / "h.sqlite"
    centre.history_add(tmp_path / "logs", db=place, totals=True, workers=1, judge=0)
    centre.history_add(PROFILE, db=place, user="alice", judge=0)
    return place


def everything(db: Path) -> bytes:
    """The bytes of the file, and of its compressed parts."""
    with Store(db).reading() as connection:
        profiles = [zlib.decompress(content) for _, content in read.contents(connection, tables.profiles)]
    return b"\n".join([db.read_bytes(), *profiles])


def test_anonymised_file_contains_no_user_and_no_path(db, tmp_path):
    secret = [
        b"alice",
        b"bobby",
        b"carol",
        b"secretproject",
        str(tmp_path).encode(),
        b"cm1out",
        b"/lustre/scratch",
    ]
    assert all(word in everything(db) for word in secret)
    assert centre.history_anonymise(tmp_path / "key", db=db) == 10
    assert not [word for word in secret if word in everything(db)]
    key = (tmp_path / "key").read_text().strip()
    assert key.encode() not in everything(db)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("h.sqlite")] == ["h.sqlite"]


def test_hashing_names_does_not_change_costs(db, tmp_path):
    before = sorted((row.runs, row.waiting_s) for row in centre.history_top(db=db).rows)
    centre.history_anonymise(tmp_path / "key", db=db)
    assert sorted((row.runs, row.waiting_s) for row in centre.history_top(db=db).rows) == before


def test_key_gives_later_logs_the_same_hashes_without_opening_old_ones(db, tmp_path):
    centre.history_anonymise(tmp_path / "key", db=db)
    write_log(tmp_path / "logs", user="alice", number=99)
    added = centre.history_add(tmp_path / "logs", db=db, key=tmp_path / "key", totals=True, workers=1).added
    assert (added.runs, added.unchanged) == (1, 10)
    assert len({row.user for row in centre.history_top(db=db).rows}) == 3
    assert b"alice" not in everything(db)
    with pytest.raises(StoreError, match=r"contains hashes, not names; name its key \(--key FILE\)"):
        centre.history_add(tmp_path / "logs", db=db)


def test_profile_added_with_the_key_has_no_names_either(db, tmp_path):
    centre.history_remove(user="alice", db=db)
    centre.history_anonymise(tmp_path / "key", db=db)
    centre.history_add(PROFILE, db=db, key=tmp_path / "key", user="alice")
    assert centre.history_list(db=db).profiles == 1
    assert not [word for word in (b"alice", b"cm1out", b"/lustre/scratch") if word in everything(db)]


def test_another_key_is_refused(db, tmp_path):
    centre.history_anonymise(tmp_path / "key", db=db)
    (tmp_path / "other").write_text("00" * 32)
    with pytest.raises(StoreError, match="has hashes of another key"):
        centre.history_anonymise(tmp_path / "other", db=db)
    (tmp_path / "none").write_text("my key")
    with pytest.raises(InputError, match="contains no key"):
        centre.history_anonymise(tmp_path / "none", db=db)


def test_a_history_is_anonymised_twice_to_the_same(db, tmp_path):
    centre.history_anonymise(tmp_path / "key", db=db)
    with Store(db).reading() as connection:
        before = (
            list(read.rows(connection, StoredRun)),
            list(read.rows(connection, Source)),
            list(read.contents(connection, tables.profiles)),
        )
    centre.history_anonymise(tmp_path / "key", db=db)
    with Store(db).reading() as connection:
        assert (
            list(read.rows(connection, StoredRun)),
            list(read.rows(connection, Source)),
            list(read.contents(connection, tables.profiles)),
        ) == before


def test_texts_lose_paths_and_users_and_keep_the_rest():
    names = Names(b"k", ["bob"])
    hidden = names.text("reads 5 MB/s and/or writes /home/bob/x.nc, 'bob' waits; ~/a is (/b/c).")
    assert "bob" not in hidden
    assert "x.nc" not in hidden
    assert hidden.startswith("reads 5 MB/s and/or writes /path-")
    assert names.text("bobsled") == "bobsled"
    tree = names.tree({"files": [{"path": "rel/data.nc"}], "why": {"rel/data.nc": "large"}})
    assert "data.nc" not in str(tree)
    assert tree["files"][0]["path"] in tree["why"]


def test_removed_user_leaves_no_data(db, tmp_path):
    assert b"alice" in everything(db)
    assert centre.history_remove(user="alice", db=db) == 4
    assert b"alice" not in everything(db)
    assert {row.user for row in centre.history_top(db=db).rows} == {"bobby", "carol"}
    with pytest.raises(InputError, match="no runs by alice; `vani history top --by user` lists users"):
        centre.history_remove(user="alice", db=db)


def test_one_application_of_a_user_can_be_removed(db, tmp_path):
    assert centre.history_remove(user="alice", application="solver", db=db) == 3
    assert {(row.user, row.application) for row in centre.history_top(db=db).rows if row.user == "alice"} == {
        ("alice", "v3-cm1like-16r")
    }


def test_export_and_import_preserve_a_history(db, tmp_path):
    assert centre.history_export(tmp_path / "all.sqlite", db=db) == 10
    assert (tmp_path / "all.sqlite").stat().st_mode & 0o777 == 0o600
    assert centre.history_import(tmp_path / "all.sqlite", db=tmp_path / "new.sqlite") == (10, 10)
    assert centre.history_import(tmp_path / "all.sqlite", db=tmp_path / "new.sqlite") == (0, 10)
    with Store(db).reading() as one, Store(tmp_path / "new.sqlite").reading() as other:
        for kind in tables.OF_ROWS:
            assert list(read.rows(one, kind)) == list(read.rows(other, kind))
        assert list(read.contents(one, tables.profiles)) == list(read.contents(other, tables.profiles))
    assert centre.history_top(db=tmp_path / "all.sqlite") == centre.history_top(db=db)


@pytest.mark.parametrize(
    ("table", "changed"),
    [
        ("history_runs", "processes = -2"),
        ("history_runs", "processes = 0"),
        ("history_runs", "bytes_read = 'many'"),
        ("history_runs", "runtime_s = 9e999"),
        ("history_runs", "in_io_s = -1.0"),
        ("history_runs", "submitted = 1e300"),
        ("history_runs", "user = x'00'"),
        ("history_runs", "kind = 'x'"),
        ("history_runs", "digest = 'x' || substr(digest, 2)"),
        ("history_runs", "target_times = '[[1, 2]]'"),
        ("history_sources", "size = 'many'"),
        ("history_profiles", "content = x'00'"),
    ],
)
def test_impossible_rows_are_not_imported(db, tmp_path, table, changed):
    centre.history_export(tmp_path / "x.sqlite", db=db)
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as changing, changing:
        # SQLite checks no types.
        changing.execute(f"UPDATE {table} SET {changed}")
    with pytest.raises(DocumentError, match="has a row that is not possible; export again"):
        centre.history_import(tmp_path / "x.sqlite", db=tmp_path / "new.sqlite")
    with pytest.raises(InputError):
        centre.history_list(db=tmp_path / "new.sqlite")


def test_a_profile_that_unpacks_to_very_much_is_refused(db, tmp_path):
    centre.history_export(tmp_path / "x.sqlite", db=db)
    bomb = zlib.compress(b"[" * (300 << 20), 1)
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as changing, changing:
        changing.execute("UPDATE history_profiles SET content = ?", (bomb,))
    with pytest.raises(DocumentError, match="has a row that is not possible"):
        centre.history_import(tmp_path / "x.sqlite", db=tmp_path / "new.sqlite")


def test_a_part_of_an_export_is_not_imported(db, tmp_path):
    centre.history_export(tmp_path / "all.sqlite", db=db)
    content = (tmp_path / "all.sqlite").read_bytes()
    for part, said in (
        (content[: len(content) // 2], "is a damaged database"),
        (b"notes", "is not a database, and was not changed"),
        (b"", "is not a history"),
    ):
        (tmp_path / "part.sqlite").write_bytes(part)
        with pytest.raises(StoreError, match=said):
            centre.history_import(tmp_path / "part.sqlite", db=tmp_path / "new.sqlite")


def test_creations_that_inflate_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(series, "_MAX_INFLATED", 1000)
    tree = {"size": [1] * 1000, "rank": [0] * 1000, "stripes": [0] * 1000, "path": []}
    with pytest.raises(ValueError, match="too large"):
        series.unpack_creations(zlib.compress(json.dumps(tree).encode()))


@pytest.mark.slow
def test_a_full_disk_leaves_no_empty_database(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "vani", "history", "add", PROFILE, "--database", tmp_path / "h.sqlite"],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_names_and_hashes_are_not_mixed(db, tmp_path):
    shutil.copyfile(db, tmp_path / "hidden.sqlite")
    centre.history_anonymise(tmp_path / "key", db=tmp_path / "hidden.sqlite")
    centre.history_export(tmp_path / "hidden.gz", db=tmp_path / "hidden.sqlite")
    with pytest.raises(StoreError, match="has other names than the file"):
        centre.history_import(tmp_path / "hidden.gz", db=db)


def test_copies_are_attributed_to_the_user_of_the_job_with_their_number(tmp_path):
    for number in range(3):
        write_log(tmp_path / "logs", user="zoe", number=number, uid=7)
    first = sorted((tmp_path / "logs").iterdir())[0]
    shutil.copyfile(first, first.with_name(f"a-backup-{first.name}"))
    centre.history_add(tmp_path / "logs", db=tmp_path / "h.sqlite", totals=True, workers=1, judge=0)
    assert [(row.user, row.runs) for row in centre.history_top(db=tmp_path / "h.sqlite").rows] == [("zoe", 3)]


def test_facts_are_replaced(db):
    with Store(db).writing() as connection:
        write.set_fact(connection, "x", "1")
        write.set_fact(connection, "x", "2")
        assert read.fact(connection, "x") == "2"


def test_anonymised_profile_has_no_user_and_no_command():
    tree = {"job": {"nodes": 2, "id": "9", "user": "4711", "command": "app --token abc"}, "files": []}
    hidden = Names(b"key").packed_profile(zlib.compress(json.dumps(tree).encode()))
    assert json.loads(zlib.decompress(hidden))["job"] == {"nodes": 2, "id": "9", "user": None, "command": None}
