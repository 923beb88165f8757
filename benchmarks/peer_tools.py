"""Other projects' tools that run beside Vani: where each comes from, what it reads, how it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vani.engine.run import workers_here
from vani.errors import one_line

__all__ = ["PEERS", "Found", "Peer", "absent", "find"]

_CONVERT = ("vani convert",)
_JUDGE = ("vani profile", "vani advise")
_REPORT = ("vani profile", "vani report")

_VERSION = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"


@dataclass(frozen=True)
class Peer:
    """A tool: what it is called, where it comes from, which kinds of input it reads."""

    name: str
    programs: tuple[str, ...]
    """Names of its program, the first that is found is taken; none if it is a module of `package`."""
    package: str
    """Python package that brings it; none if it is built from source."""
    reads: tuple[str, ...]
    """Of `recorder`, `darshan`, `parquet`."""
    beside: tuple[str, ...]
    """Commands of Vani that do together what it does."""
    arguments: tuple[str, ...] = ("{given}",)
    """What follows its program; names in braces are those that `words` fills in."""

    def words(self, given: Path, folder: Path) -> list[str]:
        """Arguments for one input; what it writes elsewhere goes to `folder`."""
        filled = {
            "given": str(given),
            "folder": str(folder),
            "quoted_given": _quoted(given),
            "quoted_folder": _quoted(folder),
            "workers": str(workers_here()),
        }
        return [argument.format(**filled) for argument in self.arguments]


# Hydra's own quotes: a folder's name may hold what it takes for grammar.
_HYDRA = (
    "analyzer.checkpoint=false",
    "trace_path={quoted_given}",
    "cluster.n_workers={workers}",
    "cluster.local_directory={quoted_folder}",
    "hydra.run.dir={quoted_folder}",
)

PEERS = (
    Peer("drishti", ("drishti",), "drishti-io", ("recorder", "darshan"), _JUDGE),
    Peer(
        "dfanalyzer",
        ("dfanalyzer",),
        "dftracer-analyzer",
        ("parquet",),
        _JUDGE,
        ("analyzer=recorder", "analyzer/preset=posix", *_HYDRA),
    ),
    # It wants one of percentile and threshold; this is the example of its own page.
    Peer(
        "wisio", ("wisio",), "wisio", ("parquet",), _JUDGE, ("+analyzer=recorder", "percentile=0.99", *_HYDRA)
    ),
    Peer(
        "recorder2parquet",
        ("recorder2parquet", "dftracer-analyzer-recorder2parquet"),
        "",
        ("recorder",),
        _CONVERT,
    ),
    Peer("wisio-recorder2parquet", ("wisio-recorder2parquet",), "wisio", ("recorder",), _CONVERT),
    Peer(
        "recorder2csv",
        ("recorder2csv",),
        "recorder-utils",
        ("recorder",),
        _CONVERT,
        ("{given}", "{folder}/out.csv"),
    ),
    Peer("recorder2text", ("recorder2text",), "", ("recorder",), _CONVERT),
    Peer("pydarshan", (), "darshan", ("darshan",), _REPORT, ("-m", "darshan", "summary", "{given}")),
)


@dataclass(frozen=True)
class Found:
    """A tool that is there."""

    peer: Peer
    program: Path
    version: str | None

    def command(self, given: Path, folder: Path) -> list[str | Path]:
        return [self.program, *self.peer.words(given, folder)]


def find(peer: Peer, homes: Sequence[Path]) -> Found | None:
    """Look for a tool in the folders of interpreters, and last on the PATH."""
    for name in peer.programs:
        for program in (*(home / name for home in homes), shutil.which(name)):
            if program is not None and os.access(program, os.X_OK):
                return Found(peer, Path(program), _version_of(peer, Path(program)))
    if not peer.programs:
        for home in homes:
            version = _version_of(peer, home / "python")
            if version is not None:
                return Found(peer, home / "python", version)
    return None


def absent(peer: Peer) -> str:
    """Why a tool is skipped, and how to get it."""
    if peer.package:
        return (
            f"{peer.package} is not installed: pip install 'vani-io[peers]' in an environment of its own, "
            "and name its interpreter with --peer-python"
        )
    return f"no {' or '.join(peer.programs)} on the PATH"


def _version_of(peer: Peer, program: Path) -> str | None:
    """Version of the package that brings a program, asked of the interpreter beside it; None if there is none."""
    package = peer.package or ("dftracer-analyzer" if program.name.startswith("dftracer") else "")
    python = program.parent / "python"
    if not package or not python.exists():
        return None
    told = subprocess.run(
        [python, "-c", _VERSION, package], capture_output=True, text=True, timeout=60, check=False
    )
    return one_line(told.stdout.strip()) if told.returncode == 0 else None


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
