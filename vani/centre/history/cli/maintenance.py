"""Commands that maintain a history: list, damaged, remove, anonymise, export, import."""

from __future__ import annotations

from pathlib import Path

import click

from vani import centre
from vani.centre.history.cli.options import db_option
from vani.cli.options import FILE, output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs
from vani.units import counted


@click.command()
@db_option
@output_option(help="File to write.", required=True)
@click.option("--parquet", is_flag=True, help="Write Parquet with one row per run, for other programs.")
def export(db: str | None, output: Path, parquet: bool) -> None:
    """Export all runs to one file (lines of JSON, compressed with gzip), for another database."""
    check_outputs([output], [Path(db) if db else None])
    write = centre.history_export_runs if parquet else centre.history_export
    click.echo(f"{counted(write(output, db=db), 'run')} exported", err=True)


@click.command("import")
@click.argument("file", type=FILE)
@db_option
def import_(file: Path, db: str | None) -> None:
    """Add the runs of FILE (from `vani history export`), or the jobs of a Slurm accounting file (from sacct): all or
    none.

    \b
    TZ=UTC sacct --allocations --parsable2 --starttime 2026-11-01 --format \\
      JobIDRaw,User,Account,QOS,Partition,JobName,NNodes,State,Submit,Start,ElapsedRaw

    Jobs are matched to runs by number: `vani history top --by account` then sums losses by account. Importing the
    same file again changes nothing. Lines without a job are reported and skipped.
    """
    click.echo(_jobs_of(file, db) if centre.is_accounting_file(file) else _runs_of(file, db), err=True)


def _runs_of(file: Path, db: str | None) -> str:
    new, number = centre.history_import(file, db=db)
    return f"{counted(new, 'run')} of {number:,} were new"


def _jobs_of(file: Path, db: str | None) -> str:
    done = centre.history_import_jobs(file, db=db, say=lambda text: click.echo(f"vani: {text}", err=True))
    refused = f", {counted(done.refused, 'line')} left out" if done.refused else ""
    return f"{counted(done.new, 'job')} of {done.jobs:,} were new, {done.with_runs:,} have runs{refused}"


@click.command("list")
@db_option
def list_(db: str | None) -> None:
    """List the number of stored runs, by month."""
    from vani.centre.history.text.contents import contents_by_month  # noqa: PLC0415

    emit(contents_by_month(centre.history_list(db=db)), None)


@click.command()
@db_option
def damaged(db: str | None) -> None:
    """List files that could not be read, each with the reason."""
    from vani.centre.history.text.contents import reasons  # noqa: PLC0415

    emit(reasons((source.path, source.reason or "") for source in centre.history_damaged(db=db)), None)


@click.command()
@db_option
@click.option("--user", required=True, metavar="NAME", help="User whose runs are deleted.")
@click.option("--application", metavar="APP", help="Delete only runs of this application.")
def remove(db: str | None, user: str, application: str | None) -> None:
    """Delete all runs of a user and everything stored about them."""
    removed = centre.history_remove(user=user, application=application, db=db)
    click.echo(f"{counted(removed, 'run')} removed", err=True)


@click.command()
@db_option
@click.option(
    "--key",
    type=FILE,
    required=True,
    metavar="FILE",
    help="File with the key, created if missing. Keep it apart from the history.",
)
def anonymise(db: str | None, key: Path) -> None:  # fmt: skip
    """Replace users and paths by keyed hashes: equal names get equal hashes. No name remains in the database.

    Without the key, names cannot be recovered. With it, later logs get the same hashes (`add --key`). Copies
    of the database still contain the names.
    """
    number = centre.history_anonymise(key, db=db)
    click.echo(f"{counted(number, 'run')} anonymised; the key is in {key}", err=True)
