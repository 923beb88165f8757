"""The outcome of a traced run: whether its trace can be profiled, how its files grew, and what the tracer missed.

A tracer of library functions records the calls that it wraps, strace all system calls, and neither of them stores into
mapped memory. The growth of a file on disk includes these.
"""

import errno
import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.calls import FileClass, Flag, Kind, Layer
from vani.collect.file_systems import ceph_layout
from vani.collect.tracing.line import Traced
from vani.columns import to_numpy
from vani.errors import InputError
from vani.readers.open import open_trace, traces_at
from vani.readers.trace_reader import Piece, TraceReader
from vani.schema.job import FileAfter
from vani.units import counted

_MAX_READ: Final = 1 << 24
"""Size up to which logs of strace and DFTracer are parsed."""
_FORTRAN: Final = (b"libgfortran.so", b"libifcore.so", b"libifcoremt.so", b"libnvf.so", b"libpgf90.so", b"libflang")
_MAX_OF_PROGRAM: Final = 1 << 26
_BLOCK: Final = 512
"""Unit of `st_blocks` on every file system."""
_MAX_FILES: Final = 10_000
_AT_ONCE: Final = 1_000
_MAX_PARTS: Final = 1_000
_PLAIN: Final = {**os.environ, "LC_ALL": "C"}
_TICK_S: Final = 0.02
"""File systems take the time from the kernel's last tick, which may be before the start of the run."""


def opened(folder: Path, tracer: str, program: Path | None, ran: Traced) -> tuple[list[TraceReader], str]:
    """Readers of a run's traces, and why they cannot be profiled: one line without their path, empty if they can be.

    A long log of strace or DFTracer, which takes time to read, has neither. `program` is None if it is unknown.
    """
    if not ran.files:
        return [], (
            "the run left no trace; was it killed early, is it statically linked, or did it start on a node "
            "that cannot access this folder (docs/tracing.md)?"
        )
    if tracer != "recorder" and ran.bytes > _MAX_READ:
        return [], ""
    try:
        readers = [open_trace(path) for path in traces_at(folder)]
        return readers, next(filter(None, map(_fault_of_reader, readers)), "")
    except InputError as error:
        return [], f"{error.what}{_cause(tracer, program, ran)}"


def _fault_of_reader(reader: TraceReader) -> str:
    if not reader.calls_per_rank().any():
        return "no call on files was recorded"
    surplus = sum(count for name, _, count in reader.facts() if name == "several_launches")
    if surplus:
        return (
            f"several programs wrote into this folder and overwrote files: {counted(surplus, 'rank')} of other "
            f"runs mixed with the last run's ({counted(reader.ranks, 'rank')}); put vani trace before each launch"
        )
    return ""


def _cause(tracer: str, program: Path | None, ran: Traced) -> str:
    """A probable cause, from the kind of program."""
    if tracer != "recorder" or program is None:
        return ""
    if _is_fortran(program):
        return "; Recorder 3.0 may abort Fortran programs in MPI_Finalize before it writes its tables"
    if ran.status and _has_wheel_of_h5py(program):
        return "; the h5py wheel contains its own HDF5, not the one that Recorder was built with"
    return ""


def _is_fortran(program: Path) -> bool:
    """Whether a program links a Fortran library, judged by its first 64 MiB."""
    try:
        with program.open("rb") as file:
            content = file.read(_MAX_OF_PROGRAM)
    except OSError:
        return False
    return content[:4] == b"\x7fELF" and any(name in content for name in _FORTRAN)


def _has_wheel_of_h5py(program: Path) -> bool:
    """Whether a Python's site-packages contain the libraries of h5py's wheel."""
    if not program.name.startswith("python"):
        return False
    places = {program.parent.parent, program.resolve().parent.parent}
    return any(next(place.glob("lib/python3*/site-packages/h5py.libs/*hdf5*"), None) for place in places)


@dataclass(frozen=True)
class Missed:
    """Calls and bytes of a file that a tracer did not record."""

    path: str
    calls: int
    """Data calls that only strace recorded; negative if it recorded fewer: a buffer joined several."""
    read: int
    """Bytes more than the tracer recorded; likewise `written`."""
    written: int
    grown: int
    """Bytes by which the file grew on disk beyond all writes that strace recorded."""
    is_mapped: bool


