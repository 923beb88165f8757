"""`vani plan scored`."""

from __future__ import annotations

import click

from vani import centre


@click.command()
@click.argument("history", metavar="HISTORY")
@click.option(
    "--format", "kind", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def scored(history: str, kind: str) -> None:
    """Show how accurate plans were, for jobs whose outcome is in HISTORY (`vani plan outcome`).

    For each job name and user: the number of jobs, the ratio of measured to expected I/O time (median and central
    80 %), how often the time was in the expected range, the speedup of jobs that a plan changed,
    and how many of these became slower.
    """
    from vani.centre.history.scored import scores_as_text  # noqa: PLC0415
    from vani.schema.syntax.json_writer import json_text  # noqa: PLC0415

    scores = centre.plan_scored(history)
    as_json = json_text([score.model_dump() for score in scores], indent=2) + "\n"
    click.echo(as_json if kind == "json" else scores_as_text(scores), nl=False)
