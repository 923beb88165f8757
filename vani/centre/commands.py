"""The commands of a centre, which register as plug-ins: `vani centre`, `vani history`, `vani model`, `vani plan`."""

import click

from vani.cli.lazy_group import commands_from

_CENTRE = {
    "init": ("vani.centre.service.setup:init_command", "Write centre.toml, and print the unit for systemd."),
    "run": ("vani.centre.service.run:command", "Import logs, judge them, and serve pages and metrics."),
    "check": ("vani.centre.service.setup:check_command", "Test everything, and print what is missing."),
    "advise": ("vani.centre.service.advise:command", "Advise on layouts, slow OSTs, and users to write to."),
    "demo": ("vani.centre.demo.centre:command", "Run days of a modelled centre with every fixed layout."),
}
_HISTORY = {
    "add": ("vani.centre.history.add:command", "Add logs, profiles and traces, and folders of them."),
    "top": ("vani.centre.history.ranking:command", "Rank the largest losses, with the setting that would save most."),
    "show": ("vani.centre.history.story:show_command", "Show an application: trend, spread, changes, worst run."),
    "letter": ("vani.centre.history.outcome:letter_command", "Write a letter to a user about what to change."),
    "outcome": ("vani.centre.history.outcome:command", "Show whether a letter or a change helped."),
    "targets": ("vani.centre.history.targets:command", "Rank storage targets by the I/O time lost on them."),
    "serve": ("vani.centre.history.serve:command", "Serve pages about the runs for a browser."),
    "daily": ("vani.centre.history.daily:command", "Compare a daily benchmark with its seven previous runs."),
    "predict": ("vani.centre.prediction.behaviour.next_run:command", "Predict the next run of an application."),
    "evaluate": ("vani.centre.prediction.behaviour.evaluation:command", "Test predictors on the latest runs."),
    "phases": ("vani.centre.prediction.behaviour.phases:command", "Find the phases of runs in their time series."),
    "creations": (
        "vani.centre.prediction.creations.next_files:command",
        "Predict the files that the next run will create, or the rest of a run.",
    ),
    "list": ("vani.centre.history.maintenance:list_command", "List the stored runs, by month."),
    "damaged": ("vani.centre.history.maintenance:damaged_command", "List files that could not be read, and why."),
    "remove": ("vani.centre.history.maintenance:remove_command", "Delete all runs of a user."),
    "anonymise": ("vani.centre.history.maintenance:anonymise_command", "Replace users and paths by keyed hashes."),
    "export": ("vani.centre.history.maintenance:export_command", "Export all runs to a file."),
    "import": ("vani.centre.history.maintenance:import_command", "Import an export."),
}
_PLAN = {
    "snapshot": ("vani.centre.plan.commands:snapshot", "Record the current state of the storage."),
    "forward": ("vani.centre.plan.commands:forward", "Share the I/O nodes of a pool among jobs."),
    "place": ("vani.centre.plan.commands:place", "Choose OSTs for new files."),
    "path": ("vani.centre.plan.commands:path", "Assign each job's I/O a path through the machine."),
    "simulate": ("vani.centre.plan.commands:simulate", "Simulate jobs that share a machine."),
    "check": ("vani.centre.plan.commands:check", "Check whether a plan is still valid."),
    "store": ("vani.centre.plan.commands:store", "Store the placement of files in a database."),
    "interactions": ("vani.centre.plan.commands:interactions", "Write the stored placements of files, as CSV."),
}
_MODEL = {
    "design": ("vani.centre.write_time.commands:design", "Choose the writes to measure, as a job script."),
    "fit": ("vani.centre.write_time.commands:fit", "Fit a model to samples of writes."),
    "predict": ("vani.centre.write_time.commands:predict", "Predict the time of a write."),
    "evaluate": ("vani.centre.write_time.commands:evaluate", "Test all methods on larger scales."),
    "show": ("vani.centre.write_time.commands:show", "Show a fitted model's samples and bandwidths."),
    "list": ("vani.centre.write_time.commands:list_", "List the bundled models."),
}


@click.group(cls=commands_from(_CENTRE))
def centre() -> None:
    """Watch the I/O of a whole centre, and advise on its file system."""


@click.group(cls=commands_from(_HISTORY))
def history() -> None:
    """Archive the runs of a centre, and rank the largest losses in I/O."""


@click.group(cls=commands_from(_PLAN))
def plan() -> None:
    """Plan how the jobs of a machine share its storage."""


@click.group(cls=commands_from(_MODEL))
def model() -> None:
    """Predict write times with a model of the machine."""
