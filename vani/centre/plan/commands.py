"""Commands of `vani plan`."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import click

from vani import centre
from vani.atomic import write_bytes
from vani.centre.placement_library.interactions import write_csv
from vani.centre.plan.check import STATUS_FORMATS, files_of_plan
from vani.centre.plan.forward import files_of_jobs
from vani.centre.plan.schema.plans import PathSettings, PlaceSettings, Plan, QueueOptions, SimulateOptions
from vani.centre.plan.snapshot import named_file
from vani.centre.plan.text import FORMATS, PATH_FORMATS, PLACE_FORMATS, drawn, left_out
from vani.cli.options import FILE, format_option, output_option, quiet_option, settings_options, system_option
from vani.cli.output import check_outputs, emit, system_files
from vani.errors import one_line
from vani.render.formats import IMAGE, Formats
from vani.units import counted

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


def _writes_plan(formats: Formats[str] = FORMATS) -> Callable[[Callable[..., Plan]], Callable[..., None]]:
    """Write the plan a command returns; adds the options `--format`, `-o` (the command gets it, too) and `--strict`."""
    strict = click.option("--strict", is_flag=True, help="Exit with 1 if the plan omits something, or is not worth it.")
    form = format_option(formats, default=None, help="Output format; by default from the suffix of -o, else text.")

    def decorated(command: Callable[..., Plan]) -> Callable[..., None]:
        @wraps(command)
        def written(*, kind: str | None, output: Path | None, strict: bool, **options: Any) -> None:
            _emit_plan(command(output=output, **options), formats.chosen(kind, output, "text"), output, formats, strict)

        decorated_command: Callable[..., None] = form(output_option()(strict(written)))
        return decorated_command

    return decorated


def _emit_plan(plan: Plan, kind: str, output: Path | None, formats: Formats[str], strict: bool) -> None:
    """Write a plan; with `strict`, end with status 1 if it leaves something out or should not be applied."""
    emit(formats.render(kind, plan), output)
    for said in (left_out(plan), plan.caution) if kind != "text" else ():
        if said:
            click.echo(f"vani: {one_line(said)}", err=True)
    if strict and (plan.caution or not plan.is_whole):
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
@_writes_plan()
@settings_options(QueueOptions)
@click.option("--current", type=FILE, metavar="FILE", help="Current plan, which the new plan changes.")
@click.option(
    "--replay", is_flag=True,
    help="Run the jobs as a queue, first come, first served: they start when nodes are free and end when "
    "their `bytes` are moved; I/O nodes are shared again at each change.",
)  # fmt: skip
@system_option("The machine whose curves are used: a bundled name or a system.yaml.", of_site=False)
def forward(
    jobs: Path, output: Path | None, settings: QueueOptions, current: Path | None, replay: bool, system: str | None
) -> Plan:
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
    if replay:
        return centre.plan_replay(jobs, settings, system=system)
    return centre.plan_forward(jobs, settings, current=current, system=system)


@click.command()
@click.argument("jobs", type=FILE)
@_writes_plan(PLACE_FORMATS)
@_snapshot_option
@settings_options(PlaceSettings)
@_max_age_option
def place(jobs: Path, output: Path | None, snapshot: Path, settings: PlaceSettings, max_age: float | None) -> Plan:
    """Choose OSTs for the files that the jobs of JOBS, a jobs.yaml, will create.

    Every extent of every file gets distinct OSTs: none above the ceiling, none offline, and degraded OSTs only if
    needed. `--format script` writes `lfs setstripe -o` lines, which can be undone.
    """
    check_outputs([output], chain(files_of_jobs(jobs), [snapshot]))
    return centre.plan_place(jobs, snapshot, settings, max_age=max_age)


@click.command()
@click.argument("jobs", type=FILE)
@_writes_plan(PATH_FORMATS)
@_snapshot_option
@settings_options(PathSettings)
@_max_age_option
def path(jobs: Path, output: Path | None, snapshot: Path, settings: PathSettings, max_age: float | None) -> Plan:
    """Assign the I/O of each job in JOBS, a jobs.yaml, a path through the machine.

    The plan states how much of a job's demand each forwarding node, storage node and target carries, the forwarding
    node of each compute node, and the request split, prefetch chunk and striping that fit the path. The first line
    of the plan states what it leaves out.
    """
    check_outputs([output], [*files_of_jobs(jobs, all_profiles=True), snapshot])
    return centre.plan_path(jobs, snapshot, settings, max_age=max_age)


@click.command()
@click.argument("scenario", type=FILE)
@_writes_plan()
@settings_options(SimulateOptions)
@click.option(
    "--plot", type=FILE, metavar="FILE", help="Also draw the last variant; the name ends in .svg, .png or .json."
)
@click.option(
    "--plot-of", "what", type=click.Choice(["rates", "stages"]), default="rates", show_default=True,
    help="Bytes per second of jobs, or how busy stages are, over time.",
)  # fmt: skip
def simulate(
    scenario: Path, output: Path | None, settings: SimulateOptions, plot: Path | None, what: Literal["rates", "stages"]
) -> Plan:
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
    return plan


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
    emit(STATUS_FORMATS.render(STATUS_FORMATS.chosen(kind, output, "text"), status), output)
    ctx.exit(0 if status.holds else 1)


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
