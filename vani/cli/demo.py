"""`vani demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import vani
from vani import api
from vani.atomic import new_directory, write_text
from vani.cli.lazy_group import commands_from
from vani.cli.options import FILE
from vani.errors import InputError
from vani.units import format_bytes, format_number, format_seconds

if TYPE_CHECKING:
    from rich.console import Console

    from vani.schema.advice import Advice
    from vani.schema.profile import Profile

__all__ = ["demo"]

_STORY = "striping"
"""Folder with two runs of one program on one machine: before and after the advised line was pasted."""
_BEFORE, _AFTER = "before/shared-write", "after/shared-write"
_JOB, _SYSTEM = "job.yaml", "system.yaml"
_PROFILE, _ADVICE, _PROFILE_AFTER, _REPORT = _DOCUMENTS = ("profile.yaml", "advice.yaml", "after.yaml", "report.html")


@dataclass(frozen=True)
class _Stage:
    """Folder and output of the demo."""

    console: Console
    program: str
    output: Path | None
    """The folder that is kept."""
    folder: Path
    """The folder that is written."""
    store: Path

    def shown(self, name: str) -> str:
        """A document as the user would type it."""
        return _typed(Path(name) if self.output is None else self.output / name)


_COMMANDS: Final = {
    "centre": ("vani.cli.demo_centre:centre", "Run a day of a modelled centre, with `vani plan job` and without."),
}


@click.group(cls=commands_from(_COMMANDS), invoke_without_command=True)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="DIR",
    help="Keep profile.yaml, advice.yaml, after.yaml and report.html in this folder.",
)
@click.option(
    "--copy",
    type=FILE,
    metavar="DIR",
    help="Copy the traces to this new folder, and work on the copy.",
)
@click.pass_context
def demo(ctx: click.Context, output: Path | None, copy: Path | None) -> None:
    """Find what slows a run down, paste one line, and see the second run.

    Both runs are real and were traced: four processes write one file on a stand-in for a striped file system
    (16 targets of 16 MB/s), before and after the advised line was pasted. The commands are shown, to be copied as they
    are printed.
    """
    if ctx.invoked_subcommand is not None:
        return
    _check_places(output, copy)
    bundled = _near(Path(vani.__file__).parent / "demo" / _STORY)
    story = bundled if copy is None else _copied(bundled, copy)
    with _stage(output) as stage:
        before = _profile(stage, story)
        advice = _advise(stage, before, story)
        _run_again(stage, before, advice, story)
        size = _report(stage)
    _farewell(stage, size)


@contextmanager
def _stage(output: Path | None) -> Iterator[_Stage]:
    from rich.console import Console  # noqa: PLC0415 - --help does not need it

    program = _program()
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 80)
    with tempfile.TemporaryDirectory(prefix="vani-demo-") as scratch:
        folder = Path(scratch) if output is None else _created(output)
        yield _Stage(console, program, output, folder, Path(scratch) / "store")


def _profile(stage: _Stage, story: Path) -> Profile:
    from vani.render.profile.screen import render  # noqa: PLC0415

    profile = _profiled(stage, "Profile the run", story, _BEFORE, _PROFILE)
    saved = Path(_PROFILE) if stage.output is None else stage.folder / _PROFILE
    render(profile, stage.console, saved=saved, program=stage.program)
    stage.console.print()
    return profile


def _profiled(stage: _Stage, purpose: str, story: Path, trace: str, document: str) -> Profile:
    words = f"profile {_typed(story / trace)} --job {_typed(story / _JOB)} -o {stage.shown(document)}"
    _show(stage, purpose, words)
    profile = api.profile(story / trace, job=story / _JOB, store=stage.store)
    write_text(stage.folder / document, profile.to_yaml())
    return profile


def _advise(stage: _Stage, profile: Profile, story: Path) -> Advice:
    from vani.render.advice.screen import render  # noqa: PLC0415

    words = f"advise {stage.shown(_PROFILE)} --system {_typed(story / _SYSTEM)} -o {stage.shown(_ADVICE)}"
    _show(stage, "Ask for settings", words)
    advice = api.advise(stage.folder / _PROFILE, system=story / _SYSTEM)
    write_text(stage.folder / _ADVICE, advice.to_yaml())
    render(advice, profile, stage.console, written=_ADVICE)
    stage.console.print()
    return advice


def _run_again(stage: _Stage, before: Profile, advice: Advice, story: Path) -> None:
    """Show the second run beside the gain that was expected."""
    after = _profiled(stage, "The line was pasted, and the program ran again", story, _AFTER, _PROFILE_AFTER)
    first, second = before.workflow.runtime_s, after.workflow.runtime_s
    if first is None or second is None:
        raise RuntimeError("a bundled trace has no run time")
    gain = next((entry.gain for entry in advice.recommendations if entry.apply), None)
    expected = "" if gain is None or gain.speedup is None else f"; expected {format_number(gain.speedup, 2)}"
    if expected and gain is not None and gain.low is not None and gain.high is not None:
        expected += f" ({format_number(gain.low, 2)} to {format_number(gain.high, 2)}) for its writes"
    stage.console.print(
        f"Measured: {format_seconds(first)} -> {format_seconds(second)}, "
        f"{format_number(first / second, 2)} times as fast{expected}.",
        markup=False,
        style="bold",
        soft_wrap=True,
    )
    stage.console.print(
        "Both runs were traced on a stand-in for a striped file system: 16 targets of 16 MB/s, on one machine.",
        markup=False,
    )
    stage.console.print()


def _report(stage: _Stage) -> str:
    """Write the page; returns its size as text."""
    words = f"report {stage.shown(_PROFILE)} --advice {stage.shown(_ADVICE)} -o {stage.shown(_REPORT)}"
    _show(stage, "Write it as a page", words)
    page = api.report(stage.folder / _PROFILE, advice=stage.folder / _ADVICE, store=stage.store)
    write_text(stage.folder / _REPORT, page)
    return format_bytes(len(page.encode()))


def _farewell(stage: _Stage, size: str) -> None:
    documents = f"{_PROFILE}, {_ADVICE}, {_PROFILE_AFTER} and {_REPORT} ({size})"
    if stage.output is None:
        stage.console.print(f"-o DIR keeps {documents}.", markup=False)
    else:
        stage.console.print(f"Kept in {stage.output}: {documents}.", markup=False, soft_wrap=True)
    words = f"Now your own: {stage.program} profile TRACE -o {_PROFILE}"
    stage.console.print(words, markup=False, soft_wrap=True)


def _check_places(output: Path | None, copy: Path | None) -> None:
    """Find out before the work begins whether both places can be written and nothing there would be lost.

    Raises
    ------
    InputError
        A file where a folder is wanted, a folder that cannot be written, or something that has the name already.
    """
    if copy is not None and os.path.lexists(copy):
        raise InputError("is there already, and is not replaced", where=copy, todo="name a new folder")
    if copy is not None and output is not None and copy.resolve() == output.resolve():
        raise InputError("is named for two outputs", where=output, todo="give each its own name")
    for folder in (place for place in (output, copy) if place is not None):
        above = next(ancestor for ancestor in (folder, *folder.parents) if os.path.lexists(ancestor))
        if not above.is_dir():
            raise InputError("is not a folder", where=above, todo="name a folder")
        if not os.access(above, os.W_OK | os.X_OK):
            raise InputError(
                "cannot be written: this folder is read-only", where=above, todo="name another one"
            )
    for path in (output / name for name in _DOCUMENTS if output is not None):
        if os.path.lexists(path):
            raise InputError("is there already, and is not replaced", where=path, todo="name another folder")


def _created(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be made ({error.strerror})", where=folder, todo="name another folder"
        ) from error
    return folder


def _copied(story: Path, folder: Path) -> Path:
    with new_directory(folder) as partial:
        for path in (path for path in story.rglob("*") if path.is_file()):
            target = partial / path.relative_to(story)
            target.parent.mkdir(parents=True, exist_ok=True)
            # Contents alone: an installed package may be read-only.
            shutil.copyfile(path, target)
    return folder


def _show(stage: _Stage, purpose: str, words: str) -> None:
    from rich.text import Text  # noqa: PLC0415

    stage.console.print(f"{purpose}:", markup=False)
    # A line that is broken could not be copied.
    stage.console.print(Text(f"  {stage.program} {words}", style="bold"), soft_wrap=True)
    stage.console.print()


def _program() -> str:
    """The command as a user types it in a shell; a script that is not on the PATH needs its folder."""
    script = Path(sys.argv[0])
    if script.name != "vani" or not script.is_file():
        return f"{_typed(_near(Path(sys.executable)))} -m vani"
    program = shutil.which("vani")
    if program is not None and script.samefile(program):
        return "vani"
    near = _typed(_near(script))
    return near if "/" in near else f"./{near}"


def _near(path: Path) -> Path:
    """A path below the current folder as seen from there, any other from the root."""
    # Links stay: a virtual environment's interpreter is one.
    whole, here = path.absolute(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _typed(path: Path) -> str:
    """A path as a word for a shell."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
