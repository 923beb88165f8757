"""`vani apply`: sets the layouts of advice or of a tuned.yaml, checks them, and undoes them."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Final

import click
from pydantic import Field

import vani
from vani.atomic import write_text
from vani.cli.options import FILE, settings_options
from vani.cli.sources import OptionalFile
from vani.collect.file_systems import layout_problem
from vani.errors import InputError, one_line, os_errors_as
from vani.render.script import advice_script, lasting_commands, tuned_script
from vani.schema.advice import Advice
from vani.schema.document import read_text
from vani.schema.settings import Option, PathLike, Settings
from vani.schema.tuned import Tuned
from vani.units import counted

_SCRIPT: Final = "apply.sh"
_MARKS: Final = {True: "ok", False: "FAILED", None: "note"}


class ApplySettings(Settings):
    """Ways to use the layouts of a document."""

    undo: bool = Field(default=False, description="Restore the earlier layouts.")
    dry_run: bool = Field(default=False, description="Print the commands and check the folders, and change nothing.")
    state: Annotated[Path, Option(metavar="DIR")] = Field(
        default=Path("vani-apply-state"), description="Folder for the earlier layouts."
    )
    job_output: OptionalFile = Field(
        default=None,
        description="Compare the hints that a job with ROMIO_PRINT_HINTS=1 printed with those recommended.",
    )


@dataclass(frozen=True)
class Check:
    """A sentence about a folder or a hint, and whether the setting is as requested; None if that is unknown."""

    text: str
    is_right: bool | None


@dataclass(frozen=True)
class Applied:
    """The outcome of `apply`."""

    printed: str
    """Commands that the script ran, or would run."""
    checks: tuple[Check, ...]
    job_lines: str
    """Lines for the job script; empty if there are none, and after an undo."""

    @property
    def failed(self) -> bool:
        """Whether a check found a setting that differs from the request."""
        return any(check.is_right is False for check in self.checks)


def apply(document: PathLike | Advice | Tuned, settings: ApplySettings | None = None, **fields: Any) -> Applied:
    """Set the layouts that a document recommends, with the script that `vani advise --script` writes.

    Parameters
    ----------
    document
        Advice or the result of `tune`, or the path of one.
    settings, fields
        The settings, or single fields of `ApplySettings`. `undo` runs the script that was applied, even if the document
        has changed since.

    Raises
    ------
    InputError
        The document cannot be read, `state` belongs to another script, there is nothing to undo, or `lfs` is
        missing or fails.
    """
    settings = ApplySettings.of(settings, **fields)
    steps, script = _steps_and_script(document)
    folder = settings.state
    if settings.undo:
        return Applied(_undone(script, folder, dry_run=settings.dry_run), (), "")
    before = tuple(_before(steps))
    job_lines = _run(script, ["--job"], folder)
    if settings.dry_run:
        # The script's last line names its own options, which the command does not have.
        shown = _run(script, [], folder).partition("# Nothing was done")[0]
        last = "Dry run: leave out --dry-run to run these commands." if shown else "The advice sets no layouts."
        return Applied(f"{shown}# {last}\n", before, job_lines)
    printed = run_script(script, folder)
    reported = () if settings.job_output is None else tuple(_reported(steps, settings.job_output))
    return Applied(printed, (*before, *_after(steps), *reported), job_lines)


def _steps_and_script(document: PathLike | Advice | Tuned) -> tuple[list[list[str]], str]:
    """The lines of each step, and the script."""
    if isinstance(document, (str, Path)):
        is_tuned = re.match(r"\W*schema\W+vani\.tuned/", read_text(document)) is not None
        document = (Tuned if is_tuned else Advice).load(document)
    if isinstance(document, Tuned):
        return [setting.apply for setting in document.settings], tuned_script(document)
    steps = [item.apply for item in document.recommendations if item.severity != "info"]
    return steps, advice_script(document, version=vani.__version__)


def run_script(script: str, state: Path) -> str:
    """Apply the layouts of a script, store the undo data in `state`, and return the script's output.

    Raises
    ------
    InputError
        `state` belongs to another script, or a command failed.
    """
    copy = state / _SCRIPT
    if copy.exists() and copy.read_text(encoding="utf-8") != script:
        raise InputError(
            "contains the layouts from before another advice",
            where=state,
            todo="undo that advice first (vani apply ADVICE --undo), or name another folder with --state",
        )
    state.mkdir(parents=True, exist_ok=True)
    write_text(copy, script)
    return _run(script, ["--apply"], state)


def undo_script(state: Path, script: str | None = None) -> str:
    """Undo the settings of the script copied to `state`, or of `script` if there is no copy.

    Raises
    ------
    InputError
        A command failed.
    """
    copy = state / _SCRIPT
    if copy.exists():
        script = copy.read_text(encoding="utf-8")
    printed = "" if script is None else _run(script, ["--undo"], state)
    copy.unlink(missing_ok=True)
    if not any(state.iterdir()):
        state.rmdir()
    return printed


def _undone(script: str, state: Path, *, dry_run: bool) -> str:
    # The user may have run the script directly, which stores no copy.
    if not state.is_dir():
        raise InputError("does not exist: there is nothing to undo", where=state, todo="name --state")
    if dry_run:
        copy = state / _SCRIPT
        applied = shlex.quote(str(copy if copy.exists() else _SCRIPT))
        return f"VANI_STATE={shlex.quote(str(state))} sh {applied} --undo\n"
    return undo_script(state, script)


def _run(script: str, arguments: Sequence[str], state: Path) -> str:
    """The output of the script."""
    with NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as file:
        file.write(script)
        file.flush()
        done = subprocess.run(
            ["sh", file.name, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=False,
            # Ctrl-C in a terminal would end `lfs` between two steps.
            process_group=0,
            env={**os.environ, "VANI_STATE": str(state), "APPLY": "0"},
        )
    if done.returncode:
        needed = re.search(r"^  need ([\w-]+)", script, re.MULTILINE)
        lines = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
        raise InputError(
            lines[-1].removeprefix("apply.sh: "),
            where=needed[1] if needed else "lfs",
            todo=f"vani apply --undo undoes the steps already made ({state})",
        )
    return done.stdout


def _layouts(steps: Sequence[Sequence[str]]) -> Iterator[tuple[Path, str]]:
    """The folder and layout of each `Setting` in the script."""
    for lines in steps:
        for words in lasting_commands(lines):
            if words[0] != "lfs" or words[1] == "setstripe":
                yield Path(words[-1]), shlex.join(words[2:-1] if words[0] == "lfs" else words[:-1])


def _before(steps: Sequence[Sequence[str]]) -> Iterator[Check]:
    for path, _ in _layouts(steps):
        try:
            count = sum(1 for _ in path.iterdir())
        except NotADirectoryError:
            yield Check(f"{path}: is a file, which keeps the layout that it was created with", False)
        except OSError as error:
            yield Check(f"{path}: {error.strerror}", False)
        else:
            has = f"has {counted(count, 'entry')}; existing files keep their layout" if count else "is empty"
            yield Check(f"{path}: {has}", None if count else True)


def _after(steps: Sequence[Sequence[str]]) -> Iterator[Check]:
    for path, wanted in _layouts(steps):
        if path.is_dir():
            what, is_right = layout_problem(path, wanted) or (f"new files get {wanted}", True)
            yield Check(f"{path}: {what}", is_right)


def reported_hints(text: str) -> dict[str, list[str]]:
    """Values of the hints that ROMIO printed (`ROMIO_PRINT_HINTS=1`), in order, one per opened file.

    A line looks like `key = cb_nodes   value = 8`. ROMIO does not name the files; Darshan's own log is one of them.
    """
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r"^\s*key = (\S+)\s+value = (.*?)\s*$", text, re.MULTILINE):
        values.setdefault(name, []).append(value)
    return values


def _reported(steps: Sequence[Sequence[str]], output: Path) -> Iterator[Check]:
    with os_errors_as(InputError, "cannot be read", where=output):
        hints = reported_hints(output.read_text(encoding="utf-8", errors="replace"))
    for name, value in _recommended_hints(steps).items():
        if name not in hints:
            yield Check(f"hint {name}: MPI did not report it", None)
        else:
            taken = value if value in hints[name] else hints[name][-1]
            yield Check(f"hint {name}: MPI reports {taken}, {value} was requested", taken == value)


def _recommended_hints(steps: Sequence[Sequence[str]]) -> Mapping[str, str]:
    """Recommended hints by name, from the lines that write ROMIO's hint file."""
    return {
        name: value
        for lines in steps
        for line in lines
        if line.endswith(">> romio-hints")
        for name, value in re.findall(r"'(\w+) ([^']*)'", line)
    }


@click.command("apply")
@click.argument("document", type=FILE, metavar="ADVICE")
@settings_options(ApplySettings)
@click.pass_context
def command(ctx: click.Context, document: Path, settings: ApplySettings) -> None:
    """Apply the file layouts that ADVICE recommends, and check before and after.

    ADVICE is the output of `vani advise` or `vani tune`. Like the script of --script, the command sets
    layouts of folders and prints settings for the job script. The exit status is 1 if a check fails: a missing
    folder, a layout that was not applied, a hint that MPI ignored. Existing files keep their layout, which is reported.
    """
    done = apply(document, settings)
    checks = [f"{_MARKS[check.is_right]:<8}{one_line(check.text)}\n" for check in done.checks]
    job_lines = f"\n# The job script needs these lines:{done.job_lines}" if done.job_lines else ""
    click.echo("".join([done.printed, *checks, job_lines]), nl=False)
    ctx.exit(1 if done.failed else 0)
