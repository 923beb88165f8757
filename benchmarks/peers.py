"""Vani and other projects' tools side by side: the same files, one after the other, in processes of their own.

No other tool reads all formats, so the same calls are written in three layouts of Recorder; Parquet and Darshan
logs are inputs. Each tool gets its own copy of every input that it can read, because converters write into the
trace. A tool that fails is `crashed`, with its last line; one that is not installed is skipped. Start-up is
measured on 1,000 calls.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from benchmarks.costs import VANI
from benchmarks.processes import CommandRun, run
from tests.traces.trace_generator import GeneratedLayout, Workload, generate_trace
from vani.engine.executor import available_processors
from vani.errors import InputError
from vani.readers.open import open_trace

_SMALL = 1000
_LEAST_WORK_S = 0.05
"""Differences from start-up time below this are noise."""


@dataclass(frozen=True)
class Peer:
    """A tool: its programs, its origin, and the formats it reads."""

    name: str
    programs: tuple[str, ...]
    """Names of its program; the first that exists is run."""
    package: str
    """Python package that contains it; empty if it is built from source."""
    reads: tuple[str, ...]
    """Any of `recorder`, `darshan`, `parquet`."""
    beside: tuple[str, ...]
    """Commands of Vani that together do the same work."""
    arguments: tuple[str, ...] = ("{input}",)


_JUDGE = ("profile", "advise")
# Hydra's own quotes: a folder's name may contain characters of its grammar.
_HYDRA = (
    "analyzer.checkpoint=false", "trace_path='{quoted}'", f"cluster.n_workers={available_processors()}",
    "cluster.local_directory='{folder}'", "hydra.run.dir='{folder}'",
)  # fmt: skip
_DFANALYZER = ("analyzer=recorder", "analyzer/preset=posix", *_HYDRA)
# It requires exactly one of percentile and threshold; this is the example from its page.
_WISIO = ("+analyzer=recorder", "percentile=0.99", *_HYDRA)

PEERS = (
    Peer("drishti", ("drishti",), "drishti-io", ("recorder", "darshan"), _JUDGE),
    Peer("dfanalyzer", ("dfanalyzer",), "dftracer-analyzer", ("parquet",), _JUDGE, _DFANALYZER),
    Peer("wisio", ("wisio",), "wisio", ("parquet",), _JUDGE, _WISIO),
    Peer(
        "recorder2parquet", ("recorder2parquet", "dftracer-analyzer-recorder2parquet"), "dftracer-analyzer",
        ("recorder",), ("convert",),
    ),
    Peer("wisio-recorder2parquet", ("wisio-recorder2parquet",), "wisio", ("recorder",), ("convert",)),
    Peer(
        "recorder2csv", ("recorder2csv",), "recorder-utils", ("recorder",), ("convert",),
        ("{input}", "{folder}/out.csv"),
    ),
    Peer("recorder2text", ("recorder2text",), "", ("recorder",), ("convert",)),
    Peer(
        "pydarshan", ("python",), "darshan", ("darshan",), ("profile", "report"),
        ("-m", "darshan", "summary", "{input}"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class _Input:
    name: str
    kind: str
    path: Path
    calls: int | None = None
    layout: GeneratedLayout | None = None
    """Layout of a generated trace."""


def peers(
    folder: Path,
    *,
    calls: int,
    limit_s: float,
    rounds: int = 1,
    pythons: Sequence[Path] = (),
    inputs: Sequence[Path] = (),
) -> dict[str, Any]:
    """CommandRun Vani and all installed peers.

    Parameters
    ----------
    calls
        Size of the generated traces; none is generated if 0.
    rounds
        Number of runs of a tool on an input; the one with least processor time counts.
    pythons
        Interpreters of environments with peers. The PATH is searched last.
    inputs
        More inputs: traces, Parquet folders, Darshan logs.

    Returns
    -------
    dict
        `skipped`: names; `runs`: per input and tool, `outcome`, `seconds`, `cpu_s`, `peak_bytes`, `start_s` (null
        if unknown), `last_line`, and ratios to Vani's commands: `cpu_x`, `work_x` (without start-up), `seconds_x`
        and `peak_x`, null if one of them failed.
    """
    programs = {peer.name: _program(peer, pythons) for peer in PEERS}
    every = [*_generated(folder / "large", calls), *map(_given, inputs)]
    small = {one.layout: one for one in _generated(folder / "small", _SMALL if calls else 0)}
    rows: list[dict[str, Any]] = []
    for one in every:
        starts = _runs_on(small[one.layout], folder, programs, limit_s, rounds) if one.layout else {}
        done = _runs_on(one, folder, programs, limit_s, rounds)
        for tool, took in done.items():
            start = starts[tool].cpu_s if tool in starts and starts[tool].outcome == "done" else None
            rows.append({
                "input": one.name, "calls": one.calls, "tool": tool, "outcome": took.outcome, "seconds": took.seconds,
                "cpu_s": took.cpu_s, "peak_bytes": took.memory_bytes, "start_s": start,
                "last_line": took.last_line if took.outcome != "done" else "",
            })  # fmt: skip
        _add_ratios(rows[-len(done) :])
    return {"skipped": [name for name, program in programs.items() if program is None], "runs": rows}


def _program(peer: Peer, pythons: Sequence[Path]) -> Path | None:
    for name in peer.programs:
        # A `python` on the PATH does not have the tool.
        on_path = shutil.which(name) if name != "python" else None
        for program in (*(Path(python).parent / name for python in pythons), on_path):
            if program is not None and os.access(program, os.X_OK):
                return Path(program)
    return None


def _generated(folder: Path, calls: int) -> list[_Input]:
    """The same calls in each layout: reads, writes and seeks on one file per process, which every tool can process.

    Drishti 0.8 fails on any trace with more than a thousand independent MPI-IO operations, so there are none.
    """
    inputs = []
    for layout in get_args(GeneratedLayout) if calls else ():
        place = folder / layout
        workload = Workload(calls=calls, ranks=8, files=8, pattern="strided", layout=layout, zlib_level=1)
        generate_trace(place, workload)
        inputs.append(_Input(f"recorder {layout}", "recorder", place, calls, layout))
    return inputs


def _given(path: Path) -> _Input:
    if path.suffix == ".darshan":
        if not path.is_file():
            raise InputError("no such file", where=path, todo="name a Darshan log")
        return _Input(path.name, "darshan", path)
    reader = open_trace(path)
    kind = "recorder" if reader.tool == "recorder" else "parquet"
    return _Input(path.resolve().name, kind, path, int(reader.calls_per_rank().sum()))


def _runs_on(
    one: _Input, folder: Path, programs: dict[str, Path | None], limit_s: float, rounds: int
) -> dict[str, CommandRun]:
    """Run Vani's commands and then every tool that reads this kind of input; the best of several rounds counts."""
    commands: dict[str, list[str | Path]] = {
        "vani convert": [*VANI, "convert", "{input}", "{folder}/store", "-q"],
        "vani profile": [*VANI, "profile", "{input}", "-o", folder / "profile.yaml", "-q"],
        "vani advise": [*VANI, "advise", folder / "profile.yaml", "-o", "{folder}/advice.yaml"],
        "vani report": [*VANI, "report", folder / "profile.yaml", "-o", "{folder}/report.html"],
    }
    if one.kind == "darshan":
        del commands["vani convert"]
    for peer in PEERS:
        program = programs[peer.name]
        if program is not None and one.kind in peer.reads:
            commands[peer.name] = [program, *peer.arguments]
    best: dict[str, CommandRun] = {}
    for _ in range(rounds):
        for tool, words in commands.items():
            done = _run_on_copy(words, one.path, folder / "copy", limit_s)
            if tool not in best or done.outcome != "done" or done.cpu_s < best[tool].cpu_s:
                best[tool] = done
    return best


