"""`vani trace`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani import api
from vani.cli.options import FILE, quiet_option
from vani.errors import one_line
from vani.units import counted, format_bytes

if TYPE_CHECKING:
    from vani.api.trace import Trace, Tracer

@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="DIR",
    help="Folder for the trace; it must not exist yet. [default: PROGRAM.trace]",
)
@click.option("--recorder", type=FILE, metavar="PATH", help="Recorder's library, or its installation folder.")
@click.option(
    "--tracer",
    type=click.Choice(["auto", "recorder", "strace", "dftracer"]),
    default="auto",
    show_default=True,
    help="Recorder if found, else strace; or one of the named tracers.",
)
@click.option("--dry-run", is_flag=True, help="Print the command line for a shell, and run nothing.")
@click.option("--no-collect", is_flag=True, help="Do not write job.yaml into the folder.")
@quiet_option
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...")
@click.pass_context
def trace(
    ctx: click.Context,
    output: Path | None,
    recorder: Path | None,
    tracer: Tracer,
    dry_run: bool,
    no_collect: bool,
    quiet: bool,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND and trace its I/O; the exit status is COMMAND's.

    The tracer is Recorder if its library is found (--recorder, RECORDER_ROOT or a loaded module), else strace. Recorder
    is loaded as the launcher of COMMAND requires (srun, mpirun, mpiexec, jsrun, flux run,
    aprun). DFTracer is for Python programs: its library must be in COMMAND's Python (pip install dftracer) or
    in DFTRACER_ROOT.
    """
    done = api.trace(
        command, output, recorder=recorder, tracer=tracer, dry_run=dry_run, collect=not no_collect
    )
    if done.remark:
        click.echo(f"vani: {one_line(done.remark)}", err=True)
    if done.status is None:
        click.echo(_as_typed(done))
        return
    if not quiet or done.fault:
        click.echo(_summary(done), err=True)
    ctx.exit(done.exit_status)


def _as_typed(done: Trace) -> str:
    """The line quoted for a shell."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in done.variables.items()]
    return " ".join([*(["env", *variables] if variables else []), shlex.join(done.words)])


def _summary(done: Trace) -> str:
    """The trace's folder, and what to do next."""
    folder = _near(done.folder)
    if done.fault:
        ended = f"; the program ended with status {done.status}" if done.status else ""
        first = f"vani: {one_line(f'{folder}: {done.fault}{ended}')}"
        return f"{first}\nNext   {shlex.join(done.again)}" if done.again else first
    return (
        f"Trace  {folder}: {counted(done.files, 'file')}, {format_bytes(done.bytes)}, by {_TRACERS[done.tracer]}\n"
        f"Next   vani advise {shlex.quote(folder)} --format text"
    )


_TRACERS = {"recorder": "Recorder", "strace": "strace", "dftracer": "DFTracer"}


def _near(folder: Path) -> str:
    """The folder's shortest path from here."""
    return str(folder.relative_to(Path.cwd())) if folder.is_relative_to(Path.cwd()) else str(folder)
