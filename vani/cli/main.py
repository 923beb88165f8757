"""`vani`: the group of all commands, and the only place that turns errors into exit statuses.

Exit statuses: 0 success; 1 `check` found something; 2 wrong usage or bad input; 3 a fault of Vani; 130 interrupted;
143 terminated.
"""

import errno
import io
import os
import sys
from pathlib import Path
from typing import Any

import click

import vani
from vani.cli.lazy_group import commands_from
from vani.cli.options import format_option
from vani.cli.signals import received, word
from vani.errors import InputError, VaniError, one_line, refuse_missing_links

# Name, module and help of each command, so that `vani --help` can list them without imports.
_COMMANDS = {
    "trace": ("vani.cli.trace:command", "Run a command and trace its I/O."),
    "profile": ("vani.cli.profile:command", "Characterise the I/O of a run from its trace, as YAML."),
    "advise": ("vani.cli.advise:command", "Recommend storage settings for a profile."),
    "apply": ("vani.cli.apply:command", "Apply the layouts that advice recommends, and check them."),
    "tune": ("vani.cli.tune:command", "Try recommended settings on a program, and keep the proven ones."),
    "report": ("vani.cli.report:command", "Write a profile and its advice as one page."),
    "plot": ("vani.cli.plot:command", "Draw a plot of a profile, ready for a paper."),
    "check": ("vani.cli.check:command", "Check a run against a policy and earlier runs, or save it as a baseline."),
    "diff": ("vani.cli.diff:command", "Show what changed between two runs, or compare many, one line each."),
    "convert": ("vani.cli.convert:command", "Decode a trace into a Parquet dataset."),
    "collect": ("vani.cli.collect:command", "Record what only the running job can see, as job.yaml."),
    "mcp": ("vani.cli.mcp:command", "Let an AI assistant query runs (Model Context Protocol)."),
    "explain": ("vani.cli.explain:command", "List rules and patterns, or explain one and its source."),
    "systems": ("vani.cli.systems:command", "List the bundled machines, or describe this one."),
    "config": ("vani.cli.main:config", "Show the settings in use here, and their sources."),
    "completion": ("vani.cli.main:completion", "Write the shell's completion script for `vani`."),
    "demo": ("vani.cli.demo:command", "See a slow run, its cause, the line to paste, and the second run."),
}


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from vani.kernels.build import state  # noqa: PLC0415 - `vani --help` need not look for a file

    click.echo(f"vani, version {vani.__version__}\nkernels: {state()}")
    ctx.exit()


