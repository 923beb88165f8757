"""The entry point for all traces: recognise the format first, then read."""

import importlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from vani.calls import FileClass
from vani.errors import InputError, TraceError, UnknownFormatError, VaniError
from vani.plug_ins import described, plug_ins
from vani.readers.darshan import SUFFIXES, is_darshan, is_named_darshan, is_parser_text
from vani.readers.dftracer import is_dftracer, is_dftracer_part
from vani.readers.files import entries_of, explained, in_natural_order
from vani.readers.otf2 import is_otf2, is_otf2_part
from vani.readers.parquet import is_converted, is_parquet, is_parquet_part, is_store, open_parquet
from vani.readers.recorder import has_recorder_parts, is_recorder, is_recorder_part
from vani.readers.recorder.reader import RecorderReader
from vani.readers.strace import is_named_strace, is_strace, is_strace_part
from vani.readers.trace_reader import Format, KeepsCounts, SeveralApps, TraceReader
from vani.units import counted, format_count, format_seconds

ENTRY_POINTS = "vani.readers"
"""Entry points of this group name a `vani.readers.trace_reader.Format`."""


def _on_use(name_of_reader: str) -> Callable[[Path], TraceReader]:
    """A function that makes a reader, `module.Class` below this package, and imports it then: most traces need one."""
    module, _, name = name_of_reader.rpartition(".")

    def open_with_it(path: Path) -> TraceReader:
        reader: TraceReader = getattr(importlib.import_module(f"vani.readers.{module}"), name)(path)
        return reader

    return open_with_it


def _open_darshan(path: Path) -> TraceReader:
    reader = "parser_text.ParserTextReader" if is_parser_text(path) else "reader.DarshanReader"
    return _on_use(f"darshan.{reader}")(path)


BUILT_IN = (
    # A Recorder trace may contain converted copies of itself; the original has more detail.
    Format("recorder", is_recorder, RecorderReader, is_recorder_part, has_recorder_parts),
    Format("parquet", is_parquet, open_parquet, is_parquet_part, is_converted),
    # A log is a single file.
    Format("darshan", is_darshan, _open_darshan, lambda _: False, is_named_darshan),
    Format("dftracer", is_dftracer, _on_use("dftracer.reader.DFTracerReader"), is_dftracer_part),
    Format("otf2", is_otf2, _on_use("otf2.reader.Otf2Reader"), is_otf2_part),
    Format("strace", is_strace, _on_use("strace.reader.StraceReader"), is_strace_part, is_named_strace),
)


@dataclass(frozen=True, eq=False)
class _PlugIns:
    """Formats from entry points."""

    formats: tuple[Format, ...]
    broken: tuple[InputError, ...]


def format_of(path: Path, *, named: bool) -> Format | None:
    """The first format that recognises a path as its trace; plug-ins that fail are skipped.

    Parameters
    ----------
    named
        The user named the path; otherwise it was discovered below a folder that is not a trace.

    Raises
    ------
    TraceError
        A folder cannot be listed.
    """
    for built_in in BUILT_IN:
        if built_in.is_at(path, named=named):
            return built_in
    for plug_in in _plug_ins().formats:
        try:
            if plug_in.is_at(path, named=named):
                return plug_in
        except VaniError:
            raise
        except Exception:
            # `unusable` reports it if no other format matches.
            continue
    return None


def unusable(path: Path) -> list[InputError]:
    """Failures of plug-ins that tried to recognise a path."""
    more = _plug_ins()
    errors = list(more.broken)
    for plug_in in more.formats:
        try:
            plug_in.is_at(path, named=True)
        except VaniError:
            continue
        except Exception as error:
            errors.append(
                InputError(
                    f"the format {plug_in.name!r} cannot detect whether this is its trace ({described(error)})",
                    where=path,
                    todo="update or uninstall the package that brings it",
                )
            )
    return errors


