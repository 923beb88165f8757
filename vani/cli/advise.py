"""`vani advise`: settings for the workload of a profile."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

import vani
from vani.cli.output import check_output, emit, quiet_option, shows_summary, summary_console

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
    type=click.Choice(["text", "yaml", "json", "markdown", "sarif"]),
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

    check_output(output, script)
    # Nothing that is made here becomes garbage before the answer is there.
    gc.disable()
    try:
        advice = api.advise(
            profile,
            system=system,
            select=select or None,
            ignore=ignore or None,
            config=config,
            files=_number_of_files(files),
        )
    finally:
        gc.enable()
    if script is not None:
        from vani.render.script import render as render_script  # noqa: PLC0415

        emit(render_script(advice, version=vani.__version__), script)
    emit(_written(advice, kind), output)
    if shows_summary(output, quiet=quiet) and not (kind == "text" and output is None):
        from vani.render.advice_text import render  # noqa: PLC0415

        render(advice, None, summary_console())


def _number_of_files(text: str | None) -> int | None:
    from vani.api import JUDGED_FILES  # noqa: PLC0415

    if text is None:
        return JUDGED_FILES
    if text == "all":
        return None
    if not text.isdecimal() or not int(text):
        raise click.BadParameter(f"{text!r} is neither a number of files nor `all`", param_hint="--files")
    return int(text)


def _written(advice: Advice, kind: str) -> str:
    if kind == "yaml":
        return advice.to_yaml()
    if kind == "json":
        from vani.schema.json_text import emit as json_text  # noqa: PLC0415

        return json_text(advice.model_dump(by_alias=True))
    if kind == "markdown":
        from vani.render.advice_markdown import render as render_markdown  # noqa: PLC0415

        return render_markdown(advice)
    if kind == "sarif":
        from vani.advisors.catalogue import page_text, rules  # noqa: PLC0415
        from vani.render.sarif import render as render_sarif  # noqa: PLC0415

        pages = {rule.id: page_text(rule) for rule in rules()}
        return render_sarif(advice, version=vani.__version__, pages=pages)
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    from vani.render.advice_text import render  # noqa: PLC0415

    text = StringIO()
    # Text that goes to a file or another program has no colour and the width of a letter.
    render(advice, None, Console(file=text, width=80, color_system=None, force_terminal=False))
    return text.getvalue()
