"""The interaction database (Tarazu, tables 1 and 2): where the extents of files are, or will be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final

from vani.centre.columns import parse_csv
from vani.centre.plan.placement.layouts import Extent
from vani.centre.plan.schema.jobs import Creation
from vani.centre.plan.schema.plans import PlacedExtent, PlacedFile
from vani.errors import InputError, one_line
from vani.render.table import csv_table
from vani.units import GiB, KiB, counted

# One row of the interaction database, and constraints on the rows of a file.

LONGEST_PATH = 4095
"""Bytes: Linux opens no file with a longer path."""
MAX_STRIPES = 2000
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


def _refused(row: Interaction, what: str, todo: str) -> InputError:
    return InputError(what, where=one_line(row.file)[:200] or "a file", todo=todo)


def _refuse_wrong(row: Interaction) -> None:
    try:
        size = len(row.file.encode())
    except UnicodeEncodeError:
        raise _refused(row, "the path is not UTF-8 text", "rename the file") from None
    if not row.file.startswith("/") or "\0" in row.file:
        raise _refused(row, "is not an absolute path", "name files as programs open them, from /")
    if size > LONGEST_PATH:
        raise _refused(row, f"the path has {size:,} bytes", f"{LONGEST_PATH:,} is the most")
    for name, value, least, most in (
        ("file size", row.file_size, 0, _LARGEST),
        ("extent id", row.extent_id, 0, 2**31 - 1),
        ("extent start", row.extent_start, 0, _LARGEST),
        ("extent end", row.extent_end, row.extent_start + 1, _LARGEST),
        ("stripe size", row.stripe_size, 1, _LARGEST),
        ("stripe count", row.stripe_count, 0, MAX_STRIPES),
        ("MPI rank", row.mpi_rank, 0, 2**31 - 1),
    ):
        if value is not None and not least <= value <= most:
            raise _refused(row, f"{name} is {value:,}", f"give {least:,} to {most:,}")
    if not row.stripe_count and (row.extent_start or row.extent_end is None):
        todo = "only the beginning of a file can be on the metadata target"
        raise _refused(row, "an extent without stripes is not the first of several", todo)
    if row.osts and len(row.osts) != row.stripe_count:
        what = f"stripe count is {row.stripe_count:,}, but {counted(len(row.osts), 'OST')} listed"
        raise _refused(row, what, "list one per stripe")
    if len(set(row.osts)) != len(row.osts):
        raise _refused(row, "an OST is listed twice", "stripes of an extent are on distinct OSTs")
    if wrong := [ost for ost in row.osts if not 0 <= ost <= _LARGEST_OST]:
        raise _refused(row, f"OST {wrong[0]}", f"indices are 0 to {_LARGEST_OST:,}")


def _refuse_gaps(extents: Sequence[Interaction]) -> None:
    first = extents[0]
    if len({row.extent_id for row in extents}) != len(extents):
        raise _refused(first, "an extent id is given twice", "number the extents of a file")
    if len({row.file_size for row in extents}) > 1:
        raise _refused(first, "the extents give two file sizes", "give one")
    if first.extent_start != 0:
        raise _refused(first, f"the first extent starts at {first.extent_start:,}", "begin at 0")
    for row, following in pairwise(extents):
        if row.extent_end != following.extent_start:
            end = "the end of the file" if row.extent_end is None else f"{row.extent_end:,}"
            what = f"an extent ends at {end}, the next one starts at {following.extent_start:,}"
            raise _refused(first, what, "let each start where the one before ends")


# The interaction database as CSV, with the columns of Tarazu's tables.

COLUMNS: Final = (
    "file_name", "file_size", "extent_id", "extent_start", "extent_end", "stripe_size", "stripe_count", "mpi_rank",
    "ost_list",
)  # fmt: skip
"""In the order of the attributes of `Interaction`."""
_NEEDED: Final = ("file_name", "stripe_size", "stripe_count", "ost_list")
"""The columns of a file with a plain layout, whose extents have none."""
_ALIASES: Final = {"file": "file_name", "rank": "mpi_rank"}
_DIGITS: Final = 19
_MAX_ROWS: Final = 10_000_000


def is_csv(text: str) -> bool:
    """Whether a text begins like such a table: a header line, after lines that begin with `#`."""
    first = next((line for line in text.splitlines() if not line.startswith("#")), "")
    try:
        return set(_NEEDED) <= set(parse_csv(first, "", most=0, named=_column).head)
    except InputError:
        return False


def read_csv(text: str, where: str) -> list[Interaction]:
    """Parse rows.

    An empty cell means unknown, and `extent_end` may also be -1 or EOF; OSTs are separated by spaces.

    Raises
    ------
    InputError
        A column or cell is invalid.
    """
    table, todo = parse_csv(text, where, most=_MAX_ROWS, named=_column), f"give {', '.join(COLUMNS)}"
    if unknown := [name for name in table.head if name not in COLUMNS]:
        raise InputError(f"column {unknown[0][:60]!r} is not known", where=where, todo=todo)
    if missing := [name for name in _NEEDED if name not in table.head]:
        raise InputError(f"column '{missing[0]}' is missing", where=where, todo=todo)
    rows = enumerate(table.rows)
    return [_row(dict(zip(table.head, cells, strict=True)), table.place(number)) for number, cells in rows]


def cells_of(row: Interaction) -> tuple[object, ...]:
    """The values of `COLUMNS`."""
    *figures, osts = attrgetter(*Interaction.__slots__)(row)
    return (*figures, " ".join(map(str, osts)))


def write_csv(rows: Iterable[Interaction]) -> str:
    """Format rows as CSV that `read_csv` accepts."""
    return csv_table([COLUMNS, *map(cells_of, rows)])


def _column(name: str) -> str:
    """The column that a name in the first line means."""
    plain = name.strip().lower().replace(" ", "_")
    return _ALIASES.get(plain, plain)


def _row(cells: dict[str, str], line: str) -> Interaction:
    def number(name: str) -> int | None:
        text = cells.get(name, "").strip()
        return None if not text else _integer(text, name, line)

    def needed(name: str) -> int:
        value = number(name)
        if value is None:
            raise InputError(f"{name} is empty", where=line, todo="give a whole number")
        return value

    end = cells.get("extent_end", "").strip()
    extent, start = number("extent_id"), number("extent_start")
    return Interaction(
        file=cells["file_name"], file_size=number("file_size"), extent_id=1 if extent is None else extent,
        extent_start=0 if start is None else start,
        extent_end=None if end.upper() in {"", "-1", "EOF"} else _integer(end, "extent_end", line),
        stripe_size=needed("stripe_size"), stripe_count=needed("stripe_count"), mpi_rank=number("mpi_rank"),
        osts=tuple(_integer(text, "ost_list", line) for text in cells["ost_list"].split()),
    )  # fmt: skip


def _integer(text: str, name: str, line: str) -> int:
    # Python refuses to parse thousands of digits, and accepts digits of other scripts.
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise InputError(f"{name} is {one_line(text)[:40]!r}", where=line, todo="give a whole number, 0 or more")
    return int(text)


def extents_of(file: PlacedFile, *, pin: bool = True) -> list[Interaction]:
    """The rows of a file, with stripe sizes that Lustre accepts; without `pin`, Lustre chooses the OSTs."""
    return [
        interaction_of(file, extent, extent.set_stripe_size, extent.stripe_count, tuple(extent.osts) if pin else ())
        for extent in file.extents
    ]


def interaction_of(
    file: PlacedFile | Creation, extent: PlacedExtent | Extent, stripe_size: int, stripe_count: int,
    osts: tuple[int, ...] = (),
) -> Interaction:
    """The row of an extent that a plan places, or that a layout gives a file to come."""
    end = extent.end if extent.end > extent.start else None
    where = extent.number, extent.start, end, stripe_size, stripe_count
    return Interaction(file.path, file.size, *where, file.rank, osts)
