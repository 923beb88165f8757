"""`vani config`: settings of the user and the centre that apply to all commands."""

from __future__ import annotations

import click

from vani.cli.output import emit


@click.command("config")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
def command(kind: str) -> None:
    """Show the settings in use here, and their sources.

    An option of a command overrides the environment, which overrides $XDG_CONFIG_HOME/vani/config.toml (yours),
    which overrides the file of the centre: the one in VANI_SITE, else /etc/vani/site.toml.
    """
    from vani.render.table import settings_text  # noqa: PLC0415 - `vani --help` reads no file
    from vani.site import settings, thresholds  # noqa: PLC0415

    emit(settings_text(settings(), *thresholds(), kind=kind), None)
