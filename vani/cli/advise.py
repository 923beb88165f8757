"""`vani advise`: settings for the workload of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

import vani
from vani.cli.memory import memory_for
from vani.cli.output import emit_all, quiet_option, shows_summary, summary_console
from vani.cli.places import check_places, system_files
from vani.render.advice import FORMATS

if TYPE_CHECKING:
    from vani.schema.advice import Advice

__all__ = ["advise"]


@click.command()
@click.argument("profile", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here, not to stdout.")
@click.option("--system", metavar="NAME|FILE", help="The machine: a bundled name or a system.yaml.")
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    help="Also write a shell script that shows, applies (--apply) and undoes (--undo) the settings.",
)
@click.option("--select", multiple=True, metavar="RULES", help="Ask only these: ids, names or families.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Do not ask these.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A TOML file with [advise.thresholds.RULE], and select and ignore in [advise].",
)
@click.option(
    "--files",
    metavar="N|all",
    help="Judge the N files with the most I/O time of those that the profile lists (1000).",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    default="yaml",
    show_default=True,
    help="What is written.",
)
@quiet_option
def advise(
    profile: Path,
    output: Path | None,
    system: str | None,
    script: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    config: Path | None,
    files: str | None,
    kind: str,
    quiet: bool,
) -> None:
    """Recommend storage settings for the workload in PROFILE."""
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    check_places([output, *filter(None, [script])], chain([profile, config], system_files(system)))
    with memory_for("documents"):
        advice = api.advise(
            profile,
            system=system,
            select=select or None,
            ignore=ignore or None,
            config=config,
            files=_number_of_files(files),
        )
    emit_all([*_texts(advice, kind, output, script)])
    if shows_summary(output, quiet=quiet) and not (kind == "text" and output is None):
        _show(advice)


def _number_of_files(text: str | None) -> int | None:
    from vani.api import JUDGED_FILES  # noqa: PLC0415

    if text is None:
        return JUDGED_FILES
    if text == "all":
        return None
    if not text.isdecimal() or not int(text):
        raise click.BadParameter(f"{text!r} is neither a number of files nor `all`", param_hint="--files")
    return int(text)


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
