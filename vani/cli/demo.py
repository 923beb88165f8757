"""`vani demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

import vani
from vani.atomic import new_directory, write_text
from vani.cli.options import FILE, output_option
from vani.errors import InputError, os_errors_as
from vani.units import format_bytes, format_number, format_seconds

if TYPE_CHECKING:
    from rich.console import Console

    from vani.schema.advice import Advice
    from vani.schema.profile import Profile

_STORY = "striping"
"""Folder with two runs of one program on one machine, before and after the advised line was used."""
_BEFORE, _AFTER = "before/shared-write", "after/shared-write"
_PROGRAM = "4 processes write a file to a stand-in: 16 storage targets of 16 MB/s"
_LABEL = 10
_JOB, _SYSTEM = "job.yaml", "system.yaml"
_PROFILE, _ADVICE, _PROFILE_AFTER, _REPORT = _DOCUMENTS = ("profile.yaml", "advice.yaml", "after.yaml", "report.html")


@dataclass(frozen=True)
class _Stage:
    """Folders and commands of the demo."""

    console: Console
    program: str
    output: Path | None
    """The folder that is kept, if the user named one."""
    folder: Path
    """The folder in which the demo writes."""
    store: Path
    commands: list[str] = field(default_factory=list)
    """Command lines that were run, in the form a user would type."""

    def shown(self, name: str) -> str:
        """A document's path as a user would type it."""
        return _typed(Path(name) if self.output is None else self.output / name)


@click.command("demo")
@output_option("Keep profile.yaml, advice.yaml, after.yaml and report.html in this folder.", metavar="DIR")
@click.option(
    "--copy",
    type=FILE,
    metavar="DIR",
    help="Copy the traces to this new folder, and work on the copy.",
)
def command(output: Path | None, copy: Path | None) -> None:
    """Find what slows a run down, paste one line, and see the second run.

    Both runs are real and were traced: four processes write one file on a stand-in for a striped file system
    (16 targets of 16 MB/s), before and after the advised line was pasted. The commands are shown, to be copied as they
    are printed.
    """
    _check_places(output, copy)
    bundled = _near(Path(vani.__file__).parent / "demo" / _STORY)
    story = bundled if copy is None else _copied(bundled, copy)
    with _stage(output) as stage:
        before = _profiled(stage, story, _BEFORE, _PROFILE)
        advice = _advised(stage, story)
        after = _profiled(stage, story, _AFTER, _PROFILE_AFTER)
        size = _reported(stage)
        _print_story(stage, before, advice, after)
    _farewell(stage, size)


@contextmanager
def _stage(output: Path | None) -> Iterator[_Stage]:
    from rich.console import Console  # noqa: PLC0415 - --help does not need it

    program = _program()
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 80)
    with tempfile.TemporaryDirectory(prefix="vani-demo-") as scratch:
        folder = Path(scratch) if output is None else _created(output)
        yield _Stage(console, program, output, folder, Path(scratch) / "store")


def _profiled(stage: _Stage, story: Path, trace: str, document: str) -> Profile:
    stage.commands.append(f"profile {_typed(story / trace)} --job {_typed(story / _JOB)} -o {stage.shown(document)}")
    profile = vani.profile(story / trace, job=story / _JOB, store=stage.store)
    write_text(stage.folder / document, profile.to_yaml())
    return profile


def _advised(stage: _Stage, story: Path) -> Advice:
    machine = _typed(story / _SYSTEM)
    stage.commands.append(f"advise {stage.shown(_PROFILE)} --system {machine} -o {stage.shown(_ADVICE)}")
    advice = vani.advise(stage.folder / _PROFILE, system=story / _SYSTEM)
    write_text(stage.folder / _ADVICE, advice.to_yaml())
    return advice


def _reported(stage: _Stage) -> str:
    """Write the report page, and return its size as text."""
    stage.commands.append(f"report {stage.shown(_PROFILE)} --advice {stage.shown(_ADVICE)} -o {stage.shown(_REPORT)}")
    page = vani.report(stage.folder / _PROFILE, advice=stage.folder / _ADVICE, store=stage.store)
    write_text(stage.folder / _REPORT, page)
    return format_bytes(len(page.encode()))


