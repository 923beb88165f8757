"""`vani history serve`."""

from __future__ import annotations

from pathlib import Path

import click

from vani import centre
from vani.centre.history.cli.options import db_option
from vani.cli.options import FILE


def _token(ctx: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    del ctx, param
    return None if value is None else centre.token_in(value)


@click.command()
@click.argument("place", required=False, metavar="[FILE|URL]")
@db_option
@click.option("--address", default="127.0.0.1", show_default=True, metavar="IP", help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8600, show_default=True, help="Port to listen on; 0: any free one."
)
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="Another host name by which browsers may address it."
)
@click.option(
    "--token-file",
    "token",
    type=FILE,
    metavar="FILE",
    callback=_token,
    help="File with the token that browsers need; created if missing. Required unless --address is this machine.",
)
def serve(
    place: str | None, db: str | None, address: str, port: int, names: tuple[str, ...], token: str | None
) -> None:
    """Serve pages about a history for a browser: the month, the ranking, applications, runs and storage targets.

    It only reads, and needs no network. By default only users of this machine can reach it. If other users log in to
    this machine, give a --token-file. Ctrl-C stops it.
    """
    if place is not None and db is not None:
        raise click.UsageError("The history was named twice: by the argument and by --database.")
    with centre.history_server(db=place or db, address=address, port=port, names=names, token=token) as server:
        click.echo(f"{server.url}{'' if token is None else f'?token={token}'}", err=True)
        server.serve_forever()
