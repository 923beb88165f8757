"""Implements `vani convert -o`: writes a trace's calls as a timeline for viewers."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import vani
from vani.api.arguments import PathLike
from vani.atomic import new_file
from vani.calls import Kind, Layer
from vani.errors import InputError, TraceError, VaniError
from vani.readers.identity import explained, unchanged
from vani.readers.open import open_workload
from vani.readers.trace_reader import KeepsCounts, Piece, TraceReader
from vani.render.events import Lanes, Names, Process, TraceEvents

if TYPE_CHECKING:
    from vani.engine.executor import Progress


@dataclass(frozen=True)
class Events:
    """The outcome of `events`: the number of calls written, and one line for each damaged part that was left out."""

    calls: int
    processes: int
    problems: list[str]


def events(trace: PathLike, output: PathLike, *, progress: Progress | None = None) -> Events:
    """Write the calls of a trace as a timeline with a track per process and thread.

    Each call is a slice with its layer and kind; its arguments are the file, bytes and offset, if known. Traces in
    a folder are aligned by their recorded start. Memory use does not grow with the number of calls.

    Parameters
    ----------
    output
        The path, which ends in `.json` or `.json.gz`.

    Raises
    ------
    InputError
        A trace cannot be read or has no calls, or `output` has another suffix or cannot be written.
    """
    target = Path(output)
    if not target.name.endswith((".json", ".json.gz")):
        raise InputError(
            "is not the name of a timeline", where=target, todo="use a name that ends in .json or .json.gz"
        )
    writer = TraceEvents(f"vani {vani.__version__}")
    workload = open_workload([Path(trace)])
    for path, error in workload.refused:
        raise error if isinstance(error, VaniError) else TraceError(str(error), where=path)
    for reader in workload.readers:
        if isinstance(reader, KeepsCounts):
            raise InputError(
                "has counts, but no calls for a timeline", where=reader.path, todo="give a trace of calls"
            )
    starts = [reader.start_unix_s for reader in workload.readers]
    known = [start for start in starts if start is not None]
    calls, problems = 0, []
    processes = list(_processes(workload.readers))
    lanes = Lanes()
    with new_file(target) as raw, _compressed(raw, target) as file:
        file.write(writer.begin(process for of_trace in processes for process in of_trace.values()))
        for number, (reader, start) in enumerate(zip(workload.readers, starts, strict=True)):
            shift = 0 if start is None else round((start - min(known)) * 1e9)
            piece = Piece()
            with unchanged(reader), explained(reader):
                file.write(writer.names(_names(reader)))
                for batch in reader.batches(range(reader.ranks), piece):
                    slices = lanes.slices(batch, processes[number])
                    file.write(writer.tracks(slices.new))
                    file.write(writer.events(slices, processes[number], shift))
                    calls += batch.num_rows
                    if progress is not None:
                        progress("decode", piece.ranks_read, reader.ranks)
            problems += [f"{reader.path.name}: {problem}" for problem in (*reader.problems, *piece.problems)]
        file.write(writer.end())
    return Events(calls, sum(map(len, processes)), problems)


def _processes(readers: list[TraceReader]) -> Iterator[dict[int, Process]]:
    number = 0
    for reader in readers:
        of_trace = {}
        for rank in range(reader.ranks):
            number += 1
            of_trace[rank] = Process(number, f"{reader.app} rank {rank}" if reader.app else f"rank {rank}")
        yield of_trace


def _names(reader: TraceReader) -> Names:
    functions = reader.functions().sort_by("func")
    files = reader.files().sort_by("file")
    assert functions["func"].to_pylist() == list(range(len(functions)))
    return Names(
        functions["name"].to_pylist(),
        files["path"].to_pylist(),
        [layer.name.lower() for layer in Layer],
        [kind.name.lower() for kind in Kind],
    )


@contextmanager
def _compressed(raw: IO[bytes], target: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    if target.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=3, mtime=0) as file:
        yield file
