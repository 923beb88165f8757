"""Interactions in a database: the table, stored in one transaction, and read."""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from vani.centre.database import Address, address_of, engine_of, in_words, readable, replaced, server
from vani.centre.placement_library import interactions
from vani.centre.placement_library.interactions import Interaction
from vani.centre.plan.schema.plans import PlacePlan, Plan
from vani.errors import DocumentError, InputError
from vani.schema.document import read_text
from vani.schema.settings import PathLike

try:
    import sqlalchemy as sa
except ImportError as error:
    raise InputError("databases need SQLAlchemy", todo="pip install 'vani-io[centre]'") from error

INTERACTIONS: Final = sa.Table(
    "vani_interaction",
    sa.MetaData(),
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("file_hash", sa.BigInteger, nullable=False),
    sa.Column("file_name", sa.Text, nullable=False),
    sa.Column("file_size", sa.BigInteger),
    sa.Column("extent_id", sa.Integer, nullable=False),
    sa.Column("extent_start", sa.BigInteger, nullable=False),
    sa.Column("extent_end", sa.BigInteger),
    sa.Column("stripe_size", sa.BigInteger, nullable=False),
    sa.Column("stripe_count", sa.Integer, nullable=False),
    sa.Column("mpi_rank", sa.Integer),
    sa.Column("ost_list", sa.Text, nullable=False),
    # A hash of the path, which may be too long for an index.
    sa.Index("vani_interaction_file_hash", "file_hash"),
)
"""The columns of Tarazu's tables, and a hash by which files are found; `lookup.c` uses their names."""


def file_hash(path: str) -> int:
    """CRC-32 of a path, as computed by `lookup.c`; a lookup by hash compares the paths, too."""
    return zlib.crc32(path.encode())


def to_row(row: Interaction) -> dict[str, object]:
    """An interaction as values of the table."""
    cells = zip(interactions.COLUMNS, interactions.cells_of(row), strict=True)
    return {"file_hash": file_hash(row.file), **dict(cells)}


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


_AT_ONCE: Final = 500
"""Paths per statement: each needs two variables, and old versions of SQLite allow 999."""


def store(rows: Iterable[Interaction], database: str) -> list[Interaction]:
    """Store the decisions for files in one transaction, replacing earlier ones for these files.

    A missing SQLite file is created; on a server, the database must exist, and the table is created.

    Returns
    -------
    list
        The rows, by file and extent.

    Raises
    ------
    InputError
        Rows contradict each other, or the database cannot be used, is locked, is read-only or belongs to another
        program.
    """
    checked = interactions.refuse_contradictions(rows)
    address = address_of(database)
    with _errors_in_words(address):
        if address.file is None:
            _write(server(address), checked, address)
        else:
            with replaced(address.file) as copy:
                _write(engine_of(copy, "rw"), checked, address)
    return checked


def plan_interactions(database: str, path: str | None = None) -> list[Interaction]:
    """Rows of the interaction database for one exact path or for all, by file in the order of storing, and by extent.

    Parameters
    ----------
    database
        A SQLite file, or the URL of a PostgreSQL database.

    Raises
    ------
    InputError
        The database cannot be used or contains no interactions.
    """
    address = address_of(database)
    engine = server(address) if address.file is None else engine_of(readable(address.file))
    wanted = sa.select(*list(INTERACTIONS.c)[2:]).order_by(INTERACTIONS.c.id)
    if path is not None:
        try:
            wanted = wanted.where(INTERACTIONS.c.file_hash == file_hash(path))
        except UnicodeEncodeError:
            return []
    with _errors_in_words(address), engine.connect() as connection:
        if not _has_table(connection, address):
            raise InputError("contains no interactions", where=address.shown, todo="fill it with `vani plan store`")
        try:
            stored = [from_row(tuple(row)) for row in connection.execute(wanted)]
        except (TypeError, ValueError) as error:
            what = f"contains invalid rows ({error})"
            raise InputError(what, where=address.shown, todo="fill another one") from error
    return [row for row in stored if path is None or row.file == path]


def _write(engine: sa.Engine, rows: Sequence[Interaction], address: Address) -> None:
    with engine.begin() as connection:
        if not _has_table(connection, address):
            INTERACTIONS.create(connection, checkfirst=True)
        if connection.dialect.name == "postgresql":
            # Two that store at the same time would both delete first, and both sets of rows would remain.
            connection.exec_driver_sql("LOCK TABLE vani_interaction IN SHARE ROW EXCLUSIVE MODE")
        files, of = list(dict.fromkeys(row.file for row in rows)), INTERACTIONS.c
        for begin in range(0, len(files), _AT_ONCE):
            names = files[begin : begin + _AT_ONCE]
            hashes = list(map(file_hash, names))
            connection.execute(sa.delete(INTERACTIONS).where(of.file_hash.in_(hashes), of.file_name.in_(names)))
        if rows:
            connection.execute(sa.insert(INTERACTIONS), [to_row(row) for row in rows])


def _has_table(connection: sa.Connection, address: Address) -> bool:
    """Whether the table exists; a table of that name with other columns is refused."""
    inspector = sa.inspect(connection)
    # Excludes views, because reading one might never end.
    if INTERACTIONS.name not in inspector.get_table_names():
        return False
    columns = {column["name"] for column in inspector.get_columns(INTERACTIONS.name)}
    if columns != {column.name for column in INTERACTIONS.c}:
        what = f"its table {INTERACTIONS.name} belongs to another version or program"
        raise InputError(what, where=address.shown, todo="name another database")
    return True


@contextmanager
def _errors_in_words(address: Address) -> Iterator[None]:
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
        raise in_words(error, address) from error
    except UnicodeError as error:
        what = "contains or names bytes that are not text"
        raise InputError(what, where=address.shown, todo="name another one") from error


# Stores file extents in an interaction database and reads them.

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
    return Stored(len({row.file for row in rows}), len(rows), interactions.lustre_objections(rows))


def _rows_of(plan: PathLike) -> list[Interaction]:
    text = read_text(plan)
    if str(plan).endswith(".csv") or interactions.is_csv(text):
        return interactions.read_csv(text, str(plan))
    document = Plan.load(plan)
    if not isinstance(document, PlacePlan):
        what = f"is a plan of kind {document.kind!r}, which places no files"
        raise DocumentError(what, where=plan, todo="give one of kind 'place', or a CSV of extents")
    files = [file for file in document.files if file.command is not None]
    return [row for file in files for row in interactions.extents_of(file, pin=document.pin)]

