"""`vani plan listen`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from vani import centre
from vani.cli.options import output_option, quiet_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs, stdout
from vani.errors import InputError


@click.command()
@output_option("Write the snapshot here, again after every interval.")
@click.option(
    "--at",
    default="tcp://127.0.0.1:5570",
    show_default=True,
    metavar="ENDPOINT",
    help="Address to listen on; tcp://*:5570 is every network of this host.",
)
@click.option(
    "--expect", default="", metavar="NAMES", help="Servers listed as missing until they report: oss[0-6],mds."
)
@click.option(
    "--interval", type=float, default=60.0, show_default=True, metavar="SECONDS", help="Time between snapshots."
)
@click.option("--once", is_flag=True, help="Write one snapshot once all expected servers have reported, and exit.")
@quiet_option
def listen(output: Path | None, at: str, expect: str, interval: float, once: bool, quiet: bool) -> None:
    """Receive the load that `vani plan publish` sends from all servers, and write a snapshot of the machine.

    If a server is silent for three of its intervals, its figures are null and it is listed under no_data.
    """
    check_outputs([output])
    if stdout(output) and not once:
        raise click.UsageError("without --once it continues: name a file with -o")
    def say(text: str) -> None:
        if not quiet:
            click.echo(f"vani: {text}", err=True)

    with centre.snapshots(at, expected=expect, seconds=interval, is_once=once, say=say) as heard:
        for snapshot in heard:
            _write(snapshot.to_yaml(), output, None if once else say)


def _write(text: str, output: Path | None, say: Callable[[str], None] | None) -> None:
    """Write a snapshot; if another one will follow, a failure is only reported."""
    try:
        emit(text, output)
    except InputError as error:
        if say is None:
            raise
        say(str(error))
