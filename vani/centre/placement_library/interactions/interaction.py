"""One row of the interaction database, and constraints on the rows of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter

from vani.errors import InputError, one_line
from vani.units import GiB, KiB, counted

LONGEST_PATH = 4095
"""Bytes: Linux opens no file with a longer path."""
MOST_STRIPES = 2000
"""Lustre's LOV_MAX_STRIPE_COUNT."""
_LARGEST = 2**63 - 1
"""SQL's largest BIGINT; no file is larger."""
_LARGEST_OST = 65_534
"""An index has 16 bits in `lfs setstripe`, where -1 means any."""
_STRIPE_UNIT = 64 * KiB
_STRIPE_LIMIT = 4 * GiB


@dataclass(frozen=True, slots=True)
class Interaction:
    """An extent of a file, and its placement: a row of Tarazu's tables.

    A file with one row gets a plain layout; a file with several rows gets a component for each.

    Parameters
    ----------
    file
        Absolute path, exactly as the program names it.
    file_size
        Expected size in bytes; None if unknown.
    extent_id
        Number of the extent in the file, from 1.
    extent_start, extent_end
        Bytes; the end is exclusive, and None means the end of the file.
    stripe_size
        Bytes.
    mpi_rank
        The process that creates the file; None if it does not matter.
    stripe_count
        0 for a first extent on the metadata target (DoM).
    osts
        Indices of OSTs, one per stripe, in order; empty leaves the choice to Lustre.
    """

    file: str
    file_size: int | None
    extent_id: int
    extent_start: int
    extent_end: int | None
    stripe_size: int
    stripe_count: int
    mpi_rank: int | None
    osts: tuple[int, ...]


def refuse_contradictions(rows: Iterable[Interaction]) -> list[Interaction]:
    """The rows sorted by file and extent, in order of the files.

    Raises
    ------
    InputError
        A path cannot be opened by any program, a figure is out of range, or extents of a file overlap or leave a gap.
    """
    by_file: dict[str, list[Interaction]] = {}
    for row in rows:
        _refuse_wrong(row)
        by_file.setdefault(row.file, []).append(row)
    for extents in by_file.values():
        extents.sort(key=attrgetter("extent_start"))
        _refuse_gaps(extents)
    return [row for extents in by_file.values() for row in extents]


def lustre_objections(rows: Sequence[Interaction]) -> list[str]:
    """Reasons why Lustre refuses rows, one sentence per file: these files get the default layout.

    Parameters
    ----------
    rows
        As returned by `refuse_contradictions`.
    """
    objections = []
    for file, extents in groupby(rows, key=attrgetter("file")):
        of_file = list(extents)
        why = next((why for row in of_file if (why := _objection(row, last=row is of_file[-1]))), None)
        if why is not None:
            objections.append(f"{one_line(file)}: {why}")
    return objections


def _objection(row: Interaction, *, last: bool) -> str | None:
    if not row.stripe_count and last:
        return "all of it is on the metadata target"
    if row.stripe_size % _STRIPE_UNIT:
        return f"stripe size {row.stripe_size:,} is not a multiple of 65,536"
    if row.stripe_size >= _STRIPE_LIMIT:
        return f"stripe size {row.stripe_size:,} is not below 4 GiB"
    # The last component is extended to the end of the file, so that the file may exceed its expected size.
    if not last and row.extent_end is not None and row.extent_end % row.stripe_size:
        return f"extent end {row.extent_end:,} is not a multiple of its stripe size {row.stripe_size:,}"
    return None


def _refuse_wrong(row: Interaction) -> None:
    where = one_line(row.file)[:200] or "a file"
    try:
        size = len(row.file.encode())
    except UnicodeEncodeError:
        raise InputError("the path is not UTF-8 text", where=where, todo="rename the file") from None
    if not row.file.startswith("/") or "\0" in row.file:
        raise InputError("is not an absolute path", where=where, todo="name files as programs open them, from /")
    if size > LONGEST_PATH:
        raise InputError(f"the path has {size:,} bytes", where=where, todo=f"{LONGEST_PATH:,} is the most")
    for name, value, least, most in (
        ("file size", row.file_size, 0, _LARGEST),
        ("extent id", row.extent_id, 0, 2**31 - 1),
        ("extent start", row.extent_start, 0, _LARGEST),
        ("extent end", row.extent_end, row.extent_start + 1, _LARGEST),
        ("stripe size", row.stripe_size, 1, _LARGEST),
        ("stripe count", row.stripe_count, 0, MOST_STRIPES),
        ("MPI rank", row.mpi_rank, 0, 2**31 - 1),
    ):
        if value is not None and not least <= value <= most:
            raise InputError(f"{name} is {value:,}", where=where, todo=f"give {least:,} to {most:,}")
    if not row.stripe_count and (row.extent_start or row.extent_end is None):
        raise InputError(
            "an extent without stripes is not the first of several",
            where=where,
            todo="only the beginning of a file can be on the metadata target",
        )
    if row.osts and len(row.osts) != row.stripe_count:
        listed = counted(len(row.osts), "OST")
        raise InputError(
            f"stripe count is {row.stripe_count:,}, but {listed} listed",
            where=where,
            todo="list one per stripe",
        )
    if len(set(row.osts)) != len(row.osts):
        raise InputError(
            "an OST is listed twice", where=where, todo="stripes of an extent are on distinct OSTs"
        )
    if wrong := [ost for ost in row.osts if not 0 <= ost <= _LARGEST_OST]:
        raise InputError(f"OST {wrong[0]}", where=where, todo=f"indices are 0 to {_LARGEST_OST:,}")


def _refuse_gaps(extents: Sequence[Interaction]) -> None:
    where = one_line(extents[0].file)[:200]
    if len({row.extent_id for row in extents}) != len(extents):
        raise InputError("an extent id is given twice", where=where, todo="number the extents of a file")
    if len({row.file_size for row in extents}) > 1:
        raise InputError("the extents give two file sizes", where=where, todo="give one")
    if extents[0].extent_start != 0:
        raise InputError(
            f"the first extent starts at {extents[0].extent_start:,}", where=where, todo="begin at 0"
        )
    for row, following in pairwise(extents):
        if row.extent_end != following.extent_start:
            end = "the end of the file" if row.extent_end is None else f"{row.extent_end:,}"
            raise InputError(
                f"an extent ends at {end}, the next one starts at {following.extent_start:,}",
                where=where,
                todo="let each start where the one before ends",
            )
