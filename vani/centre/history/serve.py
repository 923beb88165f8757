"""A read-only web server for a history; it sends only pages and their own scripts.

By default it listens only on the loopback address (127.0.0.1), and answers only requests with the token for a known
host name, so that other users of this machine, and another site whose name resolves to this address (DNS rebinding),
get nothing.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

import click
from pydantic import Field

from vani.centre.history.maintenance import secret_in
from vani.centre.history.ranking import ranking_in
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import Ranking, TargetRow
from vani.centre.history.settings import HistorySettings
from vani.centre.history.site import ASSETS, MissingPageError, asset, page, page_of
from vani.centre.history.targets import ranked_targets
from vani.cli.options import settings_options
from vani.errors import InputError, VaniError, one_line
from vani.schema.settings import Option, PathLike

Sample = tuple[dict[str, str], float]


def metrics(whole: Ranking, recent: Ranking, targets: Sequence[TargetRow]) -> str:
    """Write metrics.

    Parameters
    ----------
    whole
        Ranking of all time, of which the sums appear.
    recent
        Ranking of recent days, of which the rows are written, by application and user.
    targets
        Storage targets on the same days.
    """
    of = whole.whole
    rows = [({"application": row.application or "", "user": row.user or ""}, row) for row in recent.rows]
    places = [({"mount": row.mount, "target": str(row.target)}, row) for row in targets]
    savable = [
        (labels, row.saved.expected_s) for labels, row in rows
        if row.saved is not None and row.saved.expected_s is not None and row.saved.state == "saves"
    ]
    families: tuple[tuple[str, str, str, list[Sample]], ...] = (
        ("runs", "", "Runs of all time.", [({}, of.runs)]),
        ("core_seconds", "seconds", "Processes times run time of all runs.", [({}, of.core_s)]),
        ("io_seconds", "seconds", "Time of all processes in I/O calls.", [({}, of.in_io_s)]),
        ("waiting_seconds", "seconds", "Processes times the slowest one's time in I/O calls.", [({}, of.waiting_s)]),
        ("damaged_files", "", "Files that could not be read.", [({}, of.damaged)]),
        ("last_run_timestamp_seconds", "seconds", "Start of the last run.", [({}, of.last)] if of.last else []),
        ("recent_runs", "", "Runs of the last days.", [(labels, row.runs) for labels, row in rows]),
        ("recent_waiting_seconds", "seconds", "Waiting in the last days.", [(by, row.waiting_s) for by, row in rows]),
        ("recent_savable_seconds", "seconds", "Part of the waiting that advice is expected to save.", savable),
        (
            "target_lost_seconds", "seconds", "Time that files on a storage target lost in the last days.",
            [(labels, row.lost_s) for labels, row in places],
        ),
        ("target_slow", "", "1 where a storage target is slow.", [(by, float(row.slow)) for by, row in places]),
    )  # fmt: skip
    lines = [line for name, unit, text, some in families for line in _family(f"vani_history_{name}", unit, text, some)]
    return "\n".join([*lines, "# EOF", ""])


def _family(name: str, unit: str, text: str, samples: Sequence[Sample]) -> list[str]:
    if not samples:
        return []
    lines = [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {text}"]
    return [*lines, *(f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples)]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return repr(float(value)) if value % 1 else str(int(value))


_DAYS: Final = 30
"""Length of the recent period before the last run."""
_MAX_ROWS: Final = 20


def history_metrics(db: PathLike | Store | None = None) -> str:
    """Format figures of a history as OpenMetrics text: sums of all runs, pairs and storage targets of 30 days.

    Raises
    ------
    InputError
        There is no history.
    """
    with (db if isinstance(db, Store) else Store(db)).reading() as connection:
        last = read.whole(connection, read.ALWAYS).last or 0.0
        period = read.Period((last // read.DAY_S + 1 - _DAYS) * read.DAY_S, None)
        recent = ranking_in(connection, period, limit=_MAX_ROWS)
        always = ranking_in(connection, read.ALWAYS, limit=1)
        targets = ranked_targets(read.target_times(connection, period))
    return metrics(always, recent, targets[:_MAX_ROWS])


_COOKIE: Final = "vani_history"
_LEAST_TOKEN: Final = 16
_MAX_QUERY: Final = 4000
_WAIT_S: Final = 30
"""Time limit of a request, so that an idle connection does not occupy a thread for ever."""
_AT_ONCE: Final = 4
"""Maximum number of pages rendered at the same time; others wait."""
_MAX_KEPT: Final = 64
_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def token_in(path: PathLike) -> str:
    """Read the token from a file; a missing file is created, readable only by its owner.

    Raises
    ------
    InputError
        The file cannot be read or written, contains no token, or is readable by others.
    """
    place = Path(path)
    token = secret_in(place, make=secrets.token_urlsafe(32))
    if place.stat().st_mode & 0o077:
        raise InputError("is readable by others", where=place, todo="chmod 600")
    if len(token) < _LEAST_TOKEN or not token.isprintable() or " " in token:
        raise InputError(f"contains no token of {_LEAST_TOKEN} letters or more", where=place, todo="name a new file")
    return token


class ServerSettings(HistorySettings):
    """Where a web server for a history listens."""

    address: Annotated[str, Option(metavar="IP")] = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8600, ge=0, le=65535, description="Port to listen on; 0: any free one.")
    names: Annotated[tuple[str, ...], Option(("--name",), "HOST")] = Field(
        (), description="Another host name by which browsers may address it."
    )
    token_file: Annotated[Path | None, Option(metavar="FILE")] = Field(
        None, description="File with the token that browsers need; created if missing. By default a new token."
    )
    open: bool = Field(False, description="Need no token: everyone who reaches the address may read.")


def history_server(
    settings: ServerSettings | None = None, *, token: str | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC), **fields: Any,
) -> HistoryServer:
    """Create a web server for a history; `serve_forever` runs it.

    Parameters
    ----------
    token
        Secret that a browser must send, in place of `token_file`; None: the one in that file, or a new one.
    clock
        Returns the current time, for news since Monday.

    Raises
    ------
    InputError
        There is no history, or the address does not exist.
    """
    settings = ServerSettings.of(settings, **fields)
    address, port = settings.address.replace("localhost", "127.0.0.1"), settings.port
    if settings.open:
        token = None
    elif token is None:
        token = secrets.token_urlsafe(32) if settings.token_file is None else token_in(settings.token_file)
    store = Store(settings.db)
    with store.reading():
        pass
    try:
        ipaddress.ip_address(address)
        return HistoryServer(store, address, port, settings.names, token, clock)
    except ValueError:
        raise InputError(f"{address!r} is not an address", where="--address", todo="name 127.0.0.1") from None
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be used ({why})", where=f"{address}:{port}", todo="name another --port") from error


class HistoryServer(ThreadingHTTPServer):
    """A web server for one history, with a thread per request.

    Attributes
    ----------
    url
        Address for a browser on this machine.
    """

    daemon_threads = True

    def __init__(
        self, store: Store, address: str, port: int, names: Iterable[str], token: str | None,
        clock: Callable[[], datetime],
    ) -> None:
        self.store, self.token, self.clock = store, token, clock
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._kept = lru_cache(_MAX_KEPT)(self._rendered)
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)
        shown = f"[{address}]" if ":" in address else address
        self.url = f"http://{shown}:{self.server_address[1]}/"
        self.hosts = {name.lower() for name in ("127.0.0.1", "localhost", "[::1]", shown, *names)}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnected."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def page(self, path: str, query: dict[str, str]) -> str:
        """A page, rendered again if the history has changed."""
        of = path, tuple(sorted(query.items())), self.clock().date()
        if self.store.file is None:
            return self._rendered(*of, None)
        stat = self.store.file.stat()
        return self._kept(*of, (stat.st_ino, stat.st_mtime_ns, stat.st_size))

    def _rendered(self, path: str, query: tuple[tuple[str, str], ...], today: date, state: object) -> str:
        del state
        with self._turns:
            return page_of(self.store, path, dict(query), today)


class _Handler(BaseHTTPRequestHandler):
    server: HistoryServer
    server_version = "vani"
    sys_version = ""
    timeout = _WAIT_S

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log, because addresses contain user names."""

    def _answer(self, *, with_body: bool) -> None:
        status, kind, body, more = self._response()
        self.send_response(status)
        for name, value in {
            "Content-Type": kind, "Content-Length": str(len(body)),
            "Cache-Control": "max-age=600" if kind in ASSETS.values() else "no-store", **_HEADERS, **more,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _response(self) -> tuple[HTTPStatus, str, bytes, dict[str, str]]:
        if not self._is_for_us():
            return self._message(HTTPStatus.MISDIRECTED_REQUEST, "This server does not have that name.")
        url = urlsplit(self.path)
        if len(url.query) > _MAX_QUERY:
            return self._message(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long.")
        query = dict(parse_qsl(url.query))
        token = self.server.token
        if token is not None:
            if hmac.compare_digest(query.get("token", "").encode(), token.encode()):
                # Drop the token from the address, where it could be copied and stored.
                cookie = f"{_COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
                return HTTPStatus.SEE_OTHER, "text/plain", b"", {"Location": "/", "Set-Cookie": cookie}
            if not self._has_token(token):
                return self._message(
                    HTTPStatus.UNAUTHORIZED, "Open the address that the server printed when it began: it has the token."
                )
        name = url.path.removeprefix("/")
        if name in ASSETS:
            return HTTPStatus.OK, ASSETS[name], asset(name), {}
        try:
            if name == "metrics":
                return HTTPStatus.OK, _METRICS, history_metrics(self.server.store).encode(), {}
            return HTTPStatus.OK, "text/html; charset=utf-8", self.server.page(url.path, query).encode(), {}
        except MissingPageError as error:
            return self._message(HTTPStatus.NOT_FOUND, error.what)
        except InputError as error:
            return self._message(HTTPStatus.BAD_REQUEST, f"{error.what}{f'; {error.todo}' if error.todo else ''}")
        except (VaniError, OSError):
            return self._message(HTTPStatus.INTERNAL_SERVER_ERROR, "The history cannot be read.")

    def _is_for_us(self) -> bool:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1:
            return False
        name = hosts[0].lower()
        host, colon, port = name.rpartition(":")
        return (host if colon and port.isdecimal() else name) in self.server.hosts

    def _has_token(self, token: str) -> bool:
        sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(_COOKIE)
        except CookieError:
            cookie = None
        known = [sent.encode(), b"" if cookie is None else cookie.value.encode()]
        return any(hmac.compare_digest(value, token.encode()) for value in known)

    def _message(self, status: HTTPStatus, text: str) -> tuple[HTTPStatus, str, bytes, dict[str, str]]:
        shown = page("message", here="", place="", since=None, until=None, title=status.phrase, message=text)
        return status, "text/html; charset=utf-8", shown.encode(), {}


@click.command("serve")
@click.argument("place", required=False, metavar="[FILE|URL]")
@settings_options(ServerSettings)
def command(place: str | None, settings: ServerSettings) -> None:
    """Serve pages about a history for a browser: the month, the ranking, applications, runs and storage targets.

    It only reads, and needs no network. Browsers need the printed address, which has a token, and then keep it in a
    cookie. `/metrics` has figures for Prometheus. Ctrl-C stops it.
    """
    if place is not None and settings.db is not None:
        raise click.UsageError("The history was named twice: by the argument and by --database.")
    with history_server(settings, db=place or settings.db) as server:
        click.echo(f"{server.url}{'' if server.token is None else f'?token={server.token}'}", err=True)
        server.serve_forever()
