"""`vani history`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["history"]

_COMMANDS = {
    "add": ("vani.cli.history.add:add", "Add logs, profiles and traces, and folders of them."),
    "top": ("vani.cli.history.top:top", "Rank the largest losses, with the setting that would save most."),
    "show": ("vani.cli.history.show:show", "Show an application: trend, spread, changes, worst run."),
    "letter": ("vani.cli.history.show:letter", "Write a letter to a user about what to change."),
    "outcome": ("vani.cli.history.outcome:outcome", "Show whether a letter or a change helped."),
    "targets": ("vani.cli.history.targets:targets", "Rank storage targets by the I/O time lost on them."),
    "serve": ("vani.cli.history.serve:serve", "Serve pages about the runs for a browser."),
    "daily": ("vani.cli.history.daily:daily", "Compare a daily benchmark with its seven previous runs."),
    "predict": ("vani.cli.history.predict:predict", "Predict the next run of an application."),
    "evaluate": ("vani.cli.history.evaluate:evaluate", "Test predictors on the latest runs."),
    "phases": ("vani.cli.history.phases:phases", "Find the phases of runs in their time series."),
    "creations": (
        "vani.cli.history.creations:creations",
        "Predict the files that the next run will create, or the rest of a run.",
    ),
    "list": ("vani.cli.history.maintenance:list_", "List the stored runs, by month."),
    "damaged": ("vani.cli.history.maintenance:damaged", "List files that could not be read, and why."),
    "remove": ("vani.cli.history.maintenance:remove", "Delete all runs of a user."),
    "anonymise": ("vani.cli.history.maintenance:anonymise", "Replace users and paths by keyed hashes."),
    "export": ("vani.cli.history.maintenance:export", "Export all runs to a file."),
    "import": ("vani.cli.history.maintenance:import_", "Import an export."),
    "metrics": ("vani.cli.history.metrics:metrics", "Write figures for Prometheus."),
    "upgrade": ("vani.cli.history.maintenance:upgrade", "Upgrade an older history to the newest layout."),
}


@click.group(cls=commands_from(_COMMANDS))
def history() -> None:
    """Archive the runs of a centre, and rank the largest losses in I/O."""
