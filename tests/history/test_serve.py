"""Pages about a history over HTTP: their content, escaping, and access control."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.history.test_story import NOVEMBER, a_run
from vani import centre
from vani.centre.history.rows import Source, Verdict
from vani.centre.history.runs import write
from vani.centre.history.runs.store import Store
from vani.centre.history.site import last_monday
from vani.errors import InputError

HOSTILE = """</script><script>alert("x")</script> 'q' & "d"\n<img src=x onerror=alert(1)>"""
SECRET = "s" * 32
DAY = 86400
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("serve") / "h.sqlite"
    runs = [a_run(n) for n in range(60)]
    # Since Monday 2026-11-23, one is new, and one waits longer than before.
    runs += [a_run(100 + n, application="fresh", user="u9", submitted=NOVEMBER + (23 + n) * DAY) for n in range(3)]
    runs += [
        a_run(200 + n, application="drift", waiting_s=40.0 if n < 22 else 90.0, submitted=NOVEMBER + n * DAY + n)
        for n in range(27)
    ]
    runs += [a_run(300, application=HOSTILE, user=HOSTILE, mount=HOSTILE, waiting_s=1e6, submitted=NOVEMBER)]
    with Store(place).writing(make=True) as connection:
        write.add_runs(connection, runs)
        write.put(connection, [Source(f"/logs/{HOSTILE}", 1, 1, runs[-1].digest, None)])
        verdict = Verdict(runs[-1].digest, "m", 1.0, 2.0, 3.0, "LUS002", HOSTILE, HOSTILE, (HOSTILE,), False)
        write.put(connection, [verdict])
    return place


@contextmanager
def served(db: Path, **options) -> Iterator[centre.HistoryServer]:
    options = {"open": "token" not in options} | options
    with centre.history_server(db=db, port=0, clock=lambda: NOW, **options) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server(db: Path) -> Iterator[centre.HistoryServer]:
    with served(db) as running:
        yield running


def ask(server: centre.HistoryServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def address(path: str, **values: str) -> str:
    return f"{path}?{urlencode(values)}"


def links(text: str) -> set[str]:
    return {unescape(link) for link in re.findall(r' (?:href|src)="(/[^"]*)"', text)}


def test_every_linked_page_exists(server):
    seen, waiting = set(), ["/", "/ranking?by=category"]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        status, headers, text = ask(server, path)
        assert status == 200, path
        if headers["Content-Type"].startswith("text/html"):
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            waiting += sorted(links(text) - seen - set(waiting))
        assert len(seen) < 120
    assert {path.partition("?")[0] for path in seen} >= {"/", "/ranking", "/application", "/run", "/targets", "/letter"}


def test_names_from_logs_are_text_on_every_page(server, db):
    run = f"{300:064x}"
    for path in (
        "/", "/ranking", address("/application", name=HOSTILE), address("/application", name=HOSTILE, user=HOSTILE),
        address("/letter", name=HOSTILE, user=HOSTILE), address("/run", id=run),
        address("/ranking", application=HOSTILE, by=HOSTILE), address("/nothing", a=HOSTILE),
    ):  # fmt: skip
        _, _, text = ask(server, path)
        assert "<img" not in text, path
        assert "<script>alert" not in text.lower(), path
        assert text.count("<script") == len(re.findall(r'<script (?:src="/[a-z-]+\.js"|type="application/json" id="data")>', text))
    assert "&lt;img src=x onerror=alert(1)&gt;" in ask(server, address("/run", id=run))[2]


def test_news_since_monday_is_shown(server):
    text = ask(server, "/")[2]
    news = text[text.index('id="new"') : text.index("Largest losses")]
    assert "New since Monday 2026-11-23" in news
    assert "fresh" in news
    assert "drift" in news
    assert ">app<" not in news


@pytest.mark.parametrize(
    ("today", "monday"),
    [((2026, 11, 27), (2026, 11, 23)), ((2026, 11, 23), (2026, 11, 16)), ((2026, 11, 24), (2026, 11, 23)), ((2026, 11, 22), (2026, 11, 16))],
)  # fmt: skip
def test_last_monday_on_a_monday_is_a_week_ago(today, monday):
    assert last_monday(datetime(*today, 9, tzinfo=UTC)) == datetime(*monday, tzinfo=UTC).timestamp()


def test_filters_choose_rows_and_days(server):
    assert "fresh" not in ask(server, address("/ranking", application="dri"))[2]
    assert "drift" in ask(server, address("/ranking", application="DRI"))[2]
    one_day = ask(server, address("/ranking", since="2026-11-24", until="2026-11-24"))[2]
    assert "fresh" in one_day
    assert "No runs match." in ask(server, address("/ranking", user="nobody"))[2]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/h.sqlite", 404), ("/../h.sqlite", 404), ("/%2e%2e/etc/passwd", 404), ("//etc/passwd", 404), ("/site.css/../site.js", 404),
        ("/run?id=../../etc/passwd", 404), ("/application?name=none", 404), ("/letter?name=none", 404),
        ("/?since=yesterday", 400), ("/ranking?by=digest", 400), ("/ranking?limit=-1", 400), ("/?" + "a" * 5000, 414),
    ],
)  # fmt: skip
def test_unknown_page_is_refused_with_a_message(server, path, status):
    found, _, text = ask(server, path)
    assert found == status
    assert "Traceback" not in text
    assert "<h1>" in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_only_reads(server, db, method):
    before = db.read_bytes()
    assert ask(server, "/", method)[0] == 501
    assert ask(server, "/", "HEAD")[2] == ""
    with Store(db).reading() as connection, pytest.raises(Exception, match="readonly"):
        connection.exec_driver_sql("DELETE FROM history_runs")
    assert db.read_bytes() == before


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8600", "127.0.0.1.evil.example", "", "127.0.0.1@evil.example"])
def test_request_for_a_foreign_host_gets_no_page(server, host):
    status, _, text = ask(server, "/ranking", Host=host)
    assert status == 421
    assert "heat" not in text and "app" not in text.replace("application", "")


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:9", "[::1]:8600"])
def test_names_of_this_machine_are_answered(server, host):
    assert ask(server, "/site.css", Host=host)[0] == 200


def test_requests_with_two_or_no_hosts_are_refused(server):
    for lines in ("", "Host: localhost\r\nHost: evil.example\r\n"):
        with socket.create_connection(server.server_address[:2], timeout=20) as client:
            client.sendall(f"GET / HTTP/1.0\r\n{lines}\r\n".encode())
            assert b" 421 " in client.recv(100)


def test_requests_without_the_token_are_refused(db):
    with served(db, token=SECRET) as server:
        for path in ("/", "/site.js", "/?token=wrong", "/?token="):
            status, _, text = ask(server, path)
            assert (status, "fresh" in text) == (401, False)
        assert ask(server, "/", Cookie="vani_history=wrong")[0] == 401
        status, headers, _ = ask(server, f"/?token={SECRET}")
        assert (status, headers["Location"]) == (303, "/")
        assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
        assert ask(server, "/", Cookie=headers["Set-Cookie"].partition(";")[0])[0] == 200
        assert ask(server, "/", Authorization=f"Bearer {SECRET}")[0] == 200


def test_a_server_asks_for_a_new_token_unless_it_is_open(db, tmp_path):
    with served(db, open=False) as first, served(db, open=False) as second:
        assert len(first.token) > 32
        assert first.token != second.token
        assert ask(first, "/")[0] == ask(first, "/metrics")[0] == 401
        status, headers, text = ask(first, "/metrics", Authorization=f"Bearer {first.token}")
        assert (status, headers["Cache-Control"]) == (200, "no-store")
        assert text.endswith("# EOF\n")
    with served(db, open=True) as server:
        assert (server.token, ask(server, "/")[0]) == (None, 200)
    token = centre.token_in(tmp_path / "token")
    assert len(token) > 32
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert centre.token_in(tmp_path / "token") == token
    with centre.history_server(db=db, address="0.0.0.0", port=0, token=token):
        pass
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InputError, match="is readable by others; chmod 600"):
        centre.token_in(tmp_path / "token")
    (tmp_path / "short").write_text("x")
    (tmp_path / "short").chmod(0o600)
    with pytest.raises(InputError, match="contains no token"):
        centre.token_in(tmp_path / "short")


def test_a_page_changes_with_the_history(db, tmp_path):
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(db.read_bytes())
    with served(copy) as server:
        before = ask(server, "/ranking")[2]
        assert ask(server, "/ranking")[2] == before
        with Store(copy).writing() as connection:
            write.forget_user(connection, "u9")
        assert "fresh" not in ask(server, "/ranking")[2]


def test_missing_history_cannot_be_served(tmp_path):
    with pytest.raises(InputError, match="is not a history"):
        centre.history_server(db=tmp_path / "none.sqlite", port=0)
    assert not (tmp_path / "none.sqlite").exists()
