"""Stores file extents in an interaction database and reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.centre.placement_library.interactions import Interaction as Row
from vani.centre.placement_library.interactions import is_csv, lustre_objections, read, read_csv, store
from vani.centre.plan.schema.plans import PlacedFile, PlacePlan, Plan
from vani.errors import DocumentError
from vani.schema.document import read_text
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.placement_library.interactions import Interaction

@dataclass(frozen=True, slots=True)
class Stored:
    """Numbers of stored rows, and the files that will get Lustre's default layout instead."""

    files: int
    extents: int
    objections: list[str]


def plan_store(plan: PathLike, database: str) -> Stored:
    """Store the placement of file extents in the interaction database.

    Parameters
    ----------
    plan
        A plan of kind `place`, or a CSV with the columns of Tarazu's tables.
    database
        A SQLite file, or the URL of a PostgreSQL database.

    Raises
    ------
    InputError
        Rows contradict each other, or the database cannot be used; it is then unchanged.
    """
    rows = store(_rows_of(plan), database)
    return Stored(len({row.file for row in rows}), len(rows), lustre_objections(rows))


def _rows_of(plan: PathLike) -> list[Interaction]:
    text = read_text(plan)
    if str(plan).endswith(".csv") or is_csv(text):
        return read_csv(text, str(plan))
    document = Plan.load(plan)
    if not isinstance(document, PlacePlan):
        raise DocumentError(
            f"is a plan of kind {document.kind!r}, which places no files",
            where=plan,
            todo="give one of kind 'place', or a CSV of extents",
        )
    return [row for file in document.files if file.command is not None for row in extents_of(file)]


def extents_of(file: PlacedFile, *, pin: bool = True) -> list[Interaction]:
    """The rows of a file, with stripe sizes that Lustre accepts; without `pin`, Lustre chooses the OSTs."""
    return [
        Row(
            file=file.path,
            file_size=file.size,
            extent_id=extent.number,
            extent_start=extent.start,
            extent_end=extent.end if extent.end > extent.start else None,
            stripe_size=extent.set_stripe_size,
            stripe_count=extent.stripe_count,
            mpi_rank=file.rank,
            osts=tuple(extent.osts) if pin else (),
        )
        for extent in file.extents
    ]


def plan_interactions(database: str, path: str | None = None) -> list[Interaction]:
    """Rows of the interaction database for one exact path, or for all files.

    Parameters
    ----------
    database
        A SQLite file, or the URL of a PostgreSQL database.

    Raises
    ------
    InputError
        The database cannot be used or has no interactions.
    """
    return read(database, path)
