"""`vani plan check`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from vani import centre
from vani.centre.plan.check import files_of_plan
from vani.centre.plan.cli.options import max_age_option, snapshot_option
from vani.centre.plan.status_text import FORMATS
from vani.cli.options import FILE, format_option, output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


@click.command()
@click.argument("plan", type=FILE)
@snapshot_option
@max_age_option
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
@click.pass_context
def check(
    ctx: click.Context,
    plan: Path,
    snapshot: Path,
    max_age: float | None,
    kind: str | None,
    output: Path | None,
) -> None:
    """Check whether PLAN, a plan.yaml, is still valid.

    A plan is valid while the machine has what it allots, and while its input documents, if they still
    exist, are unchanged. Exit status: 0 valid, 1 not valid, 2 bad input or an outdated snapshot.
    """
    check_outputs([output], chain([snapshot], files_of_plan(plan)))
    status = centre.plan_check(plan, snapshot, max_age=max_age)
    kind = kind or (FORMATS.of_file(output) if output is not None else None) or "text"
    emit(FORMATS.render(kind, status), output)
    ctx.exit(0 if status.holds else 1)
