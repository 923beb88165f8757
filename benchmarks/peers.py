"""Vani and other projects' tools side by side: the same files, one after the other, in processes of their own.

    drishti             drishti-io: Recorder 2.5.0 as released, and Darshan logs; prints recommendations
    dfanalyzer          dftracer-analyzer: Parquet that its converter (or WisIO's) made of Recorder traces
    wisio               what dfanalyzer was before; the same Parquet
    recorder2parquet    the converter: of dftracer-analyzer or of Recorder itself; each reads one version of Recorder
    wisio-recorder2parquet   the converter of WisIO
    recorder2csv        of recorder-utils, which drishti-io brings: intervals of Recorder 2.5.0 as text
    recorder2text       of Recorder itself; one version of Recorder
    pydarshan           `python -m darshan summary`: a report of a Darshan log

Nobody reads everything, so the same calls are written in several formats: three layouts of Recorder, and Parquet.
Each tool gets each of the files that its documentation says it reads, in a copy of its own (converters write into the
trace). What crashes is noted as `crashed`, with its last line; what is not installed is skipped, with a note. Ratios
are to those commands of Vani that do the same, with start-up and without, which is measured on 1,000 calls of the kind.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from benchmarks.parquet_twin import write_twin
from benchmarks.peer_ratios import ratios
from benchmarks.peer_tools import PEERS, Found, absent, find
from benchmarks.processes import Run, run
from benchmarks.rates import VANI
from tests.traces.trace_generator import GeneratedLayout, Workload, generate_trace
from vani.api import convert
from vani.errors import InputError
from vani.readers.open import open_trace
from vani.store.read import open_store

__all__ = ["peers"]

_LAYOUTS: tuple[GeneratedLayout, ...] = get_args(GeneratedLayout)
_SMALL = 1000
"""Calls of a trace on which next to nothing but starting is measured."""


@dataclass(frozen=True)
class _Input:
    """Files that were written by a tracer, or as if."""

    name: str
    kind: str
    path: Path
    calls: int | None
    layout: str = ""
    """Of a Recorder trace."""


def peers(
    folder: Path,
    *,
    calls: int,
    limit_s: float,
    rounds: int = 1,
    pythons: Sequence[Path] = (),
    given: Sequence[Path] = (),
) -> dict[str, Any]:
    """Run Vani and all peers that are found.

    Parameters
    ----------
    calls
        Size of the generated traces; no trace is generated if 0.
    limit_s
        Seconds after which a tool is ended.
    rounds
        Of so many runs of a tool on an input, the one with least processor time is told.
    pythons
        Interpreters of environments in which peers are installed; by default this one. The PATH is searched last.
    given
        More inputs: traces, Parquet folders, Darshan logs.

    Returns
    -------
    dict
        `found` (name, version), `skipped` (name, note), `runs`: one dict per input and tool, `ratios`: those of
        `benchmarks.peer_ratios`.
    """
    homes = [Path(p).parent for p in pythons or [Path(sys.executable)]]
    tools = {peer.name: find(peer, homes) for peer in PEERS}
    found = [tool for tool in tools.values() if tool is not None]
    read = {kind for tool in found for kind in tool.peer.reads}
    runs: list[dict[str, Any]] = []
    starts: dict[tuple[str, str], dict[str, float]] = {}
    for one in (*_generated(folder / "large", calls, read), *map(_described, given)):
        key = (one.kind, one.layout)
        if key not in starts:
            starts[key] = _starts(one, folder, found, limit_s, rounds)
        for tool, done in _tools_on(one, folder, found, limit_s, rounds):
            runs.append(_row(one, tool, done, starts[key].get(tool)))
    return {
        "found": [{"name": tool.peer.name, "version": tool.version} for tool in found],
        "skipped": [{"name": peer.name, "note": absent(peer)} for peer in PEERS if tools[peer.name] is None],
        "limit_s": limit_s,
        "runs": runs,
        "ratios": ratios(runs, {peer.name: peer.beside for peer in PEERS}),
    }


def _generated(
    folder: Path, calls: int, kinds: Iterable[str], layouts: Sequence[str] = _LAYOUTS
) -> list[_Input]:
    """The same calls in each layout, and as Parquet.

    Reads, writes and seeks on a file per process: what every tool can take. Drishti 0.8 fails on any trace with more
    than a thousand independent MPI-IO operations, and would be seen to crash only.
    """
    if not calls or not {"recorder", "parquet"} & set(kinds):
        return []
    folder.mkdir()
    inputs = []
    for layout in _LAYOUTS:
        if layout not in layouts:
            continue
        place = folder / f"peers-{layout}"
        generate_trace(
            place, Workload(calls=calls, ranks=8, files=8, pattern="strided", layout=layout, zlib_level=1)
        )
        inputs.append(_Input(f"recorder {layout}", "recorder", place, calls, layout))
    if "parquet" in kinds:
        convert(inputs[0].path, folder / "peers-store")
        write_twin(open_store(folder / "peers-store"), folder / "peers-parquet")
        shutil.rmtree(folder / "peers-store")
        inputs.append(_Input("parquet", "parquet", folder / "peers-parquet", calls))
    return inputs if "recorder" in kinds else inputs[-1:]


def _described(path: Path) -> _Input:
    """What a path holds; a log of Darshan has counts in place of calls."""
    if path.suffix == ".darshan":
        if not path.is_file():
            raise InputError("no such file", where=path, todo="name a Darshan log")
        return _Input(path.name, "darshan", path, None)
    reader = open_trace(path)
    kind = "recorder" if reader.tool == "recorder" else "parquet"
    layout = reader.layout if kind == "recorder" else ""
    calls = int(reader.calls_per_rank().sum())
    return _Input(f"{path.resolve().name} ({reader.layout})", kind, path, calls, layout)


def _starts(
    one: _Input, folder: Path, found: Sequence[Found], limit_s: float, rounds: int
) -> dict[str, float]:
    """Processor seconds of each tool that can do a small input of the same kind; nothing where none can be made.

    It runs as often as on the input itself: the least of several runs is less than that of one.
    """
    if one.kind == "darshan" or (one.layout and one.layout not in _LAYOUTS):
        return {}
    place = folder / "small"
    try:
        layouts = [one.layout] if one.layout else list(_LAYOUTS[:1])
        (small,) = _generated(place, _SMALL, [one.kind], layouts)
        done = _tools_on(small, folder, found, limit_s, rounds)
        return {tool: run.cpu_s for tool, run in done if run.outcome == "done"}
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _tools_on(
    one: _Input, folder: Path, found: Sequence[Found], limit_s: float, rounds: int
) -> list[tuple[str, Run]]:
    """Vani's commands and every tool that reads this kind of input, in this order."""
    done = _by_vani(one, folder, limit_s, rounds)
    for tool in found:
        if one.kind in tool.peer.reads:
            done.append(
                (tool.peer.name, _best(lambda tool=tool: _by_peer(tool, one, folder, limit_s), rounds))
            )
    return done


