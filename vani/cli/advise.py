"""`vani advise`: settings for the workload of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

import vani
from vani.api import JUDGED_FILES
from vani.cli.options import (
    FILE,
    files_option,
    format_option,
    output_option,
    quiet_option,
    source_argument,
    system_option,
)
from vani.cli.output import emit_all, shows_summary, summary_console
from vani.cli.places import check_places, system_files
from vani.cli.where import decoding_options, scheduler_files
from vani.cli.work import working
from vani.render.advice import FORMATS
from vani.site import setting, thresholds

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler
    from vani.schema.advice import Advice

__all__ = ["advise"]


class _Asked(TypedDict):
    """What the library is asked as it was typed."""

    system: str | None
    select: tuple[str, ...] | None
    ignore: tuple[str, ...] | None
    config: Path | None
    files: int | None
    store: Path | None
    scheduler: Scheduler


def _none(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...] | None:
    """Nothing that was given is not an empty list, which would replace that of a file."""
    del ctx, param
    return value or None


@click.command()
@source_argument()
@output_option()
@system_option()
@click.option(
    "--script",
    type=FILE,
    metavar="FILE",
    help="Also write a shell script that shows, applies (--apply) and undoes (--undo) the settings.",
)
@click.option(
    "--select", multiple=True, metavar="RULES", callback=_none, help="Ask only these: ids, names or families."
)
@click.option("--ignore", multiple=True, metavar="RULES", callback=_none, help="Do not ask these.")
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="A TOML file with [advise.thresholds.RULE], and select and ignore in [advise].",
)
@files_option("Judge the N files with the most I/O time.", default=JUDGED_FILES, least=1)
@format_option(FORMATS, default="yaml")
@decoding_options
@quiet_option
def advise(
    profile: Path, output: Path | None, script: Path | None, kind: str, quiet: bool, **asked: Unpack[_Asked]
) -> None:
    """Recommend storage settings for the workload of a profile.

    A trace, which is a folder or a file, is profiled first.
    """
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    with working(profile, quiet=quiet) as progress:
        read = [
            profile,
            asked["config"],
            *scheduler_files(asked["scheduler"]),
            *system_files(asked["system"]),
        ]
        check_places([output, *filter(None, [script])], read)
        advice = api.advise(profile, **asked, site=thresholds()[0], progress=progress)
    emit_all([*_texts(advice, kind, output, script)])
    if shows_summary(output, quiet=quiet) and not (kind == "text" and output is None):
        _show(advice)


def _texts(
    advice: Advice, kind: str, output: Path | None, script: Path | None
) -> Iterator[tuple[str, Path | None]]:
    """What is written, and where: the advice, and the script if there is a place for it."""
    from vani.advisors.catalogue import page_text, rules  # noqa: PLC0415 - `vani --help` pays for no rule

    pages = {rule.id: page_text(rule) for rule in rules()}
    yield FORMATS.render(kind, advice, version=vani.__version__, pages=pages), output
    if script is not None:
        from vani.render.advice.script import render  # noqa: PLC0415

        yield render(advice, version=vani.__version__), script


def _show(advice: Advice) -> None:
    from vani.render.advice.screen import render  # noqa: PLC0415

    render(advice, None, summary_console())
    for key, says in (("contact", "Questions"), ("documentation", "More about storage here")):
        value = setting(key).value
        if value is not None:
            click.echo(f"{says}: {value}", err=True)
