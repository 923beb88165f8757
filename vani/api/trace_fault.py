"""Checks whether a traced run can be profiled, by reading only the trace's tables, not its calls and times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.errors import InputError
from vani.units import counted

if TYPE_CHECKING:
    from vani.collect.tracing.run import Traced
    from vani.readers.trace_reader import TraceReader

_READ_WHOLE = 1 << 24
"""Size up to which logs of strace and DFTracer are parsed."""
_FORTRAN = (b"libgfortran.so", b"libifcore.so", b"libifcoremt.so", b"libnvf.so", b"libpgf90.so", b"libflang")
_MOST_OF_PROGRAM = 1 << 26


def fault_of(folder: Path, tracer: str, program: Path | None, ran: Traced) -> str:
    """Why a trace cannot be profiled, as one line without its path; empty if it can be.

    Parameters
    ----------
    program
        Path of the traced program; None if unknown.
    """
    from vani.readers.open import open_trace, traces_at  # noqa: PLC0415 - loads Arrow

    if not ran.files:
        return (
            "the run left no trace; was it killed early, is it statically linked, or did it start on a node "
            "that cannot access this folder (docs/tracing.md)?"
        )
    if tracer != "recorder" and ran.bytes > _READ_WHOLE:
        return ""
    try:
        for path in traces_at(folder):
            fault = _fault_of(open_trace(path))
            if fault:
                return fault
    except InputError as error:
        return f"{error.what}{_cause(tracer, program, ran)}"
    return ""


def _fault_of(reader: TraceReader) -> str:
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
            content = file.read(_MOST_OF_PROGRAM)
    except OSError:
        return False
    return content[:4] == b"\x7fELF" and any(name in content for name in _FORTRAN)


def _has_wheel_of_h5py(program: Path) -> bool:
    """Whether a Python's site-packages contain the libraries of h5py's wheel."""
    if not program.name.startswith("python"):
        return False
    places = {program.parent.parent, program.resolve().parent.parent}
    return any(next(place.glob("lib/python3*/site-packages/h5py.libs/*hdf5*"), None) for place in places)