def _best(work: Callable[[], Run], rounds: int) -> Run:
    """The run with least processor time, or the first that does not end well."""
    best = work()
    for _ in range(rounds - 1):
        if best.outcome != "done":
            break
        done = work()
        best = done if done.outcome != "done" else min(best, done, key=lambda one: one.cpu_s)
    return best


def _by_vani(one: _Input, folder: Path, limit_s: float, rounds: int) -> list[tuple[str, Run]]:
    place = folder / "peers-vani"
    profile = place / "profile.yaml"
    commands: dict[str, list[str | Path]] = {
        "vani profile": ["profile", one.path, "-o", profile, "-q"],
        "vani advise": ["advise", profile, "-o", place / "advice.yaml"],
    }
    if one.kind == "darshan":
        commands["vani report"] = ["report", profile, "-o", place / "report.html"]
    else:
        commands = {"vani convert": ["convert", one.path, place / "converted", "-q"], **commands}

    def fresh(arguments: Sequence[str | Path]) -> Run:
        for left in ("converted", "cache"):
            shutil.rmtree(place / left, ignore_errors=True)
        environment = {"VANI_CACHE": str(place / "cache")}
        return run([*VANI, *arguments], limit_s=limit_s, environment=environment)

    place.mkdir()
    try:
        return [(name, _best(lambda words=words: fresh(words), rounds)) for name, words in commands.items()]
    finally:
        shutil.rmtree(place)


def _by_peer(tool: Found, one: _Input, folder: Path, limit_s: float) -> Run:
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
        written = place / "written"
        written.mkdir()
        return run(tool.command(copy, written), limit_s=limit_s, environment=environment, folder=place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _row(one: _Input, tool: str, done: Run, start_s: float | None) -> dict[str, Any]:
    row = asdict(done)
    for left_out in ("samples", "began", "tree_peak_bytes", "last_line"):
        del row[left_out]
    row["peak_bytes"] = done.memory_bytes
    # What judging and reporting cost does not depend on the number of calls.
    counts = one.calls is not None and done.outcome == "done" and tool not in ("vani advise", "vani report")
    rate = one.calls / done.seconds if counts and one.calls is not None else None
    said = done.last_line if done.outcome != "done" else ""
    named = {"input": one.name, "calls": one.calls, "tool": tool}
    return {**named, **row, "start_s": start_s, "calls_per_s": rate, "said": said}
