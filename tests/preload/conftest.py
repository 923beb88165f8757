"""The library built once, and a fresh folder for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from building import Built, build
from place_desk import Desk


@pytest.fixture(scope="session")
def built() -> Iterator[Built]:
    with tempfile.TemporaryDirectory(prefix="vani-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield build(Path(name))


@pytest.fixture
def desk(built: Built) -> Iterator[Desk]:
    # Not pytest's folder, which other users cannot enter; and what root may do proves little about
    # permissions.
    with tempfile.TemporaryDirectory(prefix="vani-", dir="/tmp") as name:
        folder = Path(name).resolve()
        work = folder / "work"
        work.mkdir()
        (work / "folder").mkdir()
        (work / "dangling").symlink_to("target")
        (work / "source").write_text("data\n")
        (work / "source").chmod(0o666)
        for place in (folder, work, work / "folder"):
            place.chmod(0o777)
        yield Desk(built, folder)
