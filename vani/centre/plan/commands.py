"""Commands of `vani plan`, except `vani plan job`."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from vani import centre
from vani.atomic import write_bytes
from vani.centre.placement_library.interactions import write_csv
from vani.centre.plan.check import STATUS_FORMATS, files_of_plan
from vani.centre.plan.forward import files_of_jobs
from vani.centre.plan.job_command import say
from vani.centre.plan.job_settings import LearnSettings, SharingRules, WatchSettings
from vani.centre.plan.rehearse import csv_of_jobs, rehearse_files, text_of
from vani.centre.plan.schema.plans import (
    PathSettings,
    PlaceSettings,
    Plan,
    QueueOptions,
    SimulateOptions,
)
from vani.centre.plan.snapshot import named_file
from vani.centre.plan.text import FORMATS, PATH_FORMATS, PLACE_FORMATS, drawn, left_out
from vani.centre.plan.watch import look, plan_again
from vani.centre.prolog.state import State
from vani.cli.options import FILE, format_option, output_option, quiet_option, settings_options, system_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs, system_files
from vani.errors import InputError, one_line
from vani.render.formats import IMAGE, Formats
from vani.schema.syntax.json_text import json_text
from vani.units import counted, format_seconds

if TYPE_CHECKING:
    from vani.centre.plan.learn import Learned, LearnedDocument
    from vani.centre.plan.outcome import JobOutcome

_MAX_DOCUMENTS = 20
_MAX_OBJECTIONS = 5

_snapshot_option = click.option(
    "--snapshot", type=FILE, required=True, metavar="FILE", help="Current state of the machine: a snapshot.yaml."
)
_max_age_option = click.option(
    "--max-age", type=float, metavar="SECONDS",
    help="Reject a snapshot that is older, is ahead of the clock, or has no time; by default any is accepted.",
)  # fmt: skip
_database_option = click.option(
    "--database", required=True, envvar="VANI_DATABASE", metavar="URL|FILE",
    help="An SQLite file or postgresql://USER@HOST/DATABASE; by default the variable VANI_DATABASE, which keeps a "
    "password from other users.",
)  # fmt: skip
_history_argument = click.argument("history", metavar="HISTORY")
_state_option = click.option(
    "--state", type=FILE, required=True, metavar="DIR", help="Folder of the running jobs and plans."
)


def _plan_options(formats: Formats[str] = FORMATS) -> Callable[[Any], Any]:
    """Add `--format` (as `kind`), `-o` (as `output`) and `--strict` to a command whose plan has these formats."""
    strict = click.option("--strict", is_flag=True, help="Exit with 1 if the plan leaves something out.")
    form = format_option(formats, default=None, help="Output format; by default from the suffix of -o, else text.")
    return lambda command: form(output_option()(strict(command)))


def _kind(formats: Formats[str], kind: str | None, output: Path | None) -> str:
    return kind or (formats.of_file(output) if output is not None else None) or "text"


def _emit_plan(
    plan: Plan, kind: str | None, output: Path | None, *, strict: bool, formats: Formats[str] = FORMATS
) -> None:
    """Write a plan; with `strict`, end with status 1 if it leaves something out."""
    kind = _kind(formats, kind, output)
    emit(formats.render(kind, plan), output)
    if kind != "text" and (missing := left_out(plan)) is not None:
        click.echo(f"vani: {missing}", err=True)
    if strict and not plan.is_whole:
        click.get_current_context().exit(1)


def _database_file(database: str) -> Path | None:
    """The file that `--database` names; None for a database server."""
    from vani.centre.database import address_of  # noqa: PLC0415 - loads SQL

    return address_of(database).file


def _time(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time; write 2026-01-01T12:00:00Z", ctx=ctx, param=param) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command()
@click.argument("files", nargs=-1, metavar="[NAME=]FILE...")
@output_option()
@click.option("--time", callback=_time, help="When it was printed; by default when the oldest file was written.")
@click.option("--file-system", metavar="NAME", help="The Lustre file system, if the files describe several.")
def snapshot(files: tuple[str, ...], output: Path | None, time: datetime | None, file_system: str | None) -> None:
    """Record the current state of the storage for `vani plan` (vani.snapshot/1).

    FILEs contain the output of `lfs df`, `lctl get_param` or a Prometheus exporter, or /proc/loadavg, /proc/meminfo
    and /proc/cpuinfo, alone or concatenated. NAME is the server that printed the output; output of a client needs none.
    """
    check_outputs([output], [named_file(file)[0] for file in files])
    document = centre.plan_snapshot(files, time=time, file_system=file_system)
    emit(document.to_yaml(), output)
    for gap in document.no_data:
        click.echo(f"vani: {one_line(gap.name)}: {one_line(gap.reason)}", err=True)


@click.command()
@click.argument("jobs", type=FILE)
@_plan_options()
@settings_options(QueueOptions)
@click.option("--current", type=FILE, metavar="FILE", help="Current plan, which the new plan changes.")
@click.option(
    "--replay", is_flag=True,
    help="Run the jobs as a queue, first come, first served: they start when nodes are free and end when "
    "their `bytes` are moved; I/O nodes are shared again at each change.",
)  # fmt: skip
@system_option("The machine whose curves are used: a bundled name or a system.yaml.", of_site=False)
def forward(
    jobs: Path,
    kind: str | None,
    output: Path | None,
    strict: bool,
    settings: QueueOptions,
    current: Path | None,
    replay: bool,
    system: str | None,
) -> None:
    """Share the I/O nodes of a pool among the jobs of JOBS, a jobs.yaml.

    Each job gets a number of I/O nodes that divides its number of compute nodes (with --any-number, any number up to
    that), or 0 for direct access. The first line of the plan states what it leaves out.
    """
    if replay and current is not None:
        raise click.UsageError("--current cannot be used with --replay: a queue starts on an empty machine.")
    for name in ("nodes", "poll"):
        if name in settings.model_fields_set and not replay:
            raise click.UsageError(f"--{name} is for --replay.")
    check_outputs([output], chain(files_of_jobs(jobs), [current], system_files(system)))
    plan: Plan
    if replay:
        plan = centre.plan_replay(jobs, settings, system=system)
    else:
        plan = centre.plan_forward(jobs, settings, current=current, system=system)
    _emit_plan(plan, kind, output, strict=strict)


@click.command()
@click.argument("jobs", type=FILE)
@_plan_options(PLACE_FORMATS)
@_snapshot_option
@settings_options(PlaceSettings)
@_max_age_option
def place(
    jobs: Path,
    kind: str | None,
    output: Path | None,
    strict: bool,
    snapshot: Path,
    settings: PlaceSettings,
    max_age: float | None,
) -> None:
    """Choose OSTs for the files that the jobs of JOBS, a jobs.yaml, will create.

    Every extent of every file gets distinct OSTs: none above the ceiling, none offline, and degraded OSTs only if
    needed. `--format script` writes `lfs setstripe -o` lines, which can be undone.
    """
    check_outputs([output], chain(files_of_jobs(jobs), [snapshot]))
    plan = centre.plan_place(jobs, snapshot, settings, max_age=max_age)
    _emit_plan(plan, kind, output, strict=strict, formats=PLACE_FORMATS)


@click.command()
@click.argument("jobs", type=FILE)
@_plan_options(PATH_FORMATS)
@_snapshot_option
@settings_options(PathSettings)
@_max_age_option
def path(
    jobs: Path,
    kind: str | None,
    output: Path | None,
    strict: bool,
    snapshot: Path,
    settings: PathSettings,
    max_age: float | None,
) -> None:
    """Assign the I/O of each job in JOBS, a jobs.yaml, a path through the machine.

    The plan states how much of a job's demand each forwarding node, storage node and target carries, the forwarding
    node of each compute node, and the request split, prefetch chunk and striping that fit the path. The first line
    of the plan states what it leaves out.
    """
    check_outputs([output], [*files_of_jobs(jobs, all_profiles=True), snapshot])
    plan = centre.plan_path(jobs, snapshot, settings, max_age=max_age)
    _emit_plan(plan, kind, output, strict=strict, formats=PATH_FORMATS)


@click.command()
@click.argument("scenario", type=FILE)
@_plan_options()
@settings_options(SimulateOptions)
@click.option(
    "--plot", type=FILE, metavar="FILE", help="Also draw the last variant; the name ends in .svg, .png or .json."
)
@click.option(
    "--plot-of", "what", type=click.Choice(["rates", "stages"]), default="rates", show_default=True,
    help="Bytes per second of jobs, or how busy stages are, over time.",
)  # fmt: skip
def simulate(
    scenario: Path,
    kind: str | None,
    output: Path | None,
    strict: bool,
    settings: SimulateOptions,
    plot: Path | None,
    what: Literal["rates", "stages"],
) -> None:
    """Simulate the jobs of SCENARIO, a scenario.yaml, on a machine that they share.

    Bytes flow through processes, nodes, I/O nodes, servers and targets at max-min fair rates. Each variant of
    the scenario is simulated with each seed; the first and the last are compared.
    """
    from vani.centre.plan.simulate.simulate import files_of_scenario  # noqa: PLC0415 - loads Arrow

    image = IMAGE.needed_for(plot) if plot is not None else None
    check_outputs([output, *([plot] if plot is not None else [])], files_of_scenario(scenario))
    plan = centre.plan_simulate(scenario, settings)
    if plot is not None and image is not None:
        write_bytes(plot, IMAGE.render(image, drawn(plan, what), width_mm=160))
    _emit_plan(plan, kind, output, strict=strict)


@click.command()
@click.argument("plan", type=FILE)
@_snapshot_option
@_max_age_option
@format_option(STATUS_FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
@click.pass_context
def check(
    ctx: click.Context, plan: Path, snapshot: Path, max_age: float | None, kind: str | None, output: Path | None
) -> None:
    """Check whether PLAN, a plan.yaml, is still valid.

    A plan is valid while the machine has what it allots, and while its input documents, if they still
    exist, are unchanged. Exit status: 0 valid, 1 not valid, 2 bad input or an outdated snapshot.
    """
    check_outputs([output], chain([snapshot], files_of_plan(plan)))
    status = centre.plan_check(plan, snapshot, max_age=max_age)
    emit(STATUS_FORMATS.render(_kind(STATUS_FORMATS, kind, output), status), output)
    ctx.exit(0 if status.holds else 1)


@click.command()
@click.argument("accounting", type=FILE, metavar="SACCT")
@click.option("--history", metavar="FILE|URL", help="The history with the I/O time of each job, by its number.")
@settings_options(SharingRules)
@output_option("Also write a row for each job here, as CSV.")
def rehearse(accounting: Path, history: str | None, settings: SharingRules, output: Path | None) -> None:
    """Show what the hook would have done with past jobs: a dry run before it is switched on.

    SACCT is the output of `sacct`, as for `vani history import`. The jobs start and end again, and the
    planner of `vani plan job` plans for each. The comparison is with `--policy static` by --nodes-per-io-node.
    """
    if output is not None:
        check_outputs([output], [accounting])
    done = rehearse_files(accounting, settings, history, lambda text: click.echo(f"vani: {text}", err=True))
    click.echo(text_of(done), nl=False)
    if output is not None:
        emit(csv_of_jobs(done), output)


@click.command()
@settings_options(WatchSettings)
def watch(settings: WatchSettings) -> None:
    """Compare running jobs with their predictions and with the machine's current state, and suggest actions.

    For each job with a placement database, it counts files that were not predicted: at a tenth, predict again;
    after three times in a row, retrain; at half, start over (Tarazu). For the machine, it reports I/O nodes
    of running jobs that no longer serve, I/O nodes that are free again, and an overloaded metadata server. From a
    trace: jobs whose I/O is slower than their plan expects, and slow OSTs of their files. Only new
    lines are printed. Only `plan again` can be applied: the layout of a file is fixed when it is created.
    """
    before: set[str] = set()
    watched: dict[str, Any] = {}
    while True:
        try:
            lines = _look(settings, watched)
        except InputError as error:
            if settings.once:
                raise
            lines = {str(error)}
        for line in sorted(lines - before):
            click.echo(line)
        if settings.once:
            return
        before = lines
        time.sleep(settings.interval)


def _look(settings: WatchSettings, watched: dict[str, Any]) -> set[str]:
    """Check once and return the lines; with `apply`, also apply the actions that can be applied."""
    state, say_it = State(settings.state), partial(say, log=settings.log)
    jobs = state.running(now_s=time.time(), expire_s=settings.expire_s, say=say_it)
    suggestions = list(look(state, jobs, settings, traces=settings.trace, watched=watched))
    lines = {str(suggestion) for suggestion in suggestions}
    if settings.apply and any(suggestion.action == "plan again" for suggestion in suggestions):
        lines.add(plan_again(state, settings, now_s=time.time(), say=say_it))
    return lines


@click.command()
@_history_argument
@click.option(
    "-o", "--output", "folder", type=FILE, required=True, metavar="DIR",
    help="Folder to write to, for --known of `vani plan job`.",
)  # fmt: skip
@settings_options(LearnSettings)
@quiet_option
def learn(history: str, folder: Path, settings: LearnSettings, quiet: bool) -> None:
    """Learn from the runs of HISTORY what future jobs need, for `vani plan job --known DIR`.

    Each pair of user and job name gets a document, DIR/USER/NAME.yaml, with a job for each number of nodes: rates,
    bytes, expected files, I/O time and curves. Run it each night. The same history always gives the same files.
    Nothing is removed, and documents that people wrote are not changed.
    """
    learned = centre.plan_learn(history, folder, settings)
    if not quiet:
        _say_learned(learned)


def _say_learned(learned: Learned) -> None:
    for document in learned.documents[:_MAX_DOCUMENTS]:
        click.echo(_line_of_document(document))
    if len(learned.documents) > _MAX_DOCUMENTS:
        click.echo(f"and {counted(len(learned.documents) - _MAX_DOCUMENTS, 'document')} more")
    new = sum(document.is_new for document in learned.documents)
    click.echo(f"{counted(len(learned.documents), 'document')}, {new:,} written", err=True)
    for entry in learned.left[:_MAX_DOCUMENTS]:
        click.echo(f"vani: {one_line(entry.name)}: {one_line(entry.reason)}", err=True)
    if len(learned.left) > _MAX_DOCUMENTS:
        click.echo(f"vani: and {len(learned.left) - _MAX_DOCUMENTS:,} more are left out", err=True)


def _line_of_document(document: LearnedDocument) -> str:
    jobs = document.jobs.jobs
    unknown = sorted({entry.name for job in jobs for entry in job.unknown})
    lacks = f"; not known: {', '.join(unknown)}" if unknown else ""
    runs = counted(sum(job.runs or 0 for job in jobs), "run")
    return one_line(f"{document.path}: {counted(len(jobs), 'scale')} from {runs}{lacks}")


@click.command()
@_history_argument
@_state_option
@click.option("--logs", type=FILE, required=True, metavar="DIR", help="Folder of Darshan's logs, or of traces.")
@click.option("--job", metavar="NUMBER", help="The job; by default all finished jobs.")
@quiet_option
def outcome(history: str, state: Path, logs: Path, job: str | None, quiet: bool) -> None:
    """Add the logs of finished jobs to HISTORY, and store their measured I/O times with those that their plans
    expected.

    The epilog runs it for its job. After its first run, plans of finished jobs wait for it in the state's folder
    `ended`. Run it for all jobs each night, for logs that arrive late.
    """
    for entry in centre.plan_outcome(history, state, logs, job=job):
        if not quiet:
            click.echo(one_line(_line_of_outcome(entry)))


def _line_of_outcome(outcome: JobOutcome) -> str:
    """One line with a job's expected and measured I/O time."""
    row = outcome.row
    if row is None:
        return f"job {outcome.job}: no log yet"
    if row.measured is None:
        return f"job {row.job}: {row.reason}"
    took = f"job {row.job} ({row.name}): {format_seconds(row.measured)} in I/O"
    if row.expected is None or row.low is None or row.high is None:
        return f"{took}; {row.reason}"
    ends = f"{format_seconds(row.low)} to {format_seconds(row.high)}"
    return f"{took}, {format_seconds(row.expected)} ({ends}) expected"


