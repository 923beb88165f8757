"""Commands as a user types them, in a separate folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from repository import ROOT, TRACES

from vani.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """The result of a command: exit status, and text on stdout and stderr."""

    status: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The single line on stderr, without `vani: `."""
        lines = self.err.strip("\n").splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("vani: ")
        assert "Traceback" not in lines[0]
        return lines[0].removeprefix("vani: ")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared cache, so that each trace is decoded only once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def desk(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which commands run."""
    place = tmp_path / "desk"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("VANI_CACHE", str(cache))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
    return place


@pytest.fixture
def run(desk: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run `vani` in this process."""

    def vani(*arguments: str | Path) -> Outcome:
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(leaving.value.code, int)
        return Outcome(leaving.value.code, out, err)

    return vani


@pytest.fixture
def mix() -> Path:
    """A complete real trace of four ranks."""
    return TRACES / "v3-posix-mix-4r"


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A trace of two ranks with raw files, one of which has truncated times."""
    folder = tmp_path / "v2-cut"
    shutil.copytree(TRACES / "v2-ipc-mpiio-mix-4r", folder)
    times = folder / "1.ts"
    times.write_bytes(times.read_bytes()[: times.stat().st_size // 2])
    return folder
