"""A read-only web server for a history; it sends only pages and their own scripts.

By default it listens only on the loopback address (127.0.0.1), and answers only requests for a known host name, so
that another site whose name resolves to this address (DNS rebinding) gets nothing. Users on other machines need the
token.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

import click
from pydantic import Field

from vani.centre.history.runs.store import Store
from vani.centre.history.settings import HistorySettings
from vani.centre.history.site import ASSETS, MissingPageError, asset, page, page_of
from vani.cli.options import settings_options
from vani.errors import InputError, VaniError
from vani.schema.settings import Option, PathLike

_COOKIE: Final = "vani_history"
_LEAST_TOKEN: Final = 16
_MAX_QUERY: Final = 4000
_WAIT_S: Final = 30
"""Time limit of a request, so that an idle connection does not occupy a thread for ever."""
_AT_ONCE: Final = 4
"""Maximum number of pages rendered at the same time; others wait."""
_MAX_KEPT: Final = 64
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
    try:
        if not place.exists():
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        if place.stat().st_mode & 0o077:
            raise InputError("is readable by others", where=place, todo="chmod 600")
        token = place.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text"
        raise InputError(f"cannot be used ({why})", where=place, todo="name another file") from error
    if len(token) < _LEAST_TOKEN or not token.isprintable() or " " in token:
        raise InputError(
            f"contains no token of {_LEAST_TOKEN} letters or more", where=place, todo="name a new file"
        )
    return token


class ServerSettings(HistorySettings):
    """Where a web server for a history listens."""

    address: Annotated[str, Option(metavar="IP")] = Field("127.0.0.1", description="Address to listen on.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(8600, description="Port to listen on; 0: any free one.")
    names: Annotated[tuple[str, ...], Option(("--name",), "HOST")] = Field(
        (), description="Another host name by which browsers may address it."
    )
    token_file: Annotated[Path | None, Option(metavar="FILE")] = Field(
        None,
        description="File with the token that browsers need; created if missing. Required unless --address is this "
        "machine.",
    )


def history_server(
    settings: ServerSettings | None = None,
    *,
    token: str | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    **fields: Any,
) -> HistoryServer:
    """Create a web server for a history; `serve_forever` runs it.

    Parameters
    ----------
    token
        Secret that a browser must send, in place of `token_file`; required if other machines can reach the address.
    clock
        Returns the current time, for news since Monday.

    Raises
    ------
    InputError
        There is no history, the address does not exist, or a required token is missing.
    """
    settings = ServerSettings.of(settings, **fields)
    address, port = settings.address, settings.port
    token = token if settings.token_file is None else token_in(settings.token_file)
    store = Store(settings.db)
    with store.reading():
        pass
    try:
        is_local = ipaddress.ip_address(address).is_loopback
    except ValueError:
        if address != "localhost":
            raise InputError(f"{address!r} is not an address", where="--address", todo="name 127.0.0.1") from None
        address, is_local = "127.0.0.1", True
    if token is None and not is_local:
        raise InputError(
            "other machines can reach this address", where="--address", todo="name a --token-file"
        )
    try:
        return HistoryServer(store, address, port, settings.names, token, clock)
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
        self,
        store: Store,
        address: str,
        port: int,
        names: Iterable[str],
        token: str | None,
        clock: Callable[[], datetime],
    ) -> None:
        self.store, self.token, self.clock = store, token, clock
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._pages: OrderedDict[tuple[Any, ...], str] = OrderedDict()
        self._lock = threading.Lock()
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
        now = self.clock()
        state: tuple[Any, ...] = ()
        if self.store.file is not None:
            stat = self.store.file.stat()
            state = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        key = (path, tuple(sorted(query.items())), now.date(), state)
        with self._lock:
            if state and key in self._pages:
                self._pages.move_to_end(key)
                return self._pages[key]
        with self._turns:
            text = page_of(self.store, path, query, now)
        with self._lock:
            self._pages[key] = text
            while len(self._pages) > _MAX_KEPT:
                self._pages.popitem(last=False)
        return text


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
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store" if kind.startswith("text/html") else "max-age=600",
            **_HEADERS,
            **more,
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
                    HTTPStatus.UNAUTHORIZED, "Open the address that `vani history serve` printed: it has the token."
                )
        name = url.path.removeprefix("/")
        if name in ASSETS:
            return HTTPStatus.OK, ASSETS[name], asset(name), {}
        try:
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

    It only reads, and needs no network. By default only users of this machine can reach it. If other users log in to
    this machine, give a --token-file. Ctrl-C stops it.
    """
    if place is not None and settings.db is not None:
        raise click.UsageError("The history was named twice: by the argument and by --database.")
    with history_server(settings, db=place or settings.db) as server:
        click.echo(f"{server.url}{'' if server.token is None else f'?token={server.token}'}", err=True)
        server.serve_forever()
