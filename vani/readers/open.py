"""The entry point for all traces: recognise the format first, then read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vani.errors import InputError, TraceError, UnknownFormatError
from vani.readers.darshan.probe import SUFFIXES
from vani.readers.formats import BUILT_IN, format_of, has_plug_ins, unusable
from vani.readers.identity import explained
from vani.readers.natural_order import natural
from vani.readers.parquet import is_store
from vani.readers.trace_reader import SeveralApps, TraceReader
from vani.units import counted

_NESTED = 2
"""Search depth for traces below a given directory: `<directory>/recorder-YYYYMMDD/<trace>`."""

_RECORDER_SUFFIXES = (".cst", ".cfg", ".ts", ".mt", ".itf", ".callsites")
_RECORDER_NAMES = ("VERSION", "recorder.dat")
_WITH_RECORDER = "trace the run with Recorder 2.3 or newer"
_READ = (
    "name the folder of a Recorder trace (recorder.dat, or recorder.mt and VERSION), a .darshan log, .pfw files, "
    "an archive of OTF2 or a log of strace -f -ttt -T -y"
)


@dataclass(frozen=True, eq=False)
class _Foreign:
    """Files of another tracer, and advice on what to do with them."""

    tool: str
    suffixes: tuple[str, ...]
    todo: str = _WITH_RECORDER

    def wrote(self, name: str) -> bool:
        """Return whether the tracer writes files with this name."""
        return name.lower().endswith(self.suffixes)


# If a directory has several kinds, the first match counts: summaries are often stored next to full traces.
_FOREIGN = (
    _Foreign(
        "a profile of Score-P", (".cubex",), "it has sums per function and no file; " + _WITH_RECORDER
    ),
    _Foreign(
        "an index of DFTracer without its trace",
        (".pfw.zindex", ".pfw.gz.zindex", ".pfw.idx", ".pfw.gz.idx"),
        "copy the .pfw or .pfw.gz files, too, and name their folder",
    ),
    _Foreign("a TAU trace", (".trc", ".edf"), _WITH_RECORDER),
)
_TAU_PROFILE = "profile.0.0.0"
_LDMS = ".header."
"""Part of the names of the tables in which LDMS's store_csv puts column headings."""
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
        raise InputError(
            f"cannot be examined ({error})", where=path, todo="name the folder of a trace"
        ) from error


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
    with_files = has_plug_ins()
    # Tools put folders with names that begin with `_` or `.` next to traces (`_text`, `_parquet`).
    return sorted(
        (
            p
            for p in _entries(path)
            if (with_files or p.name.endswith(SUFFIXES) or p.is_dir()) and not p.name.startswith(("_", "."))
        ),
        key=lambda p: natural(p.name),
    )


def _entries(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError as error:
        raise TraceError(f"cannot be listed ({error.strerror})", where=path) from error


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
    name = path.name
    if path.is_file() and not path.stat().st_size:
        return UnknownFormatError(
            "is an empty file", where=path, todo="copy it again from where the tracer wrote it, or leave it out"
        )
    if name in _RECORDER_NAMES or path.suffix in _RECORDER_SUFFIXES:
        return UnknownFormatError(
            "is one file of a Recorder trace", where=path, todo=f"name its folder, {path.parent}"
        )
    if path.suffix in (".evt", ".def"):
        return UnknownFormatError(
            "is one file of an archive of OTF2", where=path, todo="name the archive, a file such as traces.otf2"
        )
    if path.suffix == ".parquet":
        return UnknownFormatError("is one Parquet file", where=path, todo=f"name its folder, {path.parent}")
    foreign = _foreign([name])
    if foreign is not None:
        return UnknownFormatError(
            f"is {foreign.tool}, which Vani does not read", where=path, todo=foreign.todo
        )
    if name.endswith((".tar", ".tar.gz", ".tgz", ".zip", ".tar.xz", ".tar.zst", ".tar.bz2")):
        return UnknownFormatError("is an archive", where=path, todo="unpack it and name the trace's folder")
    if path.suffix in (".yaml", ".yml"):
        return UnknownFormatError(
            "is a YAML document, not a trace",
            where=path,
            todo="name the folder of a trace, or run `vani advise` on a profile",
        )
    return UnknownFormatError(
        "is a file, not a trace",
        where=path,
        todo="name the folder with recorder.dat, or recorder.mt and VERSION",
    )


def _about_directory(path: Path) -> UnknownFormatError:
    """An error that explains a directory that is not a trace."""
    if is_store(path):
        return UnknownFormatError(
            "is a store that `vani convert` wrote", where=path, todo="name the trace that it was made from"
        )
    entries = _entries(path)
    if not entries:
        return UnknownFormatError(
            "is an empty folder",
            where=path,
            todo="name a folder with recorder.dat, or recorder.mt and VERSION",
        )
    foreign = _foreign([e.name for e in entries])
    if foreign is not None:
        return UnknownFormatError(
            f"contains {foreign.tool}, which Vani does not read", where=path, todo=foreign.todo
        )
    within = list(_traces_in(path, _NESTED))
    if within:
        return UnknownFormatError(
            f"is not a trace but contains {len(within)}",
            where=path,
            todo=f"name one of them, such as {within[0]}",
        )
    return UnknownFormatError(f"is not a trace, {_content(entries)}", where=path, todo=_READ)


def _foreign(names: Sequence[str]) -> _Foreign | None:
    for kind in _FOREIGN:
        if any(kind.wrote(n) for n in names):
            return kind
    if _TAU_PROFILE in names or any(n.startswith("profile.0.") or n == "tauprofile.xml" for n in names):
        return _Foreign("a TAU profile", (), "it has sums per function and no file; " + _WITH_RECORDER)
    if any(_LDMS in n.lower() for n in names):
        return _Foreign(
            "tables of LDMS", (), "they have counters of nodes, not calls of a program; " + _WITH_RECORDER
        )
    return None


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
