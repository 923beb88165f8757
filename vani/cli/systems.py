"""`vani systems`: lists the bundled machines, shows one, or describes this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani.cli.options import FILE, output_option, quiet_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs, system_files
from vani.errors import InputError, one_line
from vani.units import format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vani.collect.transfer_test import Measurement
    from vani.schema.system import FileSystem, StripeCurve

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
    from vani.systems import known_systems, load_system  # noqa: PLC0415

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
    from vani.schema.document import dumps  # noqa: PLC0415
    from vani.systems import load_system  # noqa: PLC0415

    check_outputs([output], system_files(name))
    emit(dumps(load_system(name), only_set=True), output)


@command.command()
@output_option()
@click.option(
    "--data",
    type=FILE,
    metavar="DIR",
    help="Data folder, for its default layout; by default the folder of --measure, else the current one.",
)
@click.option(
    "--measure",
    type=FILE,
    metavar="DIR",
    help="Measure rates in this folder, by writing and reading test files from this node.",
)
@click.option("--size", default="4G", show_default=True, metavar="SIZE", help="With --measure: number of bytes.")
@click.option(
    "--sweep",
    is_flag=True,
    help="With --measure: also measure files on 1, 2, 4, ... Lustre targets; each pattern writes --size again.",
)
@click.option(
    "--launcher",
    metavar="COMMAND",
    help="With --sweep: launcher of processes on all nodes of a job, such as 'srun --ntasks-per-node 8'.",
)
@click.option("--yes", is_flag=True, help="With --measure: do not ask for confirmation.")
@quiet_option
@click.pass_context
def detect(
    ctx: click.Context,
    output: Path | None,
    data: Path | None,
    measure: Path | None,
    size: str,
    *,
    sweep: bool,
    launcher: str | None,
    yes: bool,
    quiet: bool,
) -> None:
    """Describe this machine; stderr lists facts that could not be found.

    Run it inside a job, to see the compute node's burst buffers and network. Without --measure, nothing is written
    to the machine's storage.
    """
    from vani.collect.system import detect as run  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    check_outputs([output])
    if data is not None and not data.exists():
        raise InputError("no such folder", where=data, todo="name the folder of the data")
    is_sized = ctx.get_parameter_source("size") is not click.core.ParameterSource.DEFAULT
    _check_options(measure, others=yes or sweep or is_sized, sweep=sweep, launcher=launcher)
    disk = _lustre_of(measure) if measure and sweep else None
    measured = _measured(measure, size, disk, yes=yes, quiet=quiet) if measure else None
    curves = _swept(measure, size, disk, launcher, quiet=quiet) if measure and disk else ()
    system, missing = run(data=data or measure, measured=measured, curves=curves)
    emit(dumps(system), output)
    for sentence in () if quiet else missing:
        click.echo(f"vani: {one_line(sentence)}", err=True)


def _check_options(measure: Path | None, *, others: bool, sweep: bool, launcher: str | None) -> None:
    if measure is None and others:
        raise InputError("--size, --sweep and --yes need --measure", todo="add --measure DIR, or leave them out")
    if launcher is not None and not sweep:
        raise InputError("--launcher needs --sweep", todo="add --sweep, or leave it out")


def _lustre_of(folder: Path) -> FileSystem:
    """The Lustre file system of a folder."""
    from vani.collect.system import detect as run  # noqa: PLC0415

    disk = run(data=folder)[0].file_system_for(str(folder.resolve()))
    if disk is None or disk.type != "lustre":
        raise InputError("--sweep measures stripe counts of Lustre", where=folder, todo="name a folder on Lustre")
    return disk


def _swept(
    folder: Path, size: str, disk: FileSystem, launcher: str | None, *, quiet: bool
) -> Sequence[StripeCurve]:
    """Rates of files by their number of targets."""
    from vani.collect.stripe_sweep import sweep  # noqa: PLC0415
    from vani.units import format_rate, parse_bytes  # noqa: PLC0415

    curves = sweep(folder, parse_bytes(size), disk.targets, launcher=launcher)
    for curve in () if quiet else curves:
        rates = ", ".join(f"{point.stripe_count}: {format_rate(point.bandwidth)}" for point in curve.points)
        order = "" if curve.order == "contiguous" else f", {curve.order}"
        what = f"{curve.calls}, {curve.layout.replace('_', ' ')}{order}"
        click.echo(f"vani: by stripe count, {what}: {rates}", err=True)
    return curves


def _measured(folder: Path, size: str, disk: FileSystem | None, *, yes: bool, quiet: bool) -> Measurement:
    """Warn the user, request confirmation, and run the test."""
    from vani.collect.stripe_sweep import PATTERNS, longest_s  # noqa: PLC0415
    from vani.collect.transfer_test import LIMIT_S, MAX_BYTES, MIN_BYTES, check_room, measure  # noqa: PLC0415
    from vani.units import format_rate, lfs_size, parse_bytes  # noqa: PLC0415

    try:
        count = parse_bytes(size)
    except ValueError:
        raise InputError(f"--size {one_line(size)} is not a size", todo="use a size such as 4G or 512M") from None
    if not MIN_BYTES <= count <= MAX_BYTES:
        between = f"{lfs_size(MIN_BYTES)} and {lfs_size(MAX_BYTES)}"
        raise InputError(f"--size {one_line(size)} is out of range", todo=f"use a size between {between}")
    check_room(folder, count)
    then = ""
    if disk is not None:
        most = f"at most {format_number(longest_s(disk.targets) / 60, 2)} min and the time of `lfs` and flushing"
        then = f", then writing {size} in each of up to {len(PATTERNS)} patterns on several numbers of targets, {most}"
    warning = (
        f"writing {size} to {one_line(str(folder))} and reading it again, at most {2 * LIMIT_S:g} s"
        f"{then}: this loads the file system for all users"
    )
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(f"--measure means {warning}", todo="add --yes to agree")
        if not click.confirm(f"vani: {warning}. Continue?", err=True):
            raise InputError("nothing was measured", todo="agree, or leave --measure out")
    elif not quiet:
        click.echo(f"vani: {warning}", err=True)
    measured = measure(folder, count)
    if not quiet:
        rates = f"write {format_rate(measured.write)}, read {format_rate(measured.read)}"
        click.echo(f"vani: {rates}: {'; '.join((measured.method, *measured.notes))}", err=True)
    return measured
