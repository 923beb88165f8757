"""`vani convert`: decodes a trace into a Parquet dataset, or writes its calls as a timeline for viewers."""

import gzip
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
from pydantic import Field

import vani
from vani.atomic import new_file
from vani.calls import HEAT_MAP, Kind, Layer
from vani.cli.options import FILE, output_option, quiet_option, settings_options
from vani.cli.output import check_outputs, keep_freed_memory, progress_bar, say, shows_progress
from vani.cli.sources import Memory, Where, half_of_memory
from vani.engine.cluster import open_executor
from vani.engine.executor import Progress
from vani.errors import InputError, TraceError, VaniError
from vani.readers.files import explained, unchanged
from vani.readers.kept_calls import kept_calls
from vani.readers.open import open_workload
from vani.readers.trace_reader import KeepsCounts, Piece, TraceReader
from vani.render.events import Lanes, Names, Process, TraceEvents
from vani.schema.settings import PathLike, Settings
from vani.schema.timeline import NONE_KEPT, ONLY_BINS
from vani.site import BUDGET
from vani.store.write import check_call_sites, write_store
from vani.units import counted


class ConvertSettings(Settings):
    """How a trace is decoded."""

    call_sites: bool = Field(
        default=False, description="Store the place in the program or library that made each call."
    )
    scheduler: Where = None
    memory: Memory = None


def convert(
    trace: PathLike,
    store: PathLike,
    settings: ConvertSettings | None = None,
    *,
    progress: Progress | None = None,
    **fields: Any,
) -> list[Path]:
    """Decode a trace into a Parquet dataset at `store`, or a directory of traces into one dataset each below it.

    Parameters
    ----------
    settings, fields
        The settings, or single fields of `ConvertSettings`.
    progress
        As in `profile`.

    Returns
    -------
    list of Path
        The stores written, each with a manifest.json.

    Raises
    ------
    InputError
        A trace cannot be read or lacks the requested call sites, or `store` cannot be written.
    """
    settings = ConvertSettings.of(settings, **fields)
    BUDGET.begin(settings.memory, half_of_memory)
    target = Path(store)
    is_other = target.exists() and not (target / "manifest.json").is_file()
    if is_other and (not target.is_dir() or any(target.iterdir())):
        raise InputError("exists and is not a store", where=target, todo="name a new folder")
    if Path(trace).is_dir() and target.resolve().is_relative_to(Path(trace).resolve()):
        raise InputError("is inside the trace", where=target, todo="name a folder next to it")
    if Path(trace).resolve().is_relative_to(target.resolve()):
        raise InputError("contains the trace, and would be replaced", where=target, todo="name a new folder")
    readers = _with_calls(Path(trace))
    if settings.call_sites:
        for reader in readers:
            check_call_sites(reader)
    places = []
    with open_executor(settings.scheduler, progress=progress) as executor:
        executor.check_workers(version=vani.__version__, reads=[r.path for r in readers], writes=target.parent)
        for reader in readers:
            name = reader.path.name
            if sum(other.path == reader.path for other in readers) > 1:
                name += f"-{reader.app}"
            place = target if len(readers) == 1 else target / name
            write_store(reader, place, version=vani.__version__, executor=executor, call_sites=settings.call_sites)
            places.append(place)
    return places


def _with_calls(trace: Path) -> list[TraceReader]:
    """The readers of all traces, with the kept calls of logs of counts; raises InputError if a log kept none."""
    workload, with_calls = open_workload([trace]), []
    for path, error in workload.refused:
        raise error if isinstance(error, VaniError) else TraceError(str(error), where=path)
    for reader in workload.readers:
        calls = kept_calls(reader) if isinstance(reader, KeepsCounts) else reader
        if calls is None or calls.layout == HEAT_MAP:
            what, _, todo = (NONE_KEPT if calls is None else ONLY_BINS).removeprefix("the log ").partition(": ")
            raise InputError(what, where=reader.path, todo=todo)
        with_calls.append(calls)
    return with_calls


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
    readers = _with_calls(Path(trace))
    starts = [reader.start_unix_s for reader in readers]
    known = [start for start in starts if start is not None]
    calls, problems = 0, []
    processes = list(_processes(readers))
    lanes = Lanes()
    with new_file(target) as raw, _compressed(raw, target) as file:
        file.write(writer.begin(process for of_trace in processes for process in of_trace.values()))
        for number, (reader, start) in enumerate(zip(readers, starts, strict=True)):
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


def _compressed(raw: IO[bytes], target: Path) -> AbstractContextManager[IO[bytes] | gzip.GzipFile]:
    if target.suffix != ".gz":
        return nullcontext(raw)
    return gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=3, mtime=0)


@click.command("convert")
@click.argument("trace", type=FILE)
@click.argument("store", type=FILE, required=False)
@output_option("Write a timeline for Perfetto instead: .json or .json.gz.")
@settings_options(ConvertSettings)
@quiet_option
def command(trace: Path, store: Path | None, output: Path | None, settings: ConvertSettings, quiet: bool) -> None:
    """Decode TRACE into a Parquet dataset in the folder STORE, or into a timeline.

    STORE is written completely or not at all. Its calls are in calls/*.parquet, for pyarrow, pandas, duckdb, polars.
    A directory of several traces becomes a folder of several stores.

    With -o FILE the calls become events that ui.perfetto.dev opens: a track for each process and thread, a slice for
    each call with its file, bytes and offset.
    """
    keep_freed_memory()
    with progress_bar(show=shows_progress(quiet=quiet)) as progress:
        if output is not None:
            written = _timeline(trace, store, output, settings, progress)
        elif store is None:
            raise InputError("no destination is given", todo="name a folder STORE, or a timeline with -o run.json")
        else:
            written = [f"wrote {place}" for place in convert(trace, store, settings, progress=progress)]
    if shows_progress(quiet=quiet):
        say(*written)


def _timeline(
    trace: Path, store: Path | None, output: Path, settings: ConvertSettings, progress: Progress | None
) -> list[str]:
    if store is not None or settings.call_sites:
        todo = f"leave {'STORE' if store is not None else '--call-sites'} out"
        raise InputError("a timeline is not a store", where="-o", todo=todo)
    check_outputs([output], [trace])
    timeline = events(trace, output, progress=progress)
    written = f"wrote {output}: {counted(timeline.calls, 'call')} of {counted(timeline.processes, 'process')}"
    return [written, *(f"left out: {problem}" for problem in timeline.problems[:5])]
