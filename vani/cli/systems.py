"""`vani systems`: machines that are bundled, one of them, and the one at hand."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.options import FILE, output_option, quiet_option
from vani.cli.output import emit
from vani.cli.places import check_places, system_files

__all__ = ["systems"]


@click.group(invoke_without_command=True)
@click.pass_context
def systems(ctx: click.Context) -> None:
    """List the machines whose descriptions are bundled, show one, or describe this one."""
    if ctx.invoked_subcommand is None:
        from vani.systems import known_systems, load_system  # noqa: PLC0415

        for name in known_systems():
            system = load_system(name)
            click.echo(f"{name:<20} {system.description or system.name}")


@systems.command()
@click.argument("name")
@output_option()
def show(name: str, output: Path | None) -> None:
    """Write the description of NAME (a bundled machine or a file), merged with what it builds on."""
    from vani.schema.document import dumps  # noqa: PLC0415
    from vani.systems import load_system  # noqa: PLC0415

    check_places([output], system_files(name))
    emit(dumps(load_system(name)), output)


@systems.command()
@output_option()
@click.option(
    "--data",
    type=FILE,
    metavar="DIR",
    help="Where the data lies, for its default layout; by default this folder.",
)
@quiet_option
def detect(output: Path | None, data: Path | None, quiet: bool) -> None:
    """Describe the machine that this runs on; what could not be found out is said on stderr.

    Best run inside a job: burst buffers and network are those of the node.
    """
    from vani.collect.system import detect as run  # noqa: PLC0415
    from vani.errors import InputError, one_line  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    check_places([output])
    if data is not None and not data.exists():
        raise InputError("no such folder", where=data, todo="name the folder of the data")
    system, missing = run(data=data)
    emit(dumps(system), output)
    if not quiet:
        for sentence in missing:
            click.echo(f"vani: {one_line(sentence)}", err=True)