def _run_on_copy(words: Sequence[str | Path], source: Path, place: Path, limit_s: float) -> CommandRun:
    place.mkdir()
    copy = place / source.resolve().name
    try:
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, copy)
        for part in (copy, *copy.rglob("*")):
            part.chmod(0o755 if part.is_dir() else 0o644)
        quoted = str(copy).replace("\\", "\\\\").replace("'", "\\'")
        filled = [str(word).format(input=copy, folder=place, quoted=quoted) for word in words]
        environment = {"TERM": "dumb", "HYDRA_FULL_ERROR": "1", "PYTHONWARNINGS": "ignore", "VANI_CACHE": f"{place}/c"}
        if words[0] != sys.executable:
            environment["PYTHONPATH"] = ""
        return run(filled, limit_s=limit_s, environment=environment, folder=place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _add_ratios(rows: Sequence[dict[str, Any]]) -> None:
    """Add ratios to the rows of one input: each tool's figures over the total of Vani's commands that do the same."""
    by_tool = {row["tool"]: row for row in rows if row["outcome"] == "done"}
    for peer in PEERS:
        row, vani = by_tool.get(peer.name), [by_tool.get(f"vani {name}") for name in peer.beside]
        if row is None or None in vani:
            continue
        row["cpu_x"] = row["cpu_s"] / sum(one["cpu_s"] for one in vani)
        row["seconds_x"] = row["seconds"] / sum(one["seconds"] for one in vani)
        row["peak_x"] = row["peak_bytes"] / max(one["peak_bytes"] for one in vani)
        row["work_x"] = None
        if all(one["start_s"] is not None for one in (row, *vani)):
            theirs, own = (sum(one["cpu_s"] - one["start_s"] for one in some) for some in ([row], vani))
            row["work_x"] = theirs / own if min(theirs, own) > _LEAST_WORK_S else None


def as_text(found: dict[str, Any]) -> str:
    """A line per run, with the ratio to Vani's."""
    lines = ["Side by side, and how many times of Vani's they take"]
    for row in found["runs"]:
        line = f"  {row['input']}, {row['tool']}: {row['outcome']}, {row['cpu_s']:.2f} s of processor time, "
        line += f"{row['seconds']:.2f} s by the clock, {row['peak_bytes'] / 2**20:,.0f} MiB {row['last_line']}"
        if "cpu_x" in row:
            work = "" if row["work_x"] is None else f" ({row['work_x']:.1f}x without start-up)"
            line += f"; {row['cpu_x']:.1f}x{work}, {row['seconds_x']:.1f}x, {row['peak_x']:.1f}x"
        lines.append(line.rstrip())
    return "\n".join([*lines, f"  not installed: {', '.join(found['skipped']) or 'none'}"])
