"""`vani history`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["history"]

_COMMANDS = {
    "add": ("vani.cli.history.add:add", "Add logs, profiles and traces, and folders of them."),
    "top": ("vani.cli.history.top:top", "Rank the largest losses, with the setting that would save most."),
    "show": ("vani.cli.history.show:show", "Show an application: trend, spread, changes, worst run."),
    "letter": ("vani.cli.history.show:letter", "Write to a user what to change."),
    "outcome": ("vani.cli.history.outcome:outcome", "Show whether a letter or a change helped."),
    "targets": ("vani.cli.history.targets:targets", "Rank storage targets by the time that files lose on them."),
    "serve": ("vani.cli.history.serve:serve", "Serve pages about the runs to a browser."),
    "daily": ("vani.cli.history.daily:daily", "Compare a daily benchmark with its seven previous runs."),
    "predict": ("vani.cli.history.predict:predict", "Predict the next run of an application."),
    "evaluate": ("vani.cli.history.evaluate:evaluate", "Test predictors on the last runs."),
    "phases": ("vani.cli.history.phases:phases", "Find the phases of runs in their time series."),
    "creations": (
        "vani.cli.history.creations:creations",
        "Predict which files the next run creates, or the rest of one.",
    ),
    "list": ("vani.cli.history.maintenance:list_", "List the stored runs, by month."),
    "damaged": ("vani.cli.history.maintenance:damaged", "List files that could not be read, and why."),
    "remove": ("vani.cli.history.maintenance:remove", "Delete all runs of a user."),
    "anonymise": ("vani.cli.history.maintenance:anonymise", "Put users and paths behind keyed hashes."),
    "export": ("vani.cli.history.maintenance:export", "Write all that is kept to a file."),
    "import": ("vani.cli.history.maintenance:import_", "Import an export."),
    "metrics": ("vani.cli.history.metrics:metrics", "Write figures for Prometheus."),
    "upgrade": ("vani.cli.history.maintenance:upgrade", "Bring an older history to the newest layout."),
}


@click.group(cls=commands_from(_COMMANDS))
def history() -> None:
    """Archive the runs of a centre, and rank the largest losses in I/O."""
