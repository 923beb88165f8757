"""`vani history add`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from vani import centre
from vani.centre.history.cli.options import db_option
from vani.cli.options import FILE, quiet_option, system_option
from vani.cli.output import progress_bar, shows_progress
from vani.errors import one_line
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.history.api.add import AddedAndJudged

_SHOWN = 20


class AddOptions(TypedDict):
    """Options passed on to the library unchanged."""

    db: str | None
    totals: bool | None
    workers: int | None
    judge: int
    user: str | None
    key: Path | None
    system: str | None


@click.command()
@click.argument("paths", type=FILE, nargs=-1, required=True, metavar="PATH ...")
@db_option
@click.option(
    "--totals/--profiles",
    default=None,
    help="Store sums of counters or complete profiles; by default sums for 1,000 or more new logs.",
)
@click.option("--workers", type=int, metavar="N", help="Number of reading processes; by default one per core.")
@click.option(
    "--judge",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="Profile and judge the N costliest pairs of application and user.",
)
@click.option("--user", metavar="NAME", help="User who ran the jobs; by default from the logs.")
@click.option("--key", type=FILE, metavar="FILE", help="Key of an anonymised history.")
@system_option()
@quiet_option
def add(paths: tuple[Path, ...], quiet: bool, **options: Unpack[AddOptions]) -> None:  # fmt: skip
    """Add the runs at PATHs: Darshan logs, profiles, traces, and folders of them, recursively.

    Measurements of `vani tune` are added from its tuned.yaml.

    A copy of a log counts once, unchanged files are not read again, and damaged files are
    listed (`vani history damaged`). The same command continues an interrupted `add`.
    """
    with progress_bar(show=shows_progress(quiet=quiet)) as progress:
        done = centre.history_add(*paths, **options, progress=progress)
    _say(done, quiet=quiet)


def _summary(done: AddedAndJudged) -> str:
    added = done.added
    parts = [
        counted(added.runs, "run") + " added" + (" (totals)" if added.totals and added.runs else "")
        if added.runs or not added.sessions
        else "",
        counted(added.sessions, "session") + " of vani tune added" if added.sessions else "",
        counted(added.copies, "copy", "was", "were") + " already stored" if added.copies else "",
        counted(added.unchanged, "file") + " unchanged" if added.unchanged else "",
        counted(done.judged, "run") + " judged" if done.judged else "",
        counted(added.damaged, "file") + " damaged (vani history damaged)" if added.damaged else "",
        counted(len(done.unjudged), "run") + f" not judged ({one_line(done.unjudged[0])})"
        if done.unjudged
        else "",
    ]
    return "; ".join(part for part in parts if part)


def _say(done: AddedAndJudged, *, quiet: bool) -> None:
    """Print the result, then a line for each named file with a problem, and end with status 2 if there is one."""
    if not quiet and len(done.added.refused) < done.added.files:
        click.echo(_summary(done), err=True)
    for line in done.added.refused[:_SHOWN]:
        click.echo(f"vani: {one_line(line)}", err=True)
    if len(done.added.refused) > _SHOWN:
        click.echo(f"vani: and {len(done.added.refused) - _SHOWN:,} more (vani history damaged)", err=True)
    if done.added.refused:
        click.get_current_context().exit(2)
