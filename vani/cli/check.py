"""`vani check`: the gate of a project's CI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

import vani
from vani.cli.memory import memory_for
from vani.cli.output import (
    emit_all,
    progress_bar,
    quiet_option,
    shows_progress,
    shows_summary,
    summary_console,
)
from vani.cli.places import check_places, system_files
from vani.errors import InputError
from vani.render.check import FORMATS, OF_HOSTS

if TYPE_CHECKING:
    from vani.schema.check import Check, Level

__all__ = ["check"]


@click.command()
@click.argument("profile", type=click.Path(path_type=Path), metavar="PROFILE|TRACE")
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What is asked; the nearest vani.toml or .vani.yaml, from here upwards, by default.",
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="FILE",
    help="Compare with this baseline or profile, a folder or a glob of them; may be given several times.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="What is written to stdout, or to the file of -o.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="[FORMAT=]FILE",
    help="Write here; with FORMAT= besides what --format says, any number of times.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    help="The least level that makes the check fail.  [default: error, or what the policy says]",
)
@click.option("--allow-empty", is_flag=True, help="Nothing to check is a success.")
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Afterwards, passed or failed, make the baseline anew from this run.",
)
@click.option("--system", metavar="NAME|FILE", help="The machine that rules judge by.")
@click.option("--today", metavar="DATE", help="The day by which exceptions expire; today (UTC) by default.")
@quiet_option
@click.pass_context
def check(
    ctx: click.Context,
    profile: Path,
    policy: Path | None,
    baselines: tuple[str, ...],
    kind: str,
    outputs: tuple[str, ...],
    fail_on: Level | None,
    allow_empty: bool,
    update_baseline: bool,
    system: str | None,
    today: str | None,
    quiet: bool,
) -> None:
    """Hold a profile against a policy and against earlier runs.

    A directory is a trace, which is profiled first. Exit status: 0 all holds, 1 something was found at or above
    the level of --fail-on, 2 nothing to check or bad input.
    """
    wanted = _outputs(kind, outputs)
    summary = _summary_place() if any(one == "github" for one, _ in wanted) else None
    day = _day(today)
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    read_too = api.files_of_gate(policy, baselines=baselines)
    places = [*(path for _, path in wanted), *filter(None, [summary])]
    check_places(places, chain([profile], read_too, system_files(system)))
    show = shows_progress(quiet=quiet) and profile.is_dir()
    with _memory_for(profile), progress_bar(show=show) as progress:
        found = api.check(
            profile,
            policy=policy,
            baselines=baselines,
            system=system,
            fail_on=fail_on,
            allow_empty=allow_empty,
            update_baseline=update_baseline,
            today=day,
            progress=progress,
        )
    # All are made before the first is written: a fault in one leaves nothing half done.
    emit_all([(_written(found, one), path) for one, path in wanted])
    if summary is not None:
        _summarise(found, summary)
    _show(found, wanted, quiet=quiet)
    ctx.exit(0 if found.verdict == "pass" else 1)


def _memory_for(profile: Path) -> AbstractContextManager[None]:
    # A trace is profiled first, by the library: it sets nothing of the process.
    return memory_for("documents") if profile.is_file() else nullcontext()


def _show(found: Check, wanted: Sequence[tuple[str, Path | None]], *, quiet: bool) -> None:
    """The verdict on stderr, where it is not on stdout already."""
    on_screen = shows_summary(next((path for _, path in wanted if path is not None), None), quiet=quiet)
    if on_screen and ("text", None) not in wanted:
        text = FORMATS.render("text", found, version=vani.__version__)
        summary_console().print(text, markup=False, end="", soft_wrap=True)


def _outputs(kind: str, outputs: Sequence[str]) -> list[tuple[str, Path | None]]:
    """Formats and where each goes; without a file of its own that of --format goes to stdout."""
    main: list[Path] = []
    others: list[tuple[str, Path | None]] = []
    for text in outputs:
        name, equals, file = text.partition("=")
        if equals and name in FORMATS:
            if not file:
                raise click.BadParameter(f"{text!r} names no file", param_hint="--output")
            others.append((name, Path(file)))
        elif equals and name.isalpha() and not Path(text).parent.name:
            raise click.BadParameter(
                f"{name!r} is not a format; known are {', '.join(FORMATS)} (a file of that name: ./{text})",
                param_hint="--output",
            )
        else:
            main.append(Path(text))
    if len(main) > 1:
        raise click.BadParameter(
            f"{str(main[1])!r} is a second file for --format {kind}; write FORMAT=FILE", param_hint="--output"
        )
    wanted = [(kind, main[0] if main else None), *others]
    spoken = [name for name, path in wanted if path is None or str(path) == "-"]
    if len(spoken) > 1:
        raise click.BadParameter(
            f"{' and '.join(spoken[:2])} would both go to stdout; name a file for one of them",
            param_hint="--output",
        )
    return wanted


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a day such as 2026-12-31", param_hint="--today") from None


def _written(check: Check, kind: str) -> str:
    if kind in OF_HOSTS:
        from vani.render.check.repository import in_repository  # noqa: PLC0415

        check = in_repository(check, folder=Path.cwd())
    return FORMATS.render(kind, check, version=vani.__version__)


def _summary_place() -> Path | None:
    """The page of the job, where GitHub runs this and gives one.

    Raises
    ------
    InputError
        It cannot be written.
    """
    named = os.environ.get("GITHUB_STEP_SUMMARY")
    if not named:
        return None
    place = Path(named)
    try:
        with place.open("ab"):
            return place
    except OSError as error:
        raise _no_summary(place, error) from error


def _summarise(check: Check, place: Path) -> None:
    """Append the whole table to the page of the job."""
    from vani.render.check.github import summary  # noqa: PLC0415
    from vani.render.check.repository import in_repository  # noqa: PLC0415

    try:
        with place.open("ab") as file:
            file.write(summary(in_repository(check, folder=Path.cwd())).encode())
    except OSError as error:
        raise _no_summary(place, error) from error


def _no_summary(place: Path, error: OSError) -> InputError:
    return InputError(
        f"the summary cannot be written ({error.strerror})", where=place, todo="unset GITHUB_STEP_SUMMARY"
    )
