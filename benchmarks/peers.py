"""Vani and other projects' tools side by side: the same files, one after the other, in processes of their own.

    drishti             drishti-io: Recorder 2.5.0 as released, and Darshan logs; prints recommendations
    dfanalyzer          dftracer-analyzer: Parquet that its converter (or WisIO's) made of Recorder traces
    recorder2parquet    the converter: of dftracer-analyzer or of Recorder itself; each reads one version of Recorder
    recorder2text       of Recorder itself; the same

Nobody reads everything, so the same calls are written in several formats: three layouts of Recorder, and Parquet.
Each tool gets each of the files that its documentation says it reads, in a copy of its own (converters write into the
trace). What crashes is noted as `crashed`, with its last line; what is not installed is skipped, with a note.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.parquet_twin import write_twin
from benchmarks.processes import Run, run
from benchmarks.rates import VANI
from tests.traces.trace_generator import GeneratedLayout, Workload, generate_trace
from vani.api import convert
from vani.engine.run import workers_here
from vani.errors import InputError, one_line
from vani.readers.open import open_trace
from vani.store.read import open_store

__all__ = ["PEERS", "Peer", "peers"]

_LAYOUTS: tuple[GeneratedLayout, ...] = ("2.5p", "2.5g", "3.0")


@dataclass(frozen=True)
class Peer:
    """A tool: what it is called, where it comes from, which kinds of input it reads."""

    name: str
    programs: tuple[str, ...]
    """Names of its program, the first that is found is taken."""
    package: str
    """Python package that brings it; none if it is built from source."""
    reads: tuple[str, ...]
    """Of `recorder`, `darshan`, `parquet`."""

    def command(self, program: Path, given: Path, folder: Path) -> list[str | Path]:
        """Program and arguments for one input; what it writes elsewhere goes to `folder`."""
        if self.name != "dfanalyzer":
            return [program, given]
        return [
            program,
            "analyzer=recorder",
            "analyzer/preset=posix",
            "analyzer.checkpoint=false",
            # Hydra's own quotes: a folder's name may hold what it takes for grammar.
            f"trace_path={_quoted(given)}",
            f"cluster.n_workers={workers_here()}",
            f"cluster.local_directory={_quoted(folder / 'dask')}",
            f"hydra.run.dir={_quoted(folder / 'hydra')}",
        ]


PEERS = (
    Peer("drishti", ("drishti",), "drishti-io", ("recorder", "darshan")),
    Peer("dfanalyzer", ("dfanalyzer",), "dftracer-analyzer", ("parquet",)),
    Peer("recorder2parquet", ("recorder2parquet", "dftracer-analyzer-recorder2parquet"), "", ("recorder",)),
    Peer("recorder2text", ("recorder2text",), "", ("recorder",)),
)


@dataclass(frozen=True)
class _Input:
    """Files that were written by a tracer, or as if."""

    name: str
    kind: str
    path: Path
    calls: int | None


def peers(
    folder: Path, *, calls: int, limit_s: float, pythons: Sequence[Path] = (), given: Sequence[Path] = ()
) -> dict[str, Any]:
    """Run Vani and all peers that are found.

    Parameters
    ----------
    calls
        Size of the generated traces; no trace is generated if 0.
    limit_s
        Seconds after which a tool is ended.
    pythons
        Interpreters of environments in which peers are installed; by default this one. The PATH is searched last.
    given
        More inputs: traces, Parquet folders, Darshan logs.

    Returns
    -------
    dict
        `found` (name, version), `skipped` (name, note), `runs`: one dict per input and tool.
    """
    homes = [Path(p).parent for p in pythons or [Path(sys.executable)]]
    found: list[tuple[Peer, Path]] = []
    skipped = []
    for peer in PEERS:
        program = _program_of(peer, homes)
        if program is None:
            skipped.append({"name": peer.name, "note": _absent(peer)})
        else:
            found.append((peer, program))
    runs: list[dict[str, Any]] = []
    if found:
        for one in [*_generated(folder, calls), *map(_described, given)]:
            runs += _by_vani(one, folder, limit_s)
            for peer, program in found:
                if one.kind in peer.reads:
                    runs.append(_by_peer(peer, program, one, folder, limit_s))
    return {
        "found": [{"name": peer.name, "version": _version_of(peer, program)} for peer, program in found],
        "skipped": skipped,
        "limit_s": limit_s,
        "runs": runs,
    }


def _program_of(peer: Peer, homes: Sequence[Path]) -> Path | None:
    for name in peer.programs:
        for home in homes:
            if os.access(home / name, os.X_OK):
                return home / name
        if (on_path := shutil.which(name)) is not None:
            return Path(on_path)
    return None


def _absent(peer: Peer) -> str:
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
    ask = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    told = subprocess.run(
        [python, "-c", ask, package], capture_output=True, text=True, timeout=60, check=False
    )
    return one_line(told.stdout.strip()) if told.returncode == 0 else None


def _generated(folder: Path, calls: int) -> list[_Input]:
    """The same calls in each layout, and as Parquet.

    Reads, writes and seeks on a file per process: what every tool can take. Drishti 0.8 fails on any trace with more
    than a thousand independent MPI-IO operations, and would be seen to crash only.
    """
    if not calls:
        return []
    inputs = []
    for layout in _LAYOUTS:
        place = folder / f"peers-{layout}"
        generate_trace(
            place, Workload(calls=calls, ranks=8, files=8, pattern="strided", layout=layout, zlib_level=1)
        )
        inputs.append(_Input(f"recorder {layout}", "recorder", place, calls))
    store = folder / "peers-store"
    convert(inputs[0].path, store)
    write_twin(open_store(store), folder / "peers-parquet")
    shutil.rmtree(store)
    return [*inputs, _Input("parquet", "parquet", folder / "peers-parquet", calls)]


def _described(path: Path) -> _Input:
    """What a path holds; Vani does not read Darshan logs, so their calls are unknown."""
    if path.suffix == ".darshan":
        if not path.is_file():
            raise InputError("no such file", where=path, todo="name a Darshan log")
        return _Input(path.name, "darshan", path, None)
    reader = open_trace(path)
    kind = "recorder" if reader.tool == "recorder" else "parquet"
    return _Input(f"{path.resolve().name} ({reader.layout})", kind, path, int(reader.calls_per_rank().sum()))


def _by_vani(one: _Input, folder: Path, limit_s: float) -> list[dict[str, Any]]:
    if one.kind == "darshan":
        return []
    store, profile = folder / "peers-vani", folder / "peers-profile.yaml"
    commands = {
        "vani convert": ["convert", one.path, store / "converted", "-q"],
        "vani profile": ["profile", one.path, "--store", store, "-o", profile, "-q"],
        "vani advise": ["advise", profile, "-o", folder / "peers-advice.yaml"],
    }
    rows = [
        _row(one, name, run([*VANI, *arguments], limit_s=limit_s)) for name, arguments in commands.items()
    ]
    # What judging costs does not depend on the number of calls.
    rows[-1]["calls_per_s"] = None
    shutil.rmtree(store, ignore_errors=True)
    return rows


def _by_peer(peer: Peer, program: Path, one: _Input, folder: Path, limit_s: float) -> dict[str, Any]:
    place = folder / "peers-copy"
    place.mkdir()
    copy = place / one.path.resolve().name
    try:
        if one.path.is_dir():
            shutil.copytree(one.path, copy)
            for part in (copy, *copy.rglob("*")):
                part.chmod(0o755 if part.is_dir() else 0o644)
        else:
            shutil.copyfile(one.path, copy)
        environment = {
            "HYDRA_FULL_ERROR": "1",
            "USER": os.environ.get("USER", "user"),
            "PYTHONWARNINGS": "ignore",
            # Programs that clear the screen ask for the terminal's kind.
            "TERM": os.environ.get("TERM", "dumb"),
            "PYTHONPATH": "",
        }
        done = run(peer.command(program, copy, place), limit_s=limit_s, environment=environment, folder=place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return _row(one, peer.name, done)


def _row(one: _Input, tool: str, done: Run) -> dict[str, Any]:
    row = asdict(done)
    for left_out in ("samples", "began", "tree_peak_bytes", "last_line"):
        del row[left_out]
    row["peak_bytes"] = done.memory_bytes
    rate = one.calls / done.seconds if one.calls is not None and done.outcome == "done" else None
    said = done.last_line if done.outcome != "done" else ""
    return {"input": one.name, "calls": one.calls, "tool": tool, **row, "calls_per_s": rate, "said": said}


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
