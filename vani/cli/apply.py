"""`vani apply`: sets the layouts of advice or of a tuned.yaml, checks them, and undoes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani import api
from vani.cli.options import FILE
from vani.errors import one_line

if TYPE_CHECKING:
    from vani.api.apply import Applied

@click.command()
@click.argument("document", type=FILE, metavar="ADVICE")
@click.option("--undo", is_flag=True, help="Restore the earlier layouts.")
@click.option("--dry-run", is_flag=True, help="Print the commands and check the folders, and change nothing.")
@click.option(
    "--state",
    type=FILE,
    metavar="DIR",
    default="vani-apply-state",
    show_default=True,
    help="Folder for the earlier layouts.",
)
@click.option(
    "--job-output",
    type=FILE,
    metavar="FILE",
    help="Compare the hints that a job with ROMIO_PRINT_HINTS=1 printed with those recommended.",
)
@click.pass_context
def apply(
    ctx: click.Context, document: Path, undo: bool, dry_run: bool, state: Path, job_output: Path | None
) -> None:
    """Apply the file layouts that ADVICE recommends, and check before and after.

    ADVICE is the output of `vani advise` or `vani tune`. Like the script of --script, the command sets
    layouts of folders and prints settings for the job script. The exit status is 1 if a check fails: a missing
    folder, a layout that was not applied, a hint that MPI ignored. Existing files keep their layout, which is reported.
    """
    done = api.apply(document, undo=undo, dry_run=dry_run, state=state, job_output=job_output)
    click.echo(_text(done), nl=False)
    ctx.exit(1 if done.failed else 0)


_MARKS = {True: "ok", False: "FAILED", None: "note"}


def _text(done: Applied) -> str:
    checks = [f"{_MARKS[check.is_right]:<8}{one_line(check.text)}" for check in done.checks]
    parts = [done.printed, "".join(f"{line}\n" for line in checks)]
    if done.job_lines:
        parts.append(f"\n# The job script needs these lines:{done.job_lines}")
    return "".join(parts)