@click.command()
@_history_argument
@click.option(
    "--format", "kind", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def scored(history: str, kind: str) -> None:
    """Show how accurate plans were, for jobs whose outcome is in HISTORY (`vani plan outcome`).

    For each job name and user: the number of jobs, the ratio of measured to expected I/O time (median and central
    80 %), how often the time was in the expected range, the speedup of jobs that a plan changed,
    and how many of these became slower.
    """
    from vani.centre.history.scored import scores_as_text  # noqa: PLC0415 - loads SQL, an extra

    scores = centre.plan_scored(history)
    as_json = json_text([score.model_dump() for score in scores], indent=2) + "\n"
    click.echo(as_json if kind == "json" else scores_as_text(scores), nl=False)


@click.command()
@click.argument("plan", type=FILE)
@_database_option
@quiet_option
def store(plan: Path, database: str, quiet: bool) -> None:
    """Store the placement of files, for the placement library and for other plans.

    PLAN is a plan of kind `place`, or a CSV with the columns that `vani plan interactions` writes. Earlier rows
    of the same files are replaced. Either everything is stored or nothing.
    """
    check_outputs([file for file in [_database_file(database)] if file is not None], [plan])
    done = centre.plan_store(plan, database)
    for objection in done.objections[:_MAX_OBJECTIONS]:
        click.echo(f"vani: Lustre will refuse this layout and use its default: {one_line(objection)}", err=True)
    if (more := len(done.objections) - _MAX_OBJECTIONS) > 0:
        click.echo(f"vani: and the layouts of {counted(more, 'other file')}", err=True)
    if not quiet:
        click.echo(f"stored {counted(done.extents, 'extent')} of {counted(done.files, 'file')}", err=True)


@click.command()
@click.argument("path", required=False)
@_database_option
@output_option()
def interactions(path: str | None, database: str, output: Path | None) -> None:
    """Write the stored placement of the file PATH, or of all files, as CSV.

    PATH is exact, as the program names the file. The columns are the columns of Tarazu's tables; `vani plan store`
    reads them.
    """
    check_outputs([output], [_database_file(database)])
    rows = centre.plan_interactions(database, path)
    emit(write_csv(rows), output)
    if path is not None and not rows:
        click.echo(f"vani: nothing is stored for {one_line(path)}", err=True)
