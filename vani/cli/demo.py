"""`vani demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

import vani
from vani.atomic import new_directory, write_text
from vani.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["demo"]

_TRACE = "ior-shared-file-8r"
_SYSTEM = "generic-lustre"
_PROFILE, _ADVICE, _REPORT = _DOCUMENTS = ("profile.yaml", "advice.yaml", "report.html")


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep profile.yaml, advice.yaml and report.html in this folder.",
)
@click.option(
    "--copy",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Copy the trace to this new folder, and work on the copy.",
)
def demo(output: Path | None, copy: Path | None) -> None:
    """Profile a bundled real trace, ask for advice, and write the report.

    The trace is of an IOR run of 8 processes that write and read one shared file of 128 MiB. The commands that do it
    are shown, to be copied as they stand.
    """
    from rich.console import Console  # noqa: PLC0415 - --help does not need it

    from vani import api  # noqa: PLC0415
    from vani.render.advice.screen import render as render_advice  # noqa: PLC0415
    from vani.render.profile.screen import render as render_profile  # noqa: PLC0415
    from vani.units import format_bytes  # noqa: PLC0415

    _check_places(output, copy)
    trace = _near(Path(vani.__file__).parent / "demo" / _TRACE)
    if copy is not None:
        trace = _copied(trace, copy)
    program = _program()
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 80)
    with tempfile.TemporaryDirectory(prefix="vani-demo-") as scratch:
        place = Path(scratch) if output is None else _made(output)
        profile_file, advice_file, report_file = (place / name for name in _DOCUMENTS)
        shown = {name: _typed(Path(name) if output is None else output / name) for name in _DOCUMENTS}
        store = Path(scratch) / "store"

        _show(console, "Profile the run", f"{program} profile {_typed(trace)} -o {shown[_PROFILE]}")
        profile = api.profile(trace, store=store)
        write_text(profile_file, profile.to_yaml())
        saved = Path(_PROFILE) if output is None else profile_file
        render_profile(profile, console, saved=saved, program=program)

        console.print()
        command = f"{program} advise {shown[_PROFILE]} --system {_SYSTEM} -o {shown[_ADVICE]}"
        _show(console, "Ask for settings", command)
        advice = api.advise(profile_file, system=_SYSTEM)
        write_text(advice_file, advice.to_yaml())
        render_advice(advice, profile, console)

        console.print()
        command = f"{program} report {shown[_PROFILE]} --advice {shown[_ADVICE]} -o {shown[_REPORT]}"
        _show(console, "Write it as a page", command)
        page = api.report(profile_file, advice=advice_file, store=store)
        write_text(report_file, page)
    made = f"{_PROFILE}, {_ADVICE} and {_REPORT} ({format_bytes(len(page.encode()))})"
    if output is None:
        console.print(f"-o DIR keeps {made}.", markup=False)
    else:
        console.print(f"Kept in {output}: {made}.", markup=False, soft_wrap=True)
    console.print(f"Now your own: {program} profile TRACE -o {_PROFILE}", markup=False, soft_wrap=True)


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
    for folder in (one for one in (output, copy) if one is not None):
        above = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
        if not above.is_dir():
            raise InputError("is not a folder", where=above, todo="name a folder")
        if not os.access(above, os.W_OK | os.X_OK):
            raise InputError(
                "cannot be written: this folder is read-only", where=above, todo="name another one"
            )
    for path in (output / name for name in _DOCUMENTS if output is not None):
        if os.path.lexists(path):
            raise InputError("is there already, and is not replaced", where=path, todo="name another folder")


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be made ({error.strerror})", where=folder, todo="name another folder"
        ) from error
    return folder


def _copied(trace: Path, folder: Path) -> Path:
    with new_directory(folder) as partial:
        for path in trace.iterdir():
            # Contents alone: an installed package may be read-only.
            shutil.copyfile(path, partial / path.name)
    return folder


def _show(console: Console, purpose: str, command: str) -> None:
    from rich.text import Text  # noqa: PLC0415

    console.print(f"{purpose}:", markup=False)
    # A line that is broken could not be copied.
    console.print(Text(f"  {command}", style="bold"), soft_wrap=True)
    console.print()


def _program() -> str:
    """What the user types for `vani`, for a shell; a script that is not on the PATH needs its folder."""
    script = Path(sys.argv[0])
    if script.name != "vani" or not script.is_file():
        return f"{_typed(_near(Path(sys.executable)))} -m vani"
    found = shutil.which("vani")
    if found is not None and script.samefile(found):
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
