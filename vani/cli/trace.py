"""`vani trace`: runs a command and traces its I/O."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from vani.cli.options import quiet_option, settings_options
from vani.cli.output import say
from vani.collect.tracing.outcome import Missed
from vani.collect.tracing.trace import Trace, TraceSettings, trace
from vani.units import counted, format_bytes


@click.command("trace", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@settings_options(TraceSettings)
@quiet_option
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...")
@click.pass_context
def command(ctx: click.Context, settings: TraceSettings, quiet: bool, command: tuple[str, ...]) -> None:
    """Run COMMAND and trace its I/O; the exit status is COMMAND's.

    The tracer is Recorder if its library is found (--recorder, RECORDER_ROOT or a loaded module), else strace. Recorder
    is loaded as the launcher of COMMAND requires (srun, mpirun, mpiexec, jsrun, flux run,
    aprun). DFTracer is for Python programs: its library must be in COMMAND's Python (pip install dftracer) or
    in DFTRACER_ROOT.
    """
    done = trace(command, settings)
    if done.remark:
        say(f"vani: {done.remark}")
    if done.status is None:
        click.echo(_as_typed(done))
        return
    if not quiet or done.fault:
        say(*_summary(done))
    if done.missed is not None:
        say(*_missed(done.missed, done.tracer))
    ctx.exit(done.exit_status)


def _as_typed(done: Trace) -> str:
    """The line quoted for a shell."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in done.variables.items()]
    return " ".join([*(["env", *variables] if variables else []), shlex.join(done.words)])


def _summary(done: Trace) -> list[str]:
    """Lines about the trace's folder, and what to do next."""
    folder = _near(done.folder)
    if done.fault:
        ended = f"; the program ended with status {done.status}" if done.status else ""
        return [f"vani: {folder}: {done.fault}{ended}", *([f"Next   {shlex.join(done.again)}"] if done.again else [])]
    return [
        f"Trace  {folder}: {counted(done.files, 'file')}, {format_bytes(done.bytes)}, by {_TRACERS[done.tracer]}",
        f"Next   vani advise {shlex.quote(folder)} --format text",
    ]


def _missed(missed: Sequence[Missed], tracer: str) -> list[str]:
    """A table of what the tracer did not record."""
    name, second = _TRACERS[tracer], "" if tracer == "strace" else ", compared with a second run under strace"
    if not missed:
        return [f"Missed nothing by {name}{second}"]
    lines = [f"Missed by {name}{second}:", f"{'written':>10}{'read':>10}{'calls':>10}{'grown':>10}"]
    lines += [_row([file], f"{file.path}{', mapped' * file.is_mapped}") for file in missed[:_SHOWN]]
    if len(missed) > _SHOWN:
        lines.append(_row(missed[_SHOWN:], f"{counted(len(missed) - _SHOWN, 'more file')}"))
    lines.append(_row(missed, f"in {counted(len(missed), 'file')}"))
    if any(file.is_mapped or file.grown for file in missed):
        lines.append("grown: bytes on disk beyond all writes; loads and stores in mapped memory are no calls")
    return lines


def _row(files: Sequence[Missed], what: str) -> str:
    written, read, calls, grown = (
        sum(getattr(file, name) for file in files) for name in ("written", "read", "calls", "grown")
    )
    return f"{format_bytes(written):>10}{format_bytes(read):>10}{calls:>10,}{format_bytes(grown):>10}  {what}"


_SHOWN = 10
_TRACERS = {"recorder": "Recorder", "strace": "strace", "dftracer": "DFTracer"}


def _near(folder: Path) -> str:
    """The folder's shortest path from here."""
    return str(folder.relative_to(Path.cwd())) if folder.is_relative_to(Path.cwd()) else str(folder)
