"""Servers of databases that a test starts for itself: in a temporary folder, behind a socket, as nobody where it is root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_USER = "nobody"
_START_S = 30


@contextmanager
def postgresql() -> Iterator[str]:
    """A fresh PostgreSQL; gives the URL of a database of it."""
    programs = _folder_of("initdb", *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    if programs is None:
        pytest.skip("PostgreSQL is not installed (initdb)")
    with _folder() as place:
        data = place / "data"
        _run(
            [
                programs / "initdb",
                "-D",
                data,
                "-U",
                "vani",
                "-A",
                "trust",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C",
            ]
        )
        server = [programs / "postgres", "-D", data, "-k", place, "-c", "listen_addresses=", "-F"]
        with _running(server, place):
            _wait([programs / "createdb", "-h", place, "-U", "vani", "vani"])
            yield f"postgresql://vani@/vani?host={place}"


def _folder_of(program: str, *more: Path) -> Path | None:
    found = shutil.which(program)
    folders = [*more, *([Path(found).parent] if found else [])]
    return next((folder for folder in folders if (folder / program).exists()), None)


@contextmanager
def _folder() -> Iterator[Path]:
    # Not pytest's, whose path is too long for a socket and closed to other users.
    with tempfile.TemporaryDirectory(prefix="vani-", dir="/tmp") as name:
        if os.geteuid() == 0:
            shutil.chown(name, _USER)
        yield Path(name)


def _as_user() -> dict[str, object]:
    return {"user": _USER, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


def _run(command: list[object]) -> None:
    done = subprocess.run(
        [str(one) for one in command],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **_as_user(),
    )
    if done.returncode:
        pytest.skip(f"{Path(str(command[0])).name} fails here: {(done.stderr or done.stdout).strip()[-300:]}")


@contextmanager
def _running(command: list[object], place: Path) -> Iterator[None]:
    with (place / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(one) for one in command], cwd="/", stdout=log, stderr=log, **_as_user()
        )
    try:
        yield
    finally:
        server.terminate()
        try:
            server.wait(_START_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(command: list[object]) -> None:
    """Repeat until the server answers."""
    end = time.monotonic() + _START_S
    while True:
        done = subprocess.run(
            [str(one) for one in command],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_START_S,
            check=False,
        )
        if done.returncode == 0:
            return
        if time.monotonic() > end:
            pytest.skip(f"the server does not answer: {done.stderr.strip()[-300:]}")
        time.sleep(0.1)
