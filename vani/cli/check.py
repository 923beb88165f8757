"""`vani check`: the gate of a project's CI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

import vani
from vani import api
from vani.cli.options import FILE, format_option, quiet_option, source_argument, system_option
from vani.cli.output import emit_all, shows_summary, summary_console
from vani.cli.output_guard import check_outputs, system_files
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working
from vani.errors import InputError
from vani.render.formats import CHECK, OF_CODE_HOSTS
from vani.site import setting

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler
    from vani.schema.check import Check, Level

class CheckOptions(TypedDict):
    """Options passed on to the library unchanged."""

    policy: Path | None
    baselines: tuple[str, ...]
    tuned: Path | None
    fail_on: Level | None
    allow_empty: bool
    update_baseline: bool
    system: str | None
    today: date | None
    store: Path | None
    scheduler: Scheduler


def _day(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    del ctx, param
    if value is None:
        return None
    try:
        return datetime.strptime(value, "%Y-%m-%d").date()
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a day such as 2026-12-31", param_hint="--today") from None


@click.command()
@source_argument()
@click.option(
    "--policy",
    type=FILE,
    metavar="FILE",
    help="The policy; by default the nearest vani.toml or .vani.yaml, from here upwards.",
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="FILE",
    help="Compare with this baseline or profile, or a folder or glob of them. May be repeated.",
)
@click.option(
    "--tuned",
    type=FILE,
    metavar="FILE",
    help="Result of `vani tune`: the run must use its setting and be as fast as the tuned runs.",
)
@format_option(CHECK, default="text", help="Output format, for stdout or the file of -o.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="[FORMAT=]FILE",
    help="Write here; with FORMAT=, in addition to --format. May be repeated.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    help="The lowest level that makes the check fail.  [default: error, or the policy's]",
)
@click.option("--allow-empty", is_flag=True, help="Succeed if there is nothing to check.")
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Then replace the baseline by this run, whether the check passes or fails.",
)
@system_option("The machine that rules assume; by default the policy's, else from `vani config`.", of_site=False)
@click.option(
    "--today",
    metavar="DATE",
    callback=_day,
    help="Date for the expiry of exceptions; by default today (UTC).",
)
@decoding_options
@quiet_option
@click.pass_context
def check(
    ctx: click.Context,
    profile: Path,
    kind: str,
    outputs: tuple[str, ...],
    quiet: bool,
    **options: Unpack[CheckOptions],
) -> None:
    """Check a profile against a policy and earlier runs.

    A trace, which is a folder or a file, is profiled first. Exit status: 0 all checks pass, 1 a failure at or
    above the level of --fail-on, 2 nothing to check or bad input.
    """
    wanted = _outputs(kind, outputs)
    summary = _summary_place(wanted)
    with working(profile, quiet=quiet) as progress:
        read = [profile, options["tuned"], *scheduler_files(options["scheduler"])]
        read_too = api.files_of_gate(options["policy"], baselines=options["baselines"])
        places = [*(path for _, path in wanted), *summary]
        check_outputs(places, chain(read, read_too, system_files(options["system"])))
        result = api.check(profile, **options, default_system=setting("system").value, progress=progress)
    # All texts are made before the first is written, so that an error leaves no partial output.
    emit_all([(_written(result, form), path) for form, path in wanted])
    _summarise(result, summary)
    _show(result, wanted, quiet=quiet)
    ctx.exit(1 if result.verdict == "fail" else 0)


def _show(result: Check, wanted: Sequence[tuple[str, Path | None]], *, quiet: bool) -> None:
    """Print the verdict on stderr, unless stdout already shows it."""
    on_screen = shows_summary(next((path for _, path in wanted if path is not None), None), quiet=quiet)
    if on_screen and ("text", None) not in wanted:
        text = CHECK.render("text", result, version=vani.__version__)
        summary_console().print(text, markup=False, end="", soft_wrap=True)


def _outputs(kind: str, outputs: Sequence[str]) -> list[tuple[str, Path | None]]:
    """Each format with its destination; a format without a file goes to stdout."""
    main: list[Path] = []
    others: list[tuple[str, Path | None]] = []
    for text in outputs:
        name, equals, file = text.partition("=")
        if equals and name in CHECK:
            if not file:
                raise click.BadParameter(f"{text!r} names no file", param_hint="--output")
            others.append((name, Path(file)))
        elif equals and name.isalpha() and not Path(text).parent.name:
            raise click.BadParameter(
                f"{name!r} is not a format; known are {', '.join(CHECK)} (a file of that name: ./{text})",
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


def _written(check: Check, kind: str) -> str:
    if kind in OF_CODE_HOSTS:
        from vani.render.check import in_repository  # noqa: PLC0415

        check = in_repository(check, folder=Path.cwd())
    return CHECK.render(kind, check, version=vani.__version__)


def _summary_place(wanted: Sequence[tuple[str, Path | None]]) -> list[Path]:
    """The job summary page, if this runs in GitHub Actions and the GitHub format is requested.

    Raises
    ------
    InputError
        The page cannot be written.
    """
    named = os.environ.get("GITHUB_STEP_SUMMARY")
    if not named or all(kind != "github" for kind, _ in wanted):
        return []
    _append(b"", Path(named))
    return [Path(named)]


def _summarise(check: Check, places: Sequence[Path]) -> None:
    """Append the whole table to the job summary page."""
    from vani.render.check import in_repository  # noqa: PLC0415
    from vani.render.code_hosts import summary  # noqa: PLC0415

    for place in places:
        _append(summary(in_repository(check, folder=Path.cwd())).encode(), place)


def _append(content: bytes, place: Path) -> None:
    try:
        with place.open("ab") as file:
            file.write(content)
    except OSError as error:
        raise InputError(
            f"the summary cannot be written ({error.strerror})",
            where=place,
            todo="unset GITHUB_STEP_SUMMARY",
        ) from error
