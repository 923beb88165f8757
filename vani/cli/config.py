"""`vani config`: what the user and the centre set for all commands."""

from __future__ import annotations

import click

from vani.cli.output import emit

__all__ = ["config"]


@click.command()
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is written.",
)
def config(kind: str) -> None:
    """Show the settings that hold here, and who made them.

    An option of a command wins over the environment, that over $XDG_CONFIG_HOME/vani/config.toml (yours), that over
    the file of the centre: what VANI_SITE names, else /etc/vani/site.toml.
    """
    from vani.render.settings import render  # noqa: PLC0415 - `vani --help` reads no file
    from vani.site import settings, thresholds  # noqa: PLC0415

    emit(render(settings(), *thresholds(), kind=kind), None)