def files_after(paths: Iterable[str], started_s: float) -> list[FileAfter]:
    """Sizes on disk of the regular files that a run created or changed, and did not remove.

    A file that is younger than the run had no bytes before it. GNU's `stat` prints a file's time of birth, which
    Python's does not have.

    Parameters
    ----------
    started_s
        When the run started, in seconds since 1970.
    """
    named = [path for path in paths if path.startswith("/")][:_MAX_FILES]
    files: list[FileAfter] = []
    for at in range(0, len(named), _AT_ONCE):
        words = ["stat", "--printf=%F\\t%h\\t%s\\t%b\\t%.9W\\t%.9Y\\t%n\\0", "--", *named[at : at + _AT_ONCE]]
        with suppress(OSError):
            # The status shows only that some file is gone.
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=_PLAIN)
            files += _stated(done.stdout.decode(errors="replace"), started_s - _TICK_S)
    return files


def _stated(text: str, started_s: float) -> Iterable[FileAfter]:
    for line in text.split("\0")[:-1]:
        kind, names, size, blocks, born, changed, path = line.split("\t", 6)
        if kind.startswith("regular") and max(float(born), float(changed)) >= started_s:
            # A file with several names (hard links) also grows by writes under the others.
            before = 0 if float(born) >= started_s and names == "1" else None
            allocated = min(_BLOCK * int(blocks), _bytes_of_data(path, int(size)))
            layout = ceph_layout(path)
            yield FileAfter(path=path, size=int(size), allocated=allocated, allocated_before=before, layout=layout)


def _bytes_of_data(path: str, size: int) -> int:
    """Bytes of a file without its holes, and without space that is reserved and not written (`fallocate`)."""
    data = end = 0
    try:
        with Path(path).open("rb", buffering=0) as file:
            for _ in range(_MAX_PARTS):
                begin = os.lseek(file.fileno(), end, os.SEEK_DATA)
                end = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
                data += end - begin
    except OSError as error:
        return data if error.errno == errno.ENXIO else size
    return size


def data_files(reader: TraceReader) -> list[str]:
    """Paths of a trace's files that belong to the data set."""
    table = reader.files()
    pairs = zip(table["path"].to_pylist(), table["class"].to_pylist(), strict=True)
    return [path for path, kind in pairs if kind == FileClass.DATASET]


def _moved_in(folder: Path) -> tuple[dict[str, NDArray[np.int64]], set[str]]:
    """Data calls, bytes read and bytes written of the traces in a folder, by path; and the files that were mapped.

    Raises
    ------
    InputError
        There is no trace, or it cannot be read.
    """
    moved, mapped = dict[str, NDArray[np.int64]](), set[str]()
    for reader in map(open_trace, traces_at(folder)):
        paths, own = reader.files()["path"].to_pylist(), set(data_files(reader))
        mapped |= {path for name, args, _ in reader.facts() if name.startswith("mmap") for path in args} & own
        for batch in reader.batches(range(reader.ranks), Piece()):
            layer, kind, file, flags = (to_numpy(batch[name]) for name in ("layer", "kind", "file", "flags"))
            size = np.maximum(0, to_numpy(batch["bytes"].fill_null(0)))
            rows = np.flatnonzero(
                (layer <= Layer.STDIO) & (kind <= Kind.WRITE) & (file >= 0) & ((flags & Flag.NESTED) == 0)
            )
            sums = np.zeros((len(paths), 3), np.int64)
            np.add.at(sums[:, 0], file[rows], 1)
            for column, direction in ((1, Kind.READ), (2, Kind.WRITE)):
                own_rows = rows[kind[rows] == direction]
                np.add.at(sums[:, column], file[own_rows], size[own_rows])
            for code in np.flatnonzero(sums[:, 0]).tolist():
                if paths[code] in own:
                    moved[paths[code]] = moved.get(paths[code], 0) + sums[code]
    return moved, mapped


def missed(traced: Path, again: Path, files: Sequence[FileAfter]) -> list[Missed]:
    """Files with more bytes in the log of strace, or that were mapped, or that grew by more than their writes.

    Mapped ones come first, as their bytes may be unknown, then those with most bytes.

    Parameters
    ----------
    traced, again
        Folders of the trace, and of strace's log of the second run.
    files
        The files after the first run.

    Raises
    ------
    InputError
        One of them cannot be read.
    """
    (before, _), (after, mapped) = _moved_in(traced), _moved_in(again)
    grown = {file.path: min(file.size, file.allocated) for file in files if file.allocated_before == 0}
    rows = []
    for path in {*before, *after, *mapped, *grown}:
        seen = after.get(path, _NONE)
        calls, read, written = (seen - before.get(path, _NONE)).tolist()
        more = max(0, grown.get(path, 0) - int(seen[2]))
        rows.append(Missed(path, calls, max(0, read), max(0, written), more, path in mapped))
    missed = [row for row in rows if row.read or row.written or row.grown or row.is_mapped]
    return sorted(missed, key=lambda row: (not row.is_mapped, -(row.read + row.written + row.grown), row.path))


_NONE: Final = np.zeros(3, np.int64)
