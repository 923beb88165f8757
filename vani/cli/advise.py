"""`vani advise`: settings for the workload of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

import vani
from vani import api
from vani.api import JUDGED_FILES
from vani.cli.advise_next import AdviseOptions, NextOf, advice_before
from vani.cli.options import (
    FILE,
    files_option,
    format_option,
    output_option,
    quiet_option,
    source_argument,
    system_option,
)
from vani.cli.output import emit_all, shows_summary, summary_console
from vani.cli.output_guard import check_outputs, system_files
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working
from vani.errors import InputError
from vani.render.formats import ADVICE
from vani.site import contact_lines, thresholds

if TYPE_CHECKING:
    from vani.schema.advice import Advice

def _none(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...] | None:
    """Turn an option that was not given into None: an empty list would replace the one in a settings file."""
    del ctx, param
    return value or None


@click.command()
@source_argument(required=False)
@output_option()
@click.option(
    "--next",
    "application",
    metavar="APP",
    help="Advise before the next run of APP, without a profile, by its predicted behaviour.",
)
@click.option("--user", metavar="NAME", help="With --next: user who runs the job.")
@click.option("--processes", type=int, metavar="N", help="With --next: number of processes.")
@click.option(
    "--history",
    "--database",
    "db",
    metavar="FILE|URL",
    help="Prefer gains measured by `vani tune` to estimates; with --next, read the runs here. By default VANI_HISTORY.",
)
@system_option()
@click.option(
    "--script",
    type=FILE,
    metavar="FILE",
    help="Also write a shell script that shows, applies (--apply) and undoes (--undo) the settings.",
)
@click.option(
    "--ior-output",
    type=FILE,
    metavar="FILE",
    help="Output of the traced IOR or mdtest run, to compare; by default the text in the trace's folder.",
)
@click.option(
    "--write-system",
    "described",
    type=FILE,
    metavar="FILE",
    help="For a benchmark's result: also write a system.yaml with the measured figures.",
)
@click.option(
    "--select", multiple=True, metavar="RULES", callback=_none, help="Use only these rules: ids, names or families."
)
@click.option("--ignore", multiple=True, metavar="RULES", callback=_none, help="Skip these rules.")
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="A TOML file with [advise.thresholds.RULE], and select and ignore in [advise].",
)
@files_option("Judge the N files with the most I/O time.", default=JUDGED_FILES, least=1)
@format_option(ADVICE, default=None, help="Output format; by default from the suffix of -o, else yaml.")
@decoding_options
@quiet_option
def advise(
    profile: Path | None,
    output: Path | None,
    script: Path | None,
    kind: str | None,
    quiet: bool,
    application: str | None,
    user: str | None,
    processes: int | None,
    db: str | None,
    ior_output: Path | None,
    described: Path | None,
    **options: Unpack[AdviseOptions],
) -> None:
    """Recommend storage settings for the workload of a profile, or with --next for the next run.

    A trace, which is a folder or a file, is profiled first. For IO500's result folder, or the output of IOR or mdtest,
    the advice shows what limited the run.
    """
    before, written = NextOf(application, user, processes), [output, *filter(None, [script, described])]
    read = [options["config"], ior_output, *scheduler_files(options["scheduler"]), *system_files(options["system"])]
    if profile is None or before.is_given:
        check_outputs(written, read)
        _write(advice_before(before, profile, options, db), kind, output, script, quiet=quiet)
        return
    with working(profile, quiet=quiet) as progress:
        check_outputs(written, [profile, *read, *([Path(db)] if db and "://" not in db else [])])
        site = thresholds()[0]
        advice = api.advise(profile, **options, db=db, ior_output=ior_output, site=site, progress=progress)
    machine = [] if described is None else [(_described(advice, options["system"]), described)]
    _write(advice, kind, output, script, *machine, quiet=quiet)


def _described(advice: Advice, system: str | None) -> str:
    """The machine, with the figures of the benchmark that the advice is about."""
    from vani.schema.document import dumps  # noqa: PLC0415

    if advice.benchmark is None:
        what = "--write-system needs a result of IO500, IOR or mdtest"
        raise InputError(what, todo="leave it out, or name a result")
    return dumps(api.measured_system(advice.benchmark, system=system), only_set=True)


def _write(
    advice: Advice,
    kind: str | None,
    output: Path | None,
    script: Path | None,
    *more: tuple[str, Path | None],
    quiet: bool,
) -> None:
    by_name = ADVICE.of_file(output) if output is not None else None
    if output is not None and kind is None and output.suffix.lower() in (".html", ".htm"):
        todo = "write it as .yaml; `vani report PROFILE --advice ADVICE -o run.html` makes a page of it"
        raise InputError("advice cannot be written as a page", where=str(output), todo=todo)
    kind = kind or by_name or "yaml"
    emit_all([*_texts(advice, kind, output, script), *more])
    if shows_summary(output, quiet=quiet) and not (kind == "text" and output is None):
        _show(advice, output)


def _texts(
    advice: Advice, kind: str, output: Path | None, script: Path | None
) -> Iterator[tuple[str, Path | None]]:
    """The output texts with their destinations: the advice, and the script if requested."""
    from vani.advisors.catalogue import page_text, rules  # noqa: PLC0415 - `vani --help` pays for no rule

    pages = {rule.id: page_text(rule) for rule in rules()}
    yield ADVICE.render(kind, advice, version=vani.__version__, pages=pages), output
    if script is not None:
        from vani.render.script import advice_script  # noqa: PLC0415

        yield advice_script(advice, version=vani.__version__), script


def _show(advice: Advice, output: Path | None) -> None:
    from vani.render.screen import print_advice  # noqa: PLC0415

    print_advice(advice, None, summary_console(), written=None if output is None else output.name)
    for line in contact_lines():
        click.echo(line, err=True)
