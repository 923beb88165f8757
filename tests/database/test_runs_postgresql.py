"""Runs on a server of PostgreSQL, which the tests start in a folder of their own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.logs import write_log
from vani import centre
from vani.centre.history.runs import read, tables
from vani.centre.history.runs.store import Store
from vani.errors import StoreError

ROOT = Path(__file__).resolve().parents[2]
psycopg = pytest.importorskip(
    "psycopg", reason="the driver of PostgreSQL is not installed (vani-io[postgresql])"
)


def _program(name: str) -> str | None:
    """A program of Debian's package, which keeps them out of the path."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server that has no databases yet, but for its own."""
    make, start = _program("initdb"), _program("pg_ctl")
    if make is None or start is None:
        pytest.skip("no server of PostgreSQL is installed (Debian: postgresql)")
    with tempfile.TemporaryDirectory() as folder:
        become: dict[str, str] = {}
        if os.geteuid() == 0:
            # A server refuses to run as root.
            become = {"user": "postgres" if _exists("postgres") else "nobody"}
            shutil.chown(folder, **become)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        data = f"{folder}/data"

        def run(*words: str) -> None:
            done = subprocess.run(
                words,
                **become,
                cwd=folder,
                capture_output=True,
                check=False,
                env={"PATH": os.environ["PATH"]},
            )
            if done.returncode:
                pytest.skip(
                    f"no server of PostgreSQL can be started here: {done.stderr.decode().strip()[:200]}"
                )

        run(make, "-D", data, "-U", "me", "-A", "trust", "-N")
        options = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
        try:
            run(start, "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
            yield f"postgresql://me@127.0.0.1:{port}"
        finally:
            subprocess.run(
                [start, "-D", data, "-m", "immediate", "stop"],
                **become,
                cwd=folder,
                capture_output=True,
                check=False,
            )


def _exists(user: str) -> bool:
    return any(one.pw_name == user for one in pwd.getpwall())


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    name = f"runs_{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(40):
        write_log(tmp_path / "logs", user=f"u{number % 3}", number=number)
    (tmp_path / "logs" / "cut.darshan").write_bytes(b"3.41")
    return tmp_path / "logs"


def test_a_history_on_a_server_is_the_same_as_in_a_file(url, logs, tmp_path):
    for db in (url, tmp_path / "h.sqlite"):
        added = centre.history_add(logs, db=db, totals=True, workers=1, judge=0).added
        assert (added.runs, added.damaged) == (40, 1)
        assert centre.history_add(logs, db=db, totals=True, workers=1, judge=0).added.unchanged == 41
    for by in ("pair", "user", "app", "category", "file-system"):
        assert centre.history_top(db=url, by=by) == centre.history_top(db=tmp_path / "h.sqlite", by=by)
    assert centre.history_show("solver", "u1", db=url) == centre.history_show(
        "solver", "u1", db=tmp_path / "h.sqlite"
    )


def test_a_reader_sees_one_state_while_runs_are_added(url, logs):
    centre.history_add(logs, db=url, totals=True, workers=1, judge=0)
    write_log(logs, user="u9", number=99)
    with Store(url).reading() as connection:
        before = read.whole(connection, read.Period()).runs
        centre.history_add(logs, db=url, totals=True, workers=1, judge=0)
        assert read.whole(connection, read.Period()).runs == before == 40
    assert centre.history_list(db=url).runs == 41


@pytest.mark.slow
def test_concurrent_adds_to_a_server_store_each_run_once(url, logs):
    words = [
        sys.executable,
        "-m",
        "vani",
        "history",
        "add",
        str(logs),
        "--database",
        url,
        "--totals",
        "--judge",
        "0",
        "-q",
    ]
    both = [subprocess.Popen(words, stderr=subprocess.PIPE, cwd=ROOT, text=True) for _ in range(2)]
    assert [one.communicate(timeout=60)[1] for one in both] == ["", ""]
    assert centre.history_list(db=url).runs == 40


def test_removed_or_hidden_user_leaves_no_data(url, logs, tmp_path):
    centre.history_add(logs, db=url, totals=True, workers=1, judge=0)
    assert centre.history_remove(user="u1", db=url) == 13
    assert centre.history_anonymise(tmp_path / "key", db=url) == 27
    with Store(url).reading() as connection:
        for table in tables.metadata.tables.values():
            for row in connection.execute(table.select()):
                assert not any(
                    f"u{n}" in str(value)
                    for value in row
                    for n in range(3)
                    if isinstance(value, str) and "-" in value
                )
                assert "solver/" not in str(row)


def test_foreign_tables_are_unchanged(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE history_runs (id INTEGER)")
    with pytest.raises(StoreError, match="is a database of another program"), Store(url).writing(make=True):
        pass
    with pytest.raises(StoreError, match="is another program's database"), Store(url).reading():
        pass
