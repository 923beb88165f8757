"""`vani systems`: lists the bundled machines, shows one, or describes this machine."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click
from pydantic import Field

from vani.cli.options import output_option, quiet_option, settings_options
from vani.cli.output import check_outputs, emit, say, system_files
from vani.collect.stripe_sweep import PATTERNS, longest_s
from vani.collect.stripe_sweep import sweep as measure_by_stripe_count
from vani.collect.system import detect as describe
from vani.collect.transfer_test import LIMIT_S, MAX_BYTES, MIN_BYTES, Measurement, check_room, measure
from vani.errors import InputError, one_line
from vani.schema.document import dumps
from vani.schema.settings import Option, Settings
from vani.schema.system import FileSystem, StripeCurve
from vani.systems import known_systems, load_system
from vani.units import format_number, format_rate, lfs_size, parse_bytes

_Folder = Annotated[Path | None, Option(metavar="DIR")]


class DetectSettings(Settings):
    """Tests that `vani systems detect` makes."""

    data: _Folder = Field(
        default=None,
        description="Data folder, for its default layout; by default the folder of --measure, else the current one.",
    )
    measure: _Folder = Field(
        default=None, description="Measure rates in this folder, by writing and reading test files from this node."
    )
    size: Annotated[str, Option(metavar="SIZE")] = Field(
        default="4G", description="With --measure: number of bytes."
    )
    sweep: bool = Field(
        default=False,
        description="With --measure: also measure files on 1, 2, 4, ... Lustre targets; each pattern writes --size "
        "again.",
    )
    launcher: Annotated[str | None, Option(metavar="COMMAND")] = Field(
        default=None,
        description="With --sweep: launcher of processes on all nodes of a job, such as 'srun --ntasks-per-node 8'.",
    )
    yes: bool = Field(default=False, description="With --measure: do not ask for confirmation.")


@click.group("systems", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the bundled machines, show one, or describe this machine."""
    if ctx.invoked_subcommand is None:
        _print_names()


@command.command("list")
def list_() -> None:
    """List the bundled machines, as `vani systems` does."""
    _print_names()


def _print_names() -> None:
    for name in known_systems():
        system = load_system(name)
        click.echo(f"{name:<20} {system.description or system.name}")


@command.command()
@click.argument("name")
@output_option()
def show(name: str, output: Path | None) -> None:
    """Write the description of NAME (a bundled machine or a file), merged with its base.

    Unknown figures are left out.
    """
    check_outputs([output], system_files(name))
    emit(dumps(load_system(name), only_set=True), output)


@command.command()
@output_option()
@settings_options(DetectSettings)
@quiet_option
def detect(output: Path | None, settings: DetectSettings, quiet: bool) -> None:
    """Describe this machine; stderr lists facts that could not be found.

    Run it inside a job, to see the compute node's burst buffers and network. Without --measure, nothing is written
    to the machine's storage.
    """
    check_outputs([output])
    data, folder = settings.data, settings.measure
    if data is not None and not data.exists():
        raise InputError("no such folder", where=data, todo="name the folder of the data")
    if folder is None and settings.model_fields_set & {"size", "sweep", "yes"}:
        raise InputError("--size, --sweep and --yes need --measure", todo="add --measure DIR, or leave them out")
    if settings.launcher is not None and not settings.sweep:
        raise InputError("--launcher needs --sweep", todo="add --sweep, or leave it out")
    measured, curves = (None, ()) if folder is None else _measured(folder, settings, quiet=quiet)
    system, missing = describe(data=data or folder, measured=measured, curves=curves)
    emit(dumps(system), output)
    say(*(f"vani: {sentence}" for sentence in ([] if quiet else missing)))


def _lustre_of(folder: Path) -> FileSystem:
    """The Lustre file system of a folder."""
    disk = describe(data=folder)[0].file_system_for(str(folder.resolve()))
    if disk is None or disk.type != "lustre":
        raise InputError("--sweep measures stripe counts of Lustre", where=folder, todo="name a folder on Lustre")
    return disk


def _measured(folder: Path, settings: DetectSettings, *, quiet: bool) -> tuple[Measurement, Sequence[StripeCurve]]:
    """Warn the user, request confirmation, and run the tests: rates, and rates of files by their number of targets."""
    size, disk = settings.size, _lustre_of(folder) if settings.sweep else None
    try:
        count = parse_bytes(size)
    except ValueError:
        raise InputError(f"--size {size} is not a size", todo="use a size such as 4G or 512M") from None
    if not MIN_BYTES <= count <= MAX_BYTES:
        between = f"{lfs_size(MIN_BYTES)} and {lfs_size(MAX_BYTES)}"
        raise InputError(f"--size {size} is out of range", todo=f"use a size between {between}")
    check_room(folder, count)
    then = ""
    if disk is not None:
        most = f"at most {format_number(longest_s(disk.targets) / 60, 2)} min and the time of `lfs` and flushing"
        then = f", then writing {size} in each of up to {len(PATTERNS)} patterns on several numbers of targets, {most}"
    warning = (
        f"writing {size} to {folder} and reading it again, at most {2 * LIMIT_S:g} s"
        f"{then}: this loads the file system for all users"
    )
    if not settings.yes:
        if not sys.stdin.isatty():
            raise InputError(f"--measure means {warning}", todo="add --yes to agree")
        if not click.confirm(one_line(f"vani: {warning}. Continue?"), err=True):
            raise InputError("nothing was measured", todo="agree, or leave --measure out")
    elif not quiet:
        say(f"vani: {warning}")
    measured = measure(folder, count)
    if not quiet:
        rates = f"write {format_rate(measured.write)}, read {format_rate(measured.read)}"
        say(f"vani: {rates}: {'; '.join((measured.method, *measured.notes))}")
    curves = () if disk is None else measure_by_stripe_count(folder, count, disk.targets, launcher=settings.launcher)
    for curve in () if quiet else curves:
        rates = ", ".join(f"{point.stripe_count}: {format_rate(point.bandwidth)}" for point in curve.points)
        order = "" if curve.order == "contiguous" else f", {curve.order}"
        what = f"{curve.calls}, {curve.layout.replace('_', ' ')}{order}"
        say(f"vani: by stripe count, {what}: {rates}")
    return measured, curves