@click.group(
    cls=commands_from(_COMMANDS, entry_points="vani.commands", set_up=("mcp", "systems", "config", "completion")),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `vani demo`, then `vani profile TRACE -o profile.yaml`, `vani advise profile.yaml`.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Find the storage settings that a program needs, from a trace of its run."""
    if ctx.invoked_subcommand is None:
        # Not on stdout, where a caller that forgot the command expects a document.
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write the completion script for a shell.

    For bash: vani completion bash > ~/.local/share/bash-completion/completions/vani. For zsh, write to a file _vani
    in a folder of fpath; for fish, to ~/.config/fish/completions/vani.fish.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - wanted only here

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(ctx.find_root().command, {}, "vani", "_VANI_COMPLETE").source())


@click.command("config")
@format_option(("text", "json"), default="text")
def config(kind: str) -> None:
    """Show the settings in use here, and their sources.

    An option of a command overrides the environment, which overrides $XDG_CONFIG_HOME/vani/config.toml (yours),
    which overrides the file of the centre: the one in VANI_SITE, else /etc/vani/site.toml.
    """
    from vani.render.table import settings_text  # noqa: PLC0415 - `vani --help` reads no file
    from vani.site import settings, thresholds  # noqa: PLC0415

    click.echo(settings_text(settings(), *thresholds(), kind=kind), nl=False)


def main(args: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal shows an escape for a character it lacks, as on stderr; documents are written as UTF-8
        # anyway.
        sys.stdout.reconfigure(errors="backslashreplace")
    # Otherwise pydantic would read the metadata of all installed packages to find plug-ins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.exit(_run(args))


def guard_streams() -> None:
    """Replace stdout and stderr with streams that may be closed, full or unread; called once, at the very start.

    Standard error is for people, so text that cannot be written there is dropped. So is output that is no longer read,
    as with `| head -n 1`. A document that cannot be written to standard output is an error.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise the next file opened, perhaps the output, would receive what C libraries print.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    sys.stdout = _stream(1, sys.stdout, errors="backslashreplace")
    sys.stderr = _stream(2, sys.stderr, errors="backslashreplace")


def _stream(number: int, before: Any, *, errors: str) -> io.TextIOWrapper:
    """A text stream like `before`, which is None if there was no stream."""
    if before is not None:
        before.flush()
    raw = _Guarded(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if before is None else before.encoding,
        errors=errors,
        line_buffering=number == 2 or raw.isatty(),
    )


class _Guarded(io.FileIO):
    """A raw stream that reports the first write error once and drops everything after it."""

    _failed = False

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        if self._failed:
            return size
        try:
            return super().write(data)
        except OSError as error:
            self._failed = True
            if self.fileno() == 2 or isinstance(error, BrokenPipeError):
                return size
            why = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise InputError(
                f"cannot be written ({why})", where="standard output", todo="redirect it elsewhere"
            ) from error


def _run(args: list[str] | None) -> int:
    try:
        refuse_missing_links()
        status = commands.main(args, prog_name="vani", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        return _say(_usage(error), 2)
    except click.ClickException as error:
        return _say(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return _say(word(130), 130)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 3
        return _say(word(status), status) if word(status) else status
    except VaniError as error:
        return _say(str(error), error.exit_code)
    except MemoryError:
        return _say(_NO_MEMORY, 2)
    except OSError as error:
        return _say(_NO_MEMORY if error.errno == errno.ENOMEM else _of_the_system(error), 2)
    except Exception as error:
        if isinstance(error, ImportError) and any(words in str(error) for words in _NOT_MAPPED):
            return _say(_NO_MEMORY, 2)
        if isinstance(error, RuntimeError) and str(error) == _REFUSED_THREAD:
            return _say("the system refuses another thread; raise the limit of processes (ulimit -u)", 2)
        if isinstance(error, OverflowError) and _WRONG_CLOCK in str(error):
            return _say("this machine's clock is later than the year 2262, beyond what Python can represent; set it", 2)
        if received():
            # A library may turn the exception that interrupts it into another error, especially during its
            # import.
            return _say(word(received()), received())
        if os.environ.get("VANI_TRACEBACK"):
            raise
        return _say(*_unexpected(error))


def _unexpected(error: Exception) -> tuple[str, int]:
    """The line about an unexpected exception, depending on where its code comes from, and the exit status."""
    from vani.plug_ins import described, is_of_contributor, place_of, plug_in_of  # noqa: PLC0415 - looks through all that is installed

    way = "(VANI_TRACEBACK=1 shows the traceback)"
    if (plug_in := plug_in_of(error)) is not None:
        return f"the plug-in {plug_in} failed: {described(error)}; update, fix or uninstall it {way}", 2
    if is_of_contributor(error):
        return f"{described(error)}, a file that is not committed; fix it there {way}", 2
    if place_of(error) is not None:
        return f"{described(error)}; fix it there, or report it if that file is unchanged from the release {way}", 3
    return f"a fault of Vani itself: {described(error)}; please report it {way}", 3


_NO_MEMORY = "not enough memory; use --scheduler synchronous, or a machine with more"
_NOT_MAPPED = ("failed to map segment", "annot allocate memory")
"""The dynamic linker's messages when memory is too short to load a library."""
_REFUSED_THREAD = "can't start new thread"
_WRONG_CLOCK = "timestamp too large"
"""Python's own messages."""


def _of_the_system(error: OSError) -> str:
    """The line about an error of the operating system, with a next step if a usual folder is missing."""
    if error.filename is None:
        import tempfile  # noqa: PLC0415 - wanted only here

        try:
            Path.cwd()
        except OSError:
            return "the working directory was removed; change to one that exists"
        try:
            tempfile.gettempdir()
        except OSError:
            return "no folder for temporary files can be written; set TMPDIR to one that can"
    return f"{error.filename or 'input or output'}: {error.strerror or error}"


def _usage(error: click.UsageError) -> str:
    text = error.format_message().rstrip(".")
    command = error.ctx.command_path if error.ctx is not None else "vani"
    # Our own messages end with what to do; click's do not.
    return text if "`" in text or "id you mean" in text else f"{text}; see `{command} --help`"


def _say(text: object, status: int) -> int:
    print(f"vani: {one_line(str(text))}", file=sys.stderr)  # noqa: T201
    return status


if __name__ == "__main__":
    main()
