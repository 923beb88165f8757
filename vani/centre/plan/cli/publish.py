"""`vani plan publish`."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

import click

from vani import centre
from vani.cli.options import FILE, quiet_option


@click.command()
@click.option(
    "--to",
    default="tcp://127.0.0.1:5570",
    show_default=True,
    metavar="ENDPOINT",
    help="Address of `vani plan listen`.",
)
@click.option("--name", metavar="NAME", help="Name of this server in the snapshot; by default its host name.")
@click.option(
    "--role",
    type=click.Choice(["oss", "mds", "forwarding"]),
    default="oss",
    show_default=True,
    help="Kind of server.",
)
@click.option(
    "--interval", type=float, default=60.0, show_default=True, metavar="SECONDS", help="Time between messages."
)
@click.option(
    "--count", type=click.IntRange(1), metavar="N", help="Exit after this many messages; by default never."
)
@click.option(
    "--lctl", type=FILE, metavar="FILE", help="A file with the output of `lctl get_param`; else the command is run."
)
@quiet_option
def publish(
    to: str,
    name: str | None,
    role: Literal["oss", "mds", "forwarding"],
    interval: float,
    count: int | None,
    lctl: Path | None,
    quiet: bool,
) -> None:
    """Send the load of this server (processors, memory, targets) to `vani plan listen`, every minute."""
    own = name if name is not None else socket.gethostname().partition(".")[0]

    def say(text: str) -> None:
        if not quiet:
            click.echo(f"vani: {to}: {text}", err=True)

    centre.plan_publish(to, name=own, role=role, interval_s=interval, count=count, lctl=lctl, say=say)
