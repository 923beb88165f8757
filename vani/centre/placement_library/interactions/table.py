"""The table of interactions in SQL."""

from __future__ import annotations

import zlib
from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text

from vani.centre.placement_library.interactions.interaction import Interaction

INTERACTIONS: Final = Table(
    "vani_interaction",
    MetaData(),
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("file_hash", BigInteger, nullable=False),
    Column("file_name", Text, nullable=False),
    Column("file_size", BigInteger),
    Column("extent_id", Integer, nullable=False),
    Column("extent_start", BigInteger, nullable=False),
    Column("extent_end", BigInteger),
    Column("stripe_size", BigInteger, nullable=False),
    Column("stripe_count", Integer, nullable=False),
    Column("mpi_rank", Integer),
    Column("ost_list", Text, nullable=False),
    # A hash of the path, which may be too long for an index.
    Index("vani_interaction_file_hash", "file_hash"),
)
"""The columns of Tarazu's tables, and a hash by which files are found; `lookup.c` uses their names."""


def file_hash(path: str) -> int:
    """CRC-32 of a path, as computed by `lookup.c`; a lookup by hash compares the paths, too."""
    return zlib.crc32(path.encode())


def to_row(row: Interaction) -> dict[str, object]:
    """An interaction as values of the table."""
    return {
        "file_hash": file_hash(row.file),
        "file_name": row.file,
        "file_size": row.file_size,
        "extent_id": row.extent_id,
        "extent_start": row.extent_start,
        "extent_end": row.extent_end,
        "stripe_size": row.stripe_size,
        "stripe_count": row.stripe_count,
        "mpi_rank": row.mpi_rank,
        "ost_list": " ".join(map(str, row.osts)),
    }


def from_row(values: tuple[object, ...]) -> Interaction:
    """An interaction from the values of `INTERACTIONS.c[2:]`.

    Raises
    ------
    ValueError, TypeError
        Another program wrote a value that is not a figure.
    """
    name, size, extent, start, end, stripe, count, rank, osts = values
    if not (isinstance(name, str) and isinstance(osts, str)):
        raise TypeError("a name is not text")
    figures = (extent, start, stripe, count)
    if not all(type(figure) is int for figure in figures) or not all(
        figure is None or type(figure) is int for figure in (size, end, rank)
    ):
        raise TypeError("a figure is not a whole number")
    return Interaction(name, size, extent, start, end, stripe, count, rank, tuple(map(int, osts.split())))  # type: ignore[arg-type]