@cache
def _plug_ins() -> _PlugIns:
    plug_in_formats: list[Format] = []
    broken: list[InputError] = []
    for point in plug_ins(ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:
            fault = f"the format of entry point {point.name!r} cannot be loaded ({described(error)})"
        else:
            if isinstance(loaded, Format):
                plug_in_formats.append(loaded)
                continue
            fault = f"entry point {point.name!r} is not a vani.readers.trace_reader.Format"
        broken.append(InputError(fault, where=point.value, todo="update or uninstall the package that brings it"))
    return _PlugIns(tuple(plug_in_formats), tuple(broken))


_NESTED = 2
"""Search depth for traces below a given directory: `<directory>/recorder-YYYYMMDD/<trace>`."""

_RECORDER_SUFFIXES = (".cst", ".cfg", ".ts", ".mt", ".itf", ".callsites")
_RECORDER_NAMES = ("VERSION", "recorder.dat")
_WITH_RECORDER = "trace the run with Recorder 2.3 or newer"
_READ = (
    "name the folder of a Recorder trace (recorder.dat, or recorder.mt and VERSION), a .darshan log, .pfw files, "
    "an archive of OTF2 or a log of strace -f -ttt -T -y"
)



class _Foreign(NamedTuple):
    """Files of another tracer, and advice on what to do with them."""

    tool: str
    names: str
    """Pattern of names in lower case."""
    todo: str = _WITH_RECORDER

    def wrote(self, name: str) -> bool:
        """Return whether the tracer writes files with this name."""
        return re.search(self.names, name.lower()) is not None


_SUMS = "it has sums per function and no file; " + _WITH_RECORDER
# If a directory has several kinds, the first match counts: summaries are often stored next to full traces.
_FOREIGN = (
    _Foreign("a profile of Score-P", r"\.cubex$", _SUMS),
    _Foreign(
        "an index of DFTracer without its trace",
        r"\.pfw(\.gz)?\.(zindex|idx)$",
        "copy the .pfw or .pfw.gz files, too, and name their folder",
    ),
    _Foreign("a TAU trace", r"\.(trc|edf)$"),
    _Foreign("a TAU profile", r"^profile\.0\.|^tauprofile\.xml$", _SUMS),
    # Tables in which LDMS's store_csv puts column headings.
    _Foreign("tables of LDMS", r"\.header\.", "they have counters of nodes, not calls of a program; " + _WITH_RECORDER),
)
_KINDS = 4
"""Number of kinds of files named in a message about a folder that is not a trace."""


@dataclass
class Workload:
    """Traces that belong together, both readable and unreadable."""

    readers: list[TraceReader] = field(default_factory=list)
    refused: list[tuple[Path, InputError]] = field(default_factory=list)
    """Errors of the unreadable traces, which look like traces or were named by the user."""


def is_trace(path: Path) -> bool:
    """Return whether a path is a trace in a format that Vani reads, damaged or not.

    This is stricter than what a user may name: a file VERSION alone, or a Parquet data set, is not a trace.
    """
    return format_of(path, named=False) is not None


def trace_with(file: Path) -> Path | None:
    """The trace that a file belongs to, or would belong to because of its name; None if there is none.

    Plug-in formats are not considered, because they would have to be loaded for each file that is written.
    """
    folder = file.parent
    if not (_is_part(file.name) and any(format_.is_at(folder, named=False) for format_ in BUILT_IN)):
        return None
    return folder.parent if folder.name == "_parquet" else folder


def traces_at(path: Path) -> list[Path]:
    """Paths that are read if the user names `path`: the traces there or below, or `path` itself if there are none."""
    return ([] if not path.is_dir() else list(_traces_in(path, _NESTED))) or [path]


def has_part(path: Path, name: str, device: int, inode: int) -> bool:
    """Return whether a file belongs to a trace at `path` or below, under any name.

    Parameters
    ----------
    name, device, inode
        One name of the file, and the system's device and inode numbers.
    """
    try:
        traces = traces_at(path)
    except InputError:
        return False
    for trace in traces:
        if not trace.is_dir():
            states = [trace.stat()] if _exists(trace) else []
            if any((s.st_dev, s.st_ino) == (device, inode) for s in states):
                return True
            continue
        is_part = _parts_of(trace)
        for folder in (trace, trace / "_parquet"):
            try:
                with os.scandir(folder) as entries:
                    # There may be a hundred thousand files, so only those with a matching name are examined.
                    near = [
                        e
                        for e in entries
                        if is_part(e.name) and (e.is_symlink() or e.name == name or e.inode() == inode)
                    ]
                states = [Path(e.path).stat() for e in near if _exists(Path(e.path))]
                if any((s.st_dev, s.st_ino) == (device, inode) for s in states):
                    return True
            except OSError:
                continue
    return False


def _parts_of(trace: Path) -> Callable[[str], bool]:
    """A test for file names of a trace; a folder may contain traces in several built-in formats."""
    trace_format = format_of(trace, named=False)
    return _is_part if trace_format is None or trace_format in BUILT_IN else trace_format.is_part


def _is_part(name: str) -> bool:
    return any(format_.is_part(name) for format_ in BUILT_IN)


def open_trace(path: Path) -> TraceReader:
    """Recognise the trace at `path` and return its reader, without reading calls.

    Raises
    ------
    UnknownFormatError
        There is no trace, or the tool or version that wrote it is not supported; the error names the remedy.
    TraceError
        The trace is so damaged that nothing in it is readable.
    InputError
        There is nothing at `path`.
    """
    path = Path(path)
    if not _exists(path):
        raise InputError("no such file or directory", where=path, todo="name the folder of a trace")
    trace_format = format_of(path, named=True)
    if trace_format is not None:
        return trace_format.open(path)
    raise _about(path)


def open_workload(paths: Sequence[Path], *, decoded: Callable[[TraceReader], bool] | None = None) -> Workload:
    """Open a workload's traces: directories that are traces, and all traces inside other directories.

    Traces keep the order in which they are given; those in one directory are in natural order
    (`step9` before `step10`). A trace that is given twice is opened once. Other files next to traces are
    ignored. Unreadable traces are listed with their errors if at least one trace is readable.

    Parameters
    ----------
    decoded
        Returns whether a trace's calls are known already, so that its tables need not be read.

    Raises
    ------
    InputError
        No path was given, a path does not exist, or no trace is readable (the first error is raised).
    """
    if not paths:
        raise InputError("no trace was given", todo="name the folder of a trace")
    given = [Path(p) for p in paths]
    for path in given:
        if not _exists(path):
            raise InputError("no such file or directory", where=path, todo="name the folder of a trace")
    workload = Workload()
    seen: set[Path] = set()
    for path in given:
        try:
            traces = traces_at(path)
        except InputError as error:
            workload.refused.append((path, error))
            continue
        for trace in traces:
            real = trace.resolve()
            if real in seen:
                continue
            seen.add(real)
            try:
                reader = open_trace(trace)
                if decoded is not None and decoded(reader):
                    workload.readers.append(reader)
                    continue
                # The tables are needed next anyway, and reading them shows whether anything can be decoded.
                with explained(reader):
                    reader.calls_per_rank()
            except InputError as error:
                workload.refused.append((trace, error))
            else:
                workload.readers += by_app(reader)
    if not workload.readers:
        raise workload.refused[0][1]
    return workload


def by_app(reader: TraceReader) -> Sequence[TraceReader]:
    """One reader per program in a trace."""
    return reader.by_app() if isinstance(reader, SeveralApps) else [reader]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        # The error's text names the fault: a name that is too long, a link loop, or a zero byte.
        raise InputError(f"cannot be examined ({error})", where=path, todo="name the folder of a trace") from error


def _traces_in(path: Path, depth: int) -> Iterator[Path]:
    if is_trace(path):
        yield path
        return
    if not depth or not path.is_dir():
        return
    for entry in _possible_traces(path):
        try:
            yield from _traces_in(entry, depth - 1)
        except TraceError:
            # A folder next to the traces that cannot be listed is not a trace.
            continue


def _possible_traces(path: Path) -> list[Path]:
    # Among the built-in formats, only Darshan logs are single files.
    with_files = bool(_plug_ins().formats)
    # Tools put folders with names that begin with `_` or `.` next to traces (`_text`, `_parquet`).
    return in_natural_order(
        [
            p
            for p in entries_of(path)
            if (with_files or p.name.endswith(SUFFIXES) or p.is_dir()) and not p.name.startswith(("_", "."))
        ]
    )


def _about(path: Path) -> UnknownFormatError:
    """An error that explains what an unrecognised path is, and which plug-in failed on it."""
    error = _about_directory(path) if path.is_dir() else _about_file(path)
    broken = unusable(path)
    if not broken:
        return error
    return UnknownFormatError(
        f"{error.what}, but {broken[0].where}: {broken[0].what}",
        where=path,
        todo=f"{broken[0].todo}, or {error.todo}",
    )


def _about_file(path: Path) -> UnknownFormatError:
    """An error that explains a file that was named instead of a directory."""
    name, suffix = path.name, path.suffix
    foreign = _foreign([name])
    if path.is_file() and not path.stat().st_size:
        what, todo = "an empty file", "copy it again from where the tracer wrote it, or leave it out"
    elif name in _RECORDER_NAMES or suffix in _RECORDER_SUFFIXES:
        what, todo = "one file of a Recorder trace", f"name its folder, {path.parent}"
    elif suffix in (".evt", ".def"):
        what, todo = "one file of an archive of OTF2", "name the archive, a file such as traces.otf2"
    elif suffix == ".parquet":
        what, todo = "one Parquet file", f"name its folder, {path.parent}"
    elif foreign is not None:
        what, todo = f"{foreign.tool}, which Vani does not read", foreign.todo
    elif name.endswith((".tar", ".tar.gz", ".tgz", ".zip", ".tar.xz", ".tar.zst", ".tar.bz2")):
        what, todo = "an archive", "unpack it and name the trace's folder"
    elif suffix in (".yaml", ".yml"):
        what, todo = "a YAML document, not a trace", "name the folder of a trace, or run `vani advise` on a profile"
    else:
        what, todo = "a file, not a trace", _READ
    return UnknownFormatError(f"is {what}", where=path, todo=todo)


def _about_directory(path: Path) -> UnknownFormatError:
    """An error that explains a directory that is not a trace."""
    if is_store(path):
        what, todo = "is a store that `vani convert` wrote", "name the trace that it was made from"
    elif not (entries := entries_of(path)):
        what, todo = "is an empty folder", _READ
    elif (foreign := _foreign([e.name for e in entries])) is not None:
        what, todo = f"contains {foreign.tool}, which Vani does not read", foreign.todo
    elif any(e.name == "scorep.cfg" for e in entries):
        what = "is the folder of a run under Score-P without an archive of OTF2 (traces.otf2)"
        todo = "run it again with SCOREP_ENABLE_TRACING=true, until it ends: Score-P writes the archive at its end"
    elif within := list(_traces_in(path, _NESTED)):
        what, todo = f"is not a trace but contains {len(within)}", f"name one of them, such as {within[0]}"
    else:
        what, todo = f"is not a trace, {_content(entries)}", _READ
    return UnknownFormatError(what, where=path, todo=todo)


def _foreign(names: Sequence[str]) -> _Foreign | None:
    return next((kind for kind in _FOREIGN if any(kind.wrote(name) for name in names)), None)


def _content(entries: Sequence[Path]) -> str:
    """A short summary of a folder's content: files by suffix, the most frequent first."""
    folders = 0
    ends: Counter[str] = Counter()
    for entry in sorted(entries):
        try:
            is_folder = entry.is_dir()
        except OSError:
            is_folder = False
        folders += is_folder
        if not is_folder:
            ends[entry.suffix[:12].lower()] += 1
    parts = [
        counted(count, f"{end} file") if end else counted(count, "file") + " without an ending"
        for end, count in ends.most_common(_KINDS)
    ]
    if (others := sum(ends.values()) - sum(count for _, count in ends.most_common(_KINDS))) > 0:
        parts.append(counted(others, "other file"))
    if folders:
        parts.append(counted(folders, "folder") + " without a trace")
    return "but has " + (f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else parts[0])


_NEAR_S: Final = 3600.0
"""Our choice: a job's steps wait for each other for less time."""
_LONGEST_JOB_S: Final = 7 * 86400.0
"""Our choice: batch systems let few jobs run longer, and then reuse their ids."""


@dataclass(eq=False)
class _TracedRun:
    """One trace: its head, and its files on request."""

    path: Path
    readers: list[TraceReader]

    @cached_property
    def span(self) -> tuple[float, float] | None:
        """Start and end, seconds since 1970; the end equals the start if only calls show it; None if not stored."""
        starts = [reader.start_unix_s for reader in self.readers if reader.start_unix_s is not None]
        if not starts:
            return None
        lengths = [r.counts().span_ns / 1e9 for r in self.readers if isinstance(r, KeepsCounts)]
        return min(starts), max(starts) + max(lengths, default=0.0)

    @cached_property
    def job(self) -> tuple[str | None, str | None] | None:
        """Id of its job and the user; None if the trace names neither."""
        jobs = [reader.counts().job for reader in self.readers if isinstance(reader, KeepsCounts)]
        return next(((job.id, job.user) for job in jobs if job.id or job.user), None)

    @cached_property
    def files(self) -> frozenset[str]:
        """Paths of its data set files."""
        tables = (reader.files() for reader in self.readers)
        return frozenset(
            path
            for table in tables
            for path, kind in zip(table["path"].to_pylist(), table["class"].to_pylist(), strict=True)
            if kind == FileClass.DATASET
        )

    def is_near(self, other: "_TracedRun") -> bool:
        """Whether two runs are less than an hour apart, and belong to one user if both users are known.

        Job ids do not distinguish runs, because without a batch system Darshan uses the process id.
        """
        if self.job is not None and other.job is not None and self.job[1] != other.job[1]:
            return False
        return self.gap(other) < _NEAR_S

    def gap(self, other: "_TracedRun") -> float:
        """Seconds from the end of the first run to the start of the other; 0 if a start is unknown."""
        if self.span is None or other.span is None:
            return 0.0
        return max(self.span[0], other.span[0]) - min(self.span[1], other.span[1])


def refuse_unrelated(readers: Sequence[TraceReader]) -> None:
    """Raise InputError if the traces form groups that have nothing to do with each other.

    Runs belong together if they are in one job, are of one user and less than an hour apart, or share a data set
    file; and so do runs that each belong to the same third one.
    """
    by_path: dict[Path, list[TraceReader]] = {}
    for reader in readers:
        by_path.setdefault(reader.path, []).append(reader)
    runs = [_TracedRun(path, own) for path, own in by_path.items()]
    if len(runs) < 2:
        return
    runs.sort(key=lambda run: run.span[0] if run.span is not None else 0.0)
    group = np.arange(len(runs))
    of_job: dict[object, int] = {}
    latest: dict[object, int] = {}
    for number, run in enumerate(runs):
        if run.job is not None and run.job[0] is not None:
            step = of_job.get(run.job, number)
            if run.gap(runs[step]) < _LONGEST_JOB_S:
                _join(group, number, step)
            of_job[run.job] = number
        # Each user's run that ended last may still be near.
        user = None if run.job is None else run.job[1]
        before = latest.setdefault(user, number)
        if run.is_near(runs[before]):
            _join(group, number, before)
        if run.span is not None and run.span[1] >= (runs[before].span or (0.0, 0.0))[1]:
            latest[user] = number
    if len(set(group.tolist())) == 1:
        return
    first: dict[str, int] = {}
    for number, run in enumerate(runs):
        for path in run.files:
            _join(group, number, first.setdefault(path, number))
    groups = list(dict.fromkeys(group.tolist()))
    if len(groups) > 1:
        raise _refusal(runs, [runs[group.tolist().index(number)] for number in groups])


def _join(group: np.ndarray[tuple[int], np.dtype[np.int64]], run: int, other: int) -> None:
    if group[run] != group[other]:
        group[group == group[run]] = group[other]


def _refusal(runs: Sequence[_TracedRun], of_groups: Sequence[_TracedRun]) -> InputError:
    """An error that names the first run of two groups, and the time between them."""
    first, second = of_groups[0], of_groups[1]
    apart = ""
    if first.span is not None and second.span is not None:
        apart = f", {format_seconds(max(0.0, second.span[0] - first.span[0]))} apart"
    jobs = {run.job for run in runs if run.job is not None and run.job[0] is not None}
    of_jobs = f" of {format_count(len(jobs))} jobs" if len(jobs) > 1 else ""
    return InputError(
        f"{format_count(len(runs))} traces{of_jobs} are {format_count(len(of_groups))} runs that share no file and no "
        f"job ({first.path.name} and {second.path.name}{apart}): not one workload",
        todo="profile them one by one (`vani profile --each -o FOLDER ...`) or as one anyway (`--together`)",
    )
