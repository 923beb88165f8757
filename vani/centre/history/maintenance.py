"""Commands that maintain a history: list, damaged, remove, anonymise, export, import."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click
from pydantic import Field

from vani.centre.history.accounting import history_import_jobs, is_accounting_file
from vani.centre.history.exchange import history_export, history_export_runs, history_import
from vani.centre.history.names import Names, PlainNames
from vani.centre.history.ranking_text import damaged
from vani.centre.history.rows import AccountedJob, AnyRow, Source, StoredRun, Verdict
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import HistoryContents, HistoryMonth, MeasuredSetting
from vani.centre.history.settings import HistorySettings
from vani.centre.prediction.creations.series import hide_creations
from vani.cli.options import FILE, output_option, settings_options
from vani.cli.output import check_outputs, emit
from vani.errors import InputError, StoreError, one_line
from vani.render.table import table
from vani.schema.settings import Option, PathLike
from vani.schema.tuned import Setting
from vani.units import counted

if TYPE_CHECKING:
    import sqlalchemy as sa


def measured_settings(connection: sa.Connection) -> list[MeasuredSetting]:
    """Settings of all `vani tune` sessions, the latest first."""
    return [
        MeasuredSetting(
            **{name: getattr(row, name) for name in MeasuredSetting.model_fields.keys() & set(row.__slots__)}
            | {
                "setting": Setting.model_validate_json(row.setting).label, "rules": list(row.rules),
                "day": datetime.fromtimestamp(row.ended, UTC).date().isoformat(),
            }
        )
        for row in read.measurements(connection)
    ]


def contents_by_month(contents: HistoryContents) -> str:
    """Write the number of runs by month, and the measured settings."""
    lines = [
        f"{one_line(contents.place)}: {counted(contents.runs, 'run')}, {counted(contents.profiles, 'profile')}, "
        f"{counted(contents.judged, 'run')} judged"
        + ("; users and paths are hashes" if contents.anonymised else ""),
        *table(
            ("month", "runs", "users"),
            [(month.month or "unknown", f"{month.runs:,}", f"{month.users:,}") for month in contents.months],
            left=(), all_rows=True,
        ),
    ]
    if contents.settings:
        rows = [*map(setting_cells, contents.settings)]
        lines += ["", "Settings measured by vani tune:", *table(_SETTING_HEAD, rows, left=range(1, 6), all_rows=True)]
    return "\n".join([*lines, *([damaged(contents.damaged)] if contents.damaged else [])]) + "\n"


_SETTING_HEAD = ("day", "application", "machine", "setting", "by", "verdict", "processes", "times as fast", "runs")


def setting_cells(row: MeasuredSetting) -> tuple[str, ...]:
    """A measured setting as table cells: texts from day to verdict, then numbers."""
    speedup = "-" if row.speedup is None else f"{row.speedup:.2f}"
    if row.low is not None and row.high is not None:
        speedup += f" ({row.low:.2f} to {row.high:.2f})"
    processes = "unknown" if row.processes is None else f"{row.processes:,}"
    names = (row.application or "unknown", row.machine or "unknown", row.setting)
    words = (row.day, *map(one_line, names), ", ".join(row.rules), row.verdict.replace("_", " "))
    return (*words, processes, speedup, f"{row.runs:,}")


_KEY_BYTES = 32
_AT_ONCE: Final = 5000
"""Number of rows in memory; whole profiles are larger."""
_FEW: Final = 50
_KEYS: Final[Mapping[type[AnyRow], str]] = {AccountedJob: "job", Source: "place", StoredRun: "id", Verdict: "digest"}
"""Kinds with many rows, each with a unique column."""


def names_of(key: Path | None, *, make: bool = False) -> PlainNames:
    """How to write names: as hashes with the key in a file, or plain without one.

    Raises
    ------
    InputError
        The file does not exist, or contains no key.
    """
    if key is None:
        return PlainNames()
    secret = b""
    with suppress(ValueError):
        secret = bytes.fromhex(secret_in(key, make=secrets.token_hex(_KEY_BYTES) if make else None))
    if len(secret) != _KEY_BYTES:
        raise InputError("contains no key", where=key, todo="name the file of `vani history anonymise --key`")
    return Names(secret)


def secret_in(path: Path, *, make: str | None) -> str:
    """Read a secret from a file; a missing one is created with `make`, readable only by its owner.

    Raises
    ------
    InputError
        The file cannot be read or written.
    """
    try:
        if make is not None and not path.exists():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(make + "\n")
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text"
        raise InputError(f"cannot be used ({why})", where=path, todo="name another file") from error


def history_anonymise(key: PathLike, *, db: PathLike | None = None) -> int:
    """Replace users and paths in the whole history with keyed hashes; return the number of runs.

    A missing key is created. With the same key, equal names get equal hashes.

    Raises
    ------
    InputError
        The key has the database's own path, or is invalid.
    StoreError
        The store was anonymised with another key.
    """
    store, key = Store(db), Path(key)
    if not store.exists():
        with store.reading():
            pass
    plain = names_of(key, make=True)
    assert isinstance(plain, Names)
    with store.writing() as connection:
        before = read.fact(connection, "names")
        if before is not None and before != plain.key_id:
            raise StoreError("has hashes of another key", where=store.name, todo="name the key that it was made with")
        sessions = {row.user for row in read.measurements(connection)}
        names = Names(bytes.fromhex(secret_in(key, make=None)), {*read.users(connection), *sessions})
        for kind, key_column in _KEYS.items():
            for page in read.pages(connection, tables.OF_ROWS[kind], key_column, _AT_ONCE):
                rows = [kind(**{name: row[name] for name in kind.__slots__}) for row in page]
                if kind is Source:
                    # Its key is derived from the path.
                    write.delete(connection, tables.sources, "place", [row["place"] for row in page])
                write.put(connection, map(names.row, rows))
        for kind in tables.OF_ROWS.keys() - _KEYS.keys():
            rows = list(read.rows(connection, kind))
            write.delete(connection, tables.OF_ROWS[kind])
            write.put(connection, map(names.row, rows))
        write.remake_sums(connection)
        for page in read.pages(connection, tables.profiles, "digest", _FEW):
            write.put_profiles(connection, {row["digest"]: names.packed_profile(bytes(row["content"])) for row in page})
        for page in read.pages(connection, tables.creations, "digest", _FEW):
            hidden = {row["digest"]: (row["files"], hide_creations(bytes(row["content"]), names)) for row in page}
            write.put_creations(connection, hidden)
        write.set_fact(connection, "names", names.key_id or "")
        number = read.number_of(connection, tables.runs)
    store.compact()
    return number


def history_list(*, db: PathLike | None = None) -> HistoryContents:
    """Count the runs per month, and the files.

    Raises
    ------
    InputError
        There is no history; this applies to all functions here.
    """
    store = Store(db)
    with store.reading() as connection:
        months = [
            HistoryMonth(
                month=None if day is None else datetime.fromtimestamp(86400 * day, UTC).strftime("%Y-%m"),
                runs=runs, users=users,
            )
            for day, runs, users in read.months(connection)
        ]  # fmt: skip
        return HistoryContents(
            place=store.name, runs=sum(month.runs for month in months),
            profiles=read.number_of(connection, tables.profiles), judged=read.number_of(connection, tables.judged),
            damaged=read.count_damaged(connection), anonymised=read.fact(connection, "names") is not None,
            months=months, settings=measured_settings(connection),
        )  # fmt: skip


def history_damaged(*, db: PathLike | None = None) -> list[Source]:
    """Files that could not be read, each with its reason."""
    with Store(db).reading() as connection:
        return read.damaged(connection)


def history_remove(*, user: str, application: str | None = None, db: PathLike | None = None) -> int:
    """Delete all runs of a user, or those of one application, completely; return their number.

    Raises
    ------
    InputError
        No such runs.
    """
    store = Store(db)
    with store.writing() as connection:
        removed = write.forget_user(connection, user, application)
        if not removed:
            what = f"no runs{'' if application is None else f' of {one_line(application)}'} by {one_line(user)}"
            raise InputError(what, where=store.name, todo="`vani history top --by user` lists users")
    store.compact()
    return removed


@click.command("list")
@settings_options(HistorySettings)
def list_command(settings: HistorySettings) -> None:
    """List the number of stored runs, by month."""
    emit(contents_by_month(history_list(db=settings.db)), None)


@click.command("damaged")
@settings_options(HistorySettings)
def damaged_command(settings: HistorySettings) -> None:
    """List files that could not be read, each with the reason."""
    damaged = history_damaged(db=settings.db)
    emit("".join(f"{one_line(source.path)}: {one_line(source.reason or '')}\n" for source in damaged), None)


class RemoveSettings(HistorySettings):
    """Which runs to delete."""

    user: Annotated[str, Option(metavar="NAME")] = Field(description="User whose runs are deleted.")
    application: Annotated[str | None, Option(metavar="APP")] = Field(
        None, description="Delete only runs of this application."
    )


@click.command("remove")
@settings_options(RemoveSettings)
def remove_command(settings: RemoveSettings) -> None:
    """Delete all runs of a user and everything stored about them."""
    click.echo(f"{counted(history_remove(**dict(settings)), 'run')} removed", err=True)


class AnonymiseSettings(HistorySettings):
    """Where the key is."""

    key: Annotated[Path, Option(metavar="FILE")] = Field(
        description="File with the key, created if missing. Keep it apart from the history."
    )


@click.command("anonymise")
@settings_options(AnonymiseSettings)
def anonymise_command(settings: AnonymiseSettings) -> None:
    """Replace users and paths by keyed hashes: equal names get equal hashes. No name remains in the database.

    Without the key, names cannot be recovered. With it, later logs get the same hashes (`add --key`). Copies
    of the database still contain the names.
    """
    number = history_anonymise(**dict(settings))
    click.echo(f"{counted(number, 'run')} anonymised; the key is in {settings.key}", err=True)


class ExportSettings(HistorySettings):
    """The form of an export."""

    parquet: bool = Field(False, description="Write Parquet with one row per run, for other programs.")


@click.command("export")
@settings_options(ExportSettings)
@output_option(help="File to write.", required=True)
def export_command(settings: ExportSettings, output: Path) -> None:
    """Export the whole history to one SQLite file, for another database."""
    check_outputs([output], [Path(settings.db) if settings.db else None])
    export = history_export_runs if settings.parquet else history_export
    click.echo(f"{counted(export(output, db=settings.db), 'run')} exported", err=True)


@click.command("import")
@click.argument("file", type=FILE)
@settings_options(HistorySettings)
def import_command(file: Path, settings: HistorySettings) -> None:
    """Add the runs of FILE (from `vani history export`), or the jobs of a Slurm accounting file (from sacct): all or
    none.

    \b
    sacct --allocations --parsable2 --starttime 2026-11-01 --format JobIDRaw,User,Account,QOS

    Jobs are matched to runs by number: `vani history top --by account` then sums losses by account. Importing the
    same file again changes nothing. Lines without a job are reported and skipped.
    """
    if not is_accounting_file(file):
        new, number = history_import(file, db=settings.db)
        click.echo(f"{counted(new, 'run')} of {number:,} were new", err=True)
        return
    done = history_import_jobs(file, db=settings.db, say=lambda text: click.echo(f"vani: {text}", err=True))
    refused = f", {counted(done.refused, 'line')} left out" if done.refused else ""
    click.echo(f"{counted(done.new, 'job')} of {done.jobs:,} were new, {done.with_runs:,} have runs{refused}", err=True)
