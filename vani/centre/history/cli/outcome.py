"""`vani history outcome`."""

from __future__ import annotations

import click

from vani import centre
from vani.centre.history.cli.options import db_option


@click.command()
@click.argument("application", metavar="APP")
@click.argument("user", required=False)
@click.option("--changed", metavar="DAY", help="Day of a change, YYYY-MM-DD; by default the days of recorded letters.")
@db_option
@click.option(
    "--format", "kind", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def outcome(application: str, user: str | None, changed: str | None, db: str | None, kind: str) -> None:
    """Compare APP's waiting for I/O before and after each letter, or before and after a change.

    It compares the runs of 90 days on either side, by user and number of processes, and prints means with the
    interval of their difference. Other changes in that time, such as the machine's load, are part of the difference.
    """
    from vani.centre.history.text.outcome import outcomes_as_text  # noqa: PLC0415
    from vani.schema.syntax.json_writer import json_text  # noqa: PLC0415

    outcomes = centre.history_outcome(application, user, db=db, changed=changed)
    as_json = json_text([entry.model_dump() for entry in outcomes], indent=2) + "\n"
    click.echo(as_json if kind == "json" else outcomes_as_text(outcomes), nl=False)
