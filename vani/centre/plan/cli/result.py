"""Last step of every `vani plan` command: writes the plan, reports gaps on stderr, sets the exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vani.centre.plan.text import FORMATS, left_out
from vani.cli.options import format_option, output_option
from vani.cli.output import emit
from vani.render.formats import Formats

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import Plan

Command = Callable[..., Any]


def plan_options_in(formats: Formats[str]) -> Callable[[Command], Command]:
    """Add `--format` (as `kind`), `-o` (as `output`) and `--strict` to a command whose plan has these formats."""
    strict = click.option("--strict", is_flag=True, help="Exit with 1 if the plan leaves something out.")
    form = format_option(formats, default=None, help="Output format; by default from the suffix of -o, else text.")

    def decorated(command: Command) -> Command:
        with_options: Command = form(output_option()(strict(command)))
        return with_options

    return decorated


plan_options = plan_options_in(FORMATS)
"""The same for a plan that is written as text or as a document."""


def emit_plan(
    plan: Plan, kind: str | None, output: Path | None, *, strict: bool, formats: Formats[str] = FORMATS
) -> None:
    """Write a plan; with `strict`, end with status 1 if it leaves something out."""
    kind = kind or (formats.of_file(output) if output is not None else None) or "text"
    emit(formats.render(kind, plan), output)
    if kind != "text" and (missing := left_out(plan)) is not None:
        click.echo(f"vani: {missing}", err=True)
    if strict and not plan.is_whole:
        click.get_current_context().exit(1)
