"""`vani report`: a single page for people."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from vani import api, centre
from vani.cli.options import (
    FILE,
    format_option,
    output_option,
    quiet_option,
    source_argument,
    system_option,
)
from vani.cli.output import emit, shows_summary, summary_console
from vani.cli.output_guard import check_outputs, stdout, system_files
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working
from vani.errors import InputError, one_line
from vani.render.formats import REPORT, WITH_PLOTS
from vani.site import contact_lines, setting
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler
    from vani.schema.profile import Profile

_NAMES = {"html": "HTML", "markdown": "Markdown", "txt": "text"}
_AS_RANKING = {"txt": "text"}
"""Formats of a report under the names that a ranking of a history uses."""
# Suffixes of formats in which no report is written.
_OTHERS = {".pdf", ".svg", ".png", ".jpg", ".json", ".yaml", ".yml", ".csv", ".tex", ".rst", ".doc", ".docx"}


class ReportOptions(TypedDict):
    """Options passed on to the library unchanged."""

    advice: Path | None
    system: str | None
    store: Path | None
    model: Path | None
    scheduler: Scheduler


@click.command()
@source_argument(required=False)
@output_option()
@click.option(
    "--history",
    metavar="FILE|URL",
    help="Write a page for the team instead of a run: the largest losses among the runs in this history.",
)
@click.option(
    "--advice",
    type=FILE,
    metavar="FILE",
    help="Advice that `vani advise` wrote about this profile; by default all rules are evaluated.",
)
@system_option(of_site=False)
@click.option(
    "--model",
    type=FILE,
    metavar="FILE",
    help="A model of `vani model fit` to compare the run's writes with.",
)
@format_option(
    REPORT, default=None, help="Output format; by default from the suffix of FILE, else html."
)
@decoding_options
@quiet_option
def report(
    profile: Path | None,
    output: Path | None,
    history: str | None,
    kind: str | None,
    quiet: bool,
    **options: Unpack[ReportOptions],
) -> None:
    """Write a report about a profile that a scientist, a support engineer and a reviewer can each use.

    The page is one HTML file: it needs no network, prints, and states what it leaves out. A trace, which is a folder or
    a file, is profiled first. With --history, it ranks runs like `vani history top`, and predicts the next runs.
    """
    format = _format(kind, output)
    if profile is None or history is not None:
        _report_history(history, format, output)
        return
    _settle_machine(options)
    with working(profile, quiet=quiet, with_calls=format in WITH_PLOTS) as progress:
        read = [profile, options["advice"], options["model"], *scheduler_files(options["scheduler"])]
        check_outputs([output], chain(read, system_files(options["system"])))
        reported = api.reported(profile, format=format, **options, contact=contact_lines(), progress=progress)
    emit(reported.text, output)
    if not stdout(output) and shows_summary(output, quiet=quiet):
        size = format_bytes(len(reported.text.encode()))
        _summarise(reported.profile, f"wrote {output} ({_NAMES[format]}, {size})")


def _report_history(history: str | None, format: str, output: Path | None) -> None:
    """Write the ranking of `vani history top` as a page."""
    from vani.centre.history.text import FORMATS as OF_HISTORY  # noqa: PLC0415

    if history is None:
        raise click.UsageError("Missing argument 'PROFILE|TRACE' (or --history).")
    _refuse_all_but("history", "output", "kind", "quiet")
    check_outputs([output], [] if "://" in history else [Path(history)])
    ranking = centre.history_top(db=history)
    next_runs = centre.history_next_runs(ranking, db=history)
    emit(OF_HISTORY.render(_AS_RANKING.get(format, format), ranking, next_runs=next_runs), output)


def _refuse_all_but(*allowed: str) -> None:
    """Refuse other arguments: a history contains its runs' profiles and advice, and nothing is decoded."""
    context = click.get_current_context()
    typed = [
        option
        for option in context.command.params
        if option.name not in allowed
        and context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
    ]
    if typed:
        names = ["a run" if isinstance(option, click.Argument) else option.opts[0] for option in typed]
        raise InputError(
            f"--history excludes {' and '.join(names)}",
            todo="its runs were judged when they were added: leave that option out",
        )


def _format(kind: str | None, output: Path | None) -> str:
    """The requested format, or the one that the file's suffix indicates.

    Raises
    ------
    InputError
        The suffix belongs to a format in which no report is written.
    """
    if kind is not None or output is None:
        return kind or "html"
    suffix = output.suffix.lower()
    if suffix in _OTHERS:
        raise InputError(
            f"a report is not written as {suffix}",
            where=output,
            todo="use a name that ends in .html, .md or .txt"
            + (", or print the page from a browser" if suffix == ".pdf" else ""),
        )
    return REPORT.of_file(output) or "html"


def _settle_machine(options: ReportOptions) -> None:
    if options["advice"] is not None and options["system"] is not None:
        raise InputError(
            "--system and --advice exclude each other",
            todo="the advice names its machine: leave --system out",
        )
    if options["advice"] is None:
        options["system"] = options["system"] or setting("system").value


def _summarise(profile: Profile, wrote: str) -> None:
    """Print the lost time, whether I/O matters, and where the report is."""
    from vani.models.verdict import verdict_of  # noqa: PLC0415
    from vani.schema.damage import damage  # noqa: PLC0415

    lost = damage(profile)
    console = summary_console()
    for line in filter(None, (lost, verdict_of(profile).sentence, wrote)):
        console.print(one_line(line), markup=False, soft_wrap=True)