def _print_story(stage: _Stage, before: Profile, advice: Advice, after: Profile) -> None:
    """Print the story in ten lines: the run, its cause, the pasted line, and the run after it."""
    from vani.models.verdict import verdict_of  # noqa: PLC0415
    from vani.render.wording import expected_gain  # noqa: PLC0415

    first, second = before.workflow.runtime_s, after.workflow.runtime_s
    verdict = verdict_of(before)
    setting = next(entry for entry in advice.recommendations if entry.apply)
    if first is None or second is None or verdict.cause is None:
        raise RuntimeError("a bundled trace has no run time or no cause")
    times = f"{format_seconds(first)} -> {format_seconds(second)}, {format_number(first / second, 2)} times as fast"
    for label, text in (
        ("Run", _PROGRAM),
        ("Verdict", verdict.sentence),
        ("Cause", verdict.cause.sentence),
        # Only the second sentence; the first explains the stripe size.
        ("Setting", f"{setting.reason.split('. ')[1].rstrip('.')} ({setting.rule})."),
        ("Line", setting.apply[0]),
        ("Expected", expected_gain(setting).removeprefix("Expected ")),
        ("Measured", f"run time: {times}, after pasting it"),
    ):
        for place, line in enumerate(textwrap.wrap(text, stage.console.width - _LABEL, break_on_hyphens=False)):
            stage.console.print(f"{'' if place else label:<{_LABEL}}{line}", markup=False, soft_wrap=True)


def _farewell(stage: _Stage, size: str) -> None:
    from rich.text import Text  # noqa: PLC0415

    stage.console.print("\nThe commands that found this; the third is for the run after:")
    for words in stage.commands:
        # A wrapped line could not be copied.
        stage.console.print(Text(f"  {stage.program} {words}", style="bold"), soft_wrap=True)
    documents = f"{_PROFILE}, {_ADVICE}, {_PROFILE_AFTER} and {_REPORT} ({size})"
    if stage.output is None:
        stage.console.print(f"-o DIR keeps {documents}.", markup=False)
    else:
        stage.console.print(f"Kept in {stage.output}: {documents}.", markup=False, soft_wrap=True)
    words = f"Now your own: {stage.program} profile TRACE -o {_PROFILE}"
    stage.console.print(words, markup=False, soft_wrap=True)


def _check_places(output: Path | None, copy: Path | None) -> None:
    """Check in advance that both output folders can be written and that nothing would be overwritten.

    Raises
    ------
    InputError
        An output is a file or a folder that cannot be written, or its name is already taken.
    """
    if copy is not None and os.path.lexists(copy):
        raise InputError("is there already, and is not replaced", where=copy, todo="name a new folder")
    if copy is not None and output is not None and copy.resolve() == output.resolve():
        raise InputError("is used for two outputs", where=output, todo="give each a different name")
    for folder in (place for place in (output, copy) if place is not None):
        above = next(ancestor for ancestor in (folder, *folder.parents) if os.path.lexists(ancestor))
        if not above.is_dir():
            raise InputError("is not a folder", where=above, todo="name a folder")
        if not os.access(above, os.W_OK | os.X_OK):
            raise InputError("cannot be written: this folder is read-only", where=above, todo="name another one")
    for path in (output / name for name in _DOCUMENTS if output is not None):
        if os.path.lexists(path):
            raise InputError("is there already, and is not replaced", where=path, todo="name another folder")


def _created(folder: Path) -> Path:
    with os_errors_as(InputError, "cannot be made", where=folder, todo="name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _copied(story: Path, folder: Path) -> Path:
    with new_directory(folder) as partial:
        for path in (path for path in story.rglob("*") if path.is_file()):
            target = partial / path.relative_to(story)
            target.parent.mkdir(parents=True, exist_ok=True)
            # Copy contents without permissions: an installed package may be read-only.
            shutil.copyfile(path, target)
    return folder


def _program() -> str:
    """The command as a user types it; a script that is not on the PATH needs its folder."""
    script = Path(sys.argv[0])
    if script.name != "vani" or not script.is_file():
        return f"{_typed(_near(Path(sys.executable)))} -m vani"
    program = shutil.which("vani")
    if program is not None and script.samefile(program):
        return "vani"
    near = _typed(_near(script))
    return near if "/" in near else f"./{near}"


def _near(path: Path) -> Path:
    """A path below the current folder in relative form, any other in absolute form."""
    # Keep symbolic links: the interpreter of a virtual environment is one.
    whole, here = path.absolute(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _typed(path: Path) -> str:
    """A path quoted for a shell."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
