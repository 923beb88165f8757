"""`vani advise`: recommends storage settings for the workload of a profile, or for the next run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import click
from pydantic import Field

import vani
from vani.advisors.catalogue import page_text, pick, rules
from vani.advisors.judge import advise_document, judged_part
from vani.cli import benchmark, sources
from vani.cli.options import format_option, output_option, quiet_option, settings_options, source_argument
from vani.cli.output import check_outputs, emit_all, say, shows_summary, stderr_console, system_files, working
from vani.cli.profile import profile_of
from vani.engine.executor import Progress
from vani.errors import InputError
from vani.plug_ins import centre
from vani.render.formats import ADVICE
from vani.render.script import advice_script
from vani.schema.advice import Advice
from vani.schema.document import dumps
from vani.schema.profile import Profile
from vani.schema.saved_profile import SavedProfile
from vani.schema.settings import Option, PathLike
from vani.site import Settings, contact_lines, read_settings, thresholds
from vani.systems import system_of

_RULES = Option(metavar="RULES")


class JudgeSettings(sources.Decoding):
    """How a profile is judged."""

    system: sources.Machine = None
    select: Annotated[tuple[str, ...] | None, _RULES] = Field(
        default=None, description="Use only these rules: ids, names or families."
    )
    ignore: Annotated[tuple[str, ...], _RULES] = Field(default=(), description="Skip these rules.")
    config: sources.OptionalFile = Field(
        default=None, description="A TOML file with [advise.thresholds.RULE], and select and ignore in [advise]."
    )
    files: sources.JudgedFileCount = Field(
        default=sources.JUDGED_FILES, description="Judge the N files with the most I/O time."
    )


class AdviseSettings(JudgeSettings):
    """How a profile is judged, and other sources for the advice."""

    db: Annotated[str | Path | None, Option(("--database", "--history"), "FILE|URL")] = Field(
        default=None,
        description="Prefer gains measured by `vani tune` to estimates; with --next, read the runs here. By default "
        "VANI_HISTORY.",
    )
    ior_output: sources.OptionalFile = Field(
        default=None,
        description="Output of the traced IOR or mdtest run, to compare; by default the text in the trace's folder.",
    )


class _Options(AdviseSettings):
    """Options of the command that have no meaning for a Python caller."""

    application: Annotated[str | None, Option(("--next",), "APP")] = Field(
        default=None, description="Advise before the next run of APP, without a profile, by its predicted behaviour."
    )
    user: Annotated[str | None, Option(metavar="NAME")] = Field(
        default=None, description="With --next: user who runs the job."
    )
    processes: int | None = Field(default=None, description="With --next: number of processes.")
    script: sources.OptionalFile = Field(
        default=None,
        description="Also write a shell script that shows, applies (--apply) and undoes (--undo) the settings.",
    )
    write_system: sources.OptionalFile = Field(
        default=None, description="For a benchmark's result: also write a system.yaml with the measured figures."
    )


def advise(
    profile: PathLike | Profile,
    settings: AdviseSettings | None = None,
    *,
    thresholds: Mapping[str, Mapping[str, int | float | str]] | None = None,
    site: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> Advice:
    """Judge a profile by every rule of the catalogue, or an IO500, IOR or mdtest result by its own figures.

    Parameters
    ----------
    profile
        A profile, its path, or a trace, which is profiled first. It can also be the folder of an IO500 result or
        the output of IOR or mdtest; then only `system` is used.
    settings, fields
        The settings, or single fields of `AdviseSettings`. `system` may also be a model. `select` replaces the list
        in `config`; `ignore` adds to it. With the history `db`, settings that `vani tune` measured for this application
        on this machine show the measured gain instead of an estimate.
    thresholds
        Thresholds by rule (id or name), then by threshold name. They override those in `config`.
    site
        The site's thresholds (`vani.site.thresholds`), which `config` overrides.
    progress
        As in `profile`, for a trace.

    Raises
    ------
    InputError
        A document or a trace cannot be read, or a rule or threshold does not exist.
    """
    settings = AdviseSettings.of(settings, **fields)
    ior_output, db = settings.ior_output, settings.db
    if db is not None:
        # Checked before a trace is profiled: a misspelt path should not cost minutes.
        centre().check_history(db)
    if isinstance(profile, (str, Path)):
        if benchmark.is_result_alone(Path(profile)):
            return benchmark.advise_result(profile, system=settings.system)
        ior_output = ior_output or benchmark.output_in_folder(Path(profile))
    source = profile
    of_file = Settings() if settings.config is None else read_settings(settings.config)
    merged: dict[str, dict[str, Any]] = {}
    for table in (site or {}, of_file.thresholds, thresholds or {}):
        for key, values in table.items():
            merged[key] = merged.get(key, {}) | dict(values)
    chosen = of_file.select if settings.select is None else settings.select
    ignored = [*of_file.ignore, *settings.ignore]
    if isinstance(source, (str, Path)) and sources.is_trace(source):
        # Checked before a trace is profiled: a misspelt rule should not cost minutes.
        pick(chosen, ignored)
        with sources.Resources([source], settings, progress) as resources:
            source = profile_of(resources, source, system=settings.system, files=settings.files)
    machine = system_of(settings.system)
    document = SavedProfile.read(source) if isinstance(source, (str, Path)) else source
    part = judged_part(document, settings.files)
    advice = advise_document(
        document, machine, select=chosen, ignore=ignored, thresholds=merged, files=settings.files, part=part
    )
    if ior_output is not None:
        advice = benchmark.with_agreement(advice, part.profile, ior_output)
    if db is None:
        return advice
    with_measured: Advice = centre().advice_with_history(advice, sources.subject_of(part.profile, machine), db)
    return with_measured


@click.command("advise")
@source_argument(required=False)
@output_option()
@settings_options(_Options)
@format_option(ADVICE, default=None, help="Output format; by default from the suffix of -o, else yaml.")
@quiet_option
def command(profile: Path | None, output: Path | None, settings: _Options, kind: str | None, quiet: bool) -> None:
    """Recommend storage settings for the workload of a profile, or with --next for the next run.

    A trace, which is a folder or a file, is profiled first. For IO500's result folder, or the output of IOR or mdtest,
    the advice shows what limited the run.
    """
    written = [output, *filter(None, [settings.script, settings.write_system])]
    read = [settings.config, settings.ior_output, *sources.scheduler_files(settings.scheduler),
        *system_files(settings.system)]
    if profile is None or settings.model_fields_set & {"application", "user", "processes"}:
        check_outputs(written, read)
        _write(_advice_before(profile, settings), kind, output, settings.script, quiet=quiet)
        return
    db = settings.db
    with working(profile, quiet=quiet) as progress:
        check_outputs(written, [profile, *read, *([Path(db)] if db and "://" not in str(db) else [])])
        advice = advise(profile, settings, site=thresholds()[0], progress=progress)
    machine = [(_described(advice, settings.system), settings.write_system)] if settings.write_system else []
    _write(advice, kind, output, settings.script, *machine, quiet=quiet)


def _advice_before(profile: Path | None, settings: _Options) -> Advice:
    """Advise on a run before it starts.

    Raises
    ------
    InputError
        A profile was named as well, or options that apply to a trace.
    UsageError
        Neither a profile nor an application was named.
    """
    if settings.application is None:
        if profile is None:
            raise click.UsageError("Missing argument 'PROFILE|TRACE' (or --next).")
        raise InputError("--user and --processes need --next", todo="leave them out, or name --next APP")
    if profile is not None:
        raise InputError("--next excludes a profile", where=profile, todo="leave one of them out")
    before: Advice = centre().advise_next(
        settings.application,
        user=settings.user,
        processes=settings.processes,
        db=settings.db,
        system=settings.system,
        select=settings.select,
        ignore=settings.ignore,
        config=settings.config,
        files=settings.files,
    )
    return before


def _described(advice: Advice, system: str | None) -> str:
    """The machine, with the figures of the benchmark that the advice is about."""
    if advice.benchmark is None:
        what = "--write-system needs a result of IO500, IOR or mdtest"
        raise InputError(what, todo="leave it out, or name a result")
    return dumps(benchmark.measured_system(advice.benchmark, system=system), only_set=True)


def _write(
    advice: Advice,
    kind: str | None,
    output: Path | None,
    script: Path | None,
    *more: tuple[str, Path | None],
    quiet: bool,
) -> None:
    if output is not None and kind is None and output.suffix.lower() in (".html", ".htm"):
        todo = "write it as .yaml; `vani report PROFILE --advice ADVICE -o run.html` makes a page of it"
        raise InputError("advice cannot be written as a page", where=str(output), todo=todo)
    kind = ADVICE.chosen(kind, output, "yaml")
    pages = {rule.id: page_text(rule) for rule in rules()}
    texts = [(ADVICE.render(kind, advice, version=vani.__version__, pages=pages), output)]
    if script is not None:
        texts.append((advice_script(advice, version=vani.__version__), script))
    emit_all([*texts, *more])
    if shows_summary(output, quiet=quiet) and not (kind == "text" and output is None):
        from vani.render.screen import print_advice  # noqa: PLC0415 - CSV and JSON load no rich

        print_advice(advice, None, stderr_console(), written=None if output is None else output.name)
        say(*contact_lines())
