"""`vani report`: a single page for people."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from pydantic import Field

import vani
from vani.advisors.catalogue import rule_findings, rules
from vani.advisors.judge import advise_document, judged_part
from vani.cli.options import format_option, output_option, quiet_option, settings_options, source_argument
from vani.cli.output import check_outputs, emit, say, shows_summary, stdout, system_files, working
from vani.cli.plot import heat_map_of
from vani.cli.profile import profile_of
from vani.cli.sources import JUDGED_FILES, Decoding, OptionalFile, Resources, scheduler_files
from vani.errors import InputError
from vani.models.verdict import verdict_of
from vani.plug_ins import centre
from vani.readers.programs import app_of_folder
from vani.render.formats import REPORT, WITH_PLOTS
from vani.schema.advice import Advice
from vani.schema.damage import damage
from vani.schema.document import dumps
from vani.schema.profile import Profile
from vani.schema.saved_profile import FileSummary, ProfilePart, SavedProfile
from vani.schema.settings import Option, PathLike
from vani.site import contact_lines, setting
from vani.systems import system_of
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.render.report.model import Inputs

_NAMES = {"html": "HTML", "markdown": "Markdown", "txt": "text"}
_AS_RANKING = {"txt": "text"}
"""Formats of a report under the names that a ranking of a history uses."""
# Suffixes of formats in which no report is written.
_OTHERS = {".pdf", ".svg", ".png", ".jpg", ".json", ".yaml", ".yml", ".csv", ".tex", ".rst", ".doc", ".docx"}


class ReportSettings(Decoding):
    """Documents that a report includes besides the profile."""

    advice: Annotated[Path | Any, Option(metavar="FILE")] = Field(
        default=None,
        description="Advice that `vani advise` wrote about this profile; by default all rules are evaluated.",
    )
    system: Annotated[Any, Option(metavar="NAME|FILE")] = Field(
        default=None, description="The machine: a bundled name or a system.yaml; by default from `vani config`."
    )
    model: OptionalFile = Field(
        default=None, description="A model of `vani model fit` to compare the run's writes with."
    )


class _Options(ReportSettings):
    """Options of the command that have no meaning for a Python caller."""

    history: Annotated[str | None, Option(metavar="FILE|URL")] = Field(
        default=None,
        description="Write a page for the team instead of a run: the largest losses among the runs in this history.",
    )


def report(
    profile: PathLike | Profile,
    settings: ReportSettings | None = None,
    *,
    contact: Sequence[str] = (),
    format: str = "html",
    progress: Progress | None = None,
    **fields: Any,
) -> str:
    """Write a profile and its advice as a report for people.

    Parameters
    ----------
    profile
        A profile, its path, or a trace, which is profiled first.
    settings, fields
        The settings, or single fields of `ReportSettings`; `advice` and `system` may also be models.
    contact
        Contact lines at the end (`vani.site.contact_lines`).
    format
        `html`: a self-contained page of at most 1.5 MB; `markdown`: at most 60,000 characters, for a merge request;
        `txt`: for a terminal with 80 columns.
    progress
        As in `profile`, for a trace.

    Raises
    ------
    InputError
        A document or a trace cannot be read, the advice was made from another profile, or the format does not
        exist.
    """
    inputs = report_inputs(profile, settings, contact=contact, format=format, progress=progress, **fields)
    return REPORT.render(format, inputs)


def report_inputs(
    profile: PathLike | Profile,
    settings: ReportSettings | None = None,
    *,
    contact: Sequence[str] = (),
    format: str = "html",
    progress: Progress | None = None,
    **fields: Any,
) -> Inputs:
    """Collect the profile, its advice and, for a format with plots, its calls over time; otherwise as `report`."""
    from vani.render.report.model import Inputs  # noqa: PLC0415 - loads the plots

    REPORT.check(format)
    settings = ReportSettings.of(settings, **fields)
    with Resources([profile], settings, progress) as resources:
        # Checked before a trace is profiled: a faulty document should not cost minutes.
        given = None if settings.advice is None else Advice.of(settings.advice)
        # More files than a profile lists by default, because the report groups data sets of many files into
        # one row.
        source = _read(profile_of(resources, profile, system=settings.system, files=JUDGED_FILES))
        model, files, part = _model(source)
        # The advice names a profile that was read from a file, with the digest of that file.
        judged = given or advise_document(source, system_of(settings.system), files=JUDGED_FILES, part=part)
        if given is not None:
            _check_profile_of(given, settings.advice, source)
        write_time = None if settings.model is None else centre().write_time_fact(model, settings.model)
        return Inputs(
            profile=model,
            files=files,
            # The advice contains the digest of its profile, so that a long one need not be serialised again.
            profile_sha256=judged.profile.sha256,
            advice=judged,
            heat=heat_map_of(resources, model) if format in WITH_PLOTS else "",
            rule_names={rule.id: rule.name for rule in rules()},
            version=vani.__version__,
            rule_findings=rule_findings(),
            write_time=write_time,
            users=_users(model),
            contact=tuple(contact),
            advice_file=Path(settings.advice).name if isinstance(settings.advice, (str, Path)) else None,
        )


def _read(source: PathLike | Profile) -> SavedProfile | Profile:
    """The profile, or the content of its file, which is read only once because it may be a pipe."""
    return SavedProfile.read(source) if isinstance(source, (str, Path)) else source


def _model(source: SavedProfile | Profile) -> tuple[Profile, list[FileSummary] | None, ProfilePart | None]:
    """The profile; for a long one in a file, the judged part and the columns of all its files that tables show."""
    if isinstance(source, Profile):
        return source, None, None
    part = judged_part(source, JUDGED_FILES)
    return part.profile, None if part.judged is None else source.file_summaries(), part


def _check_profile_of(advice: Advice, given: PathLike | Advice | None, source: SavedProfile | Profile) -> None:
    """Raise InputError if the advice is about another profile: its file, or the YAML that it would be written as."""
    digest = sha256(dumps(source).encode()).hexdigest() if isinstance(source, Profile) else source.sha256
    if advice.profile.sha256 != digest:
        raise InputError(
            "was made from another profile (its sha256 differs)",
            where=given if isinstance(given, (str, Path)) else "the advice",
            todo="run `vani advise` on this profile, or leave --advice out",
        )


def _users(profile: Profile) -> tuple[str, ...]:
    """Users who ran the traces, if Recorder put them into the folder names."""
    users = (app_of_folder(Path(trace.path).name).user for trace in profile.traces)
    return tuple(dict.fromkeys(filter(None, users)))


@click.command("report")
@source_argument(required=False)
@output_option()
@settings_options(_Options)
@format_option(REPORT, default=None, help="Output format; by default from the suffix of FILE, else html.")
@quiet_option
def command(profile: Path | None, output: Path | None, settings: _Options, kind: str | None, quiet: bool) -> None:
    """Write a report about a profile that a scientist, a support engineer and a reviewer can each use.

    The page is one HTML file: it needs no network, prints, and states what it leaves out. A trace, which is a folder or
    a file, is profiled first. With --history, it ranks runs like `vani history top`, and predicts the next runs.
    """
    format = _format(kind, output)
    if profile is None or settings.history is not None:
        _report_history(settings.history, format, output)
        return
    settings = _with_machine(settings)
    with working(profile, quiet=quiet, with_calls=format in WITH_PLOTS) as progress:
        read = [profile, settings.advice, settings.model, *scheduler_files(settings.scheduler)]
        check_outputs([output], chain(read, system_files(settings.system)))
        inputs = report_inputs(profile, settings, format=format, contact=contact_lines(), progress=progress)
        text = REPORT.render(format, inputs)
    emit(text, output)
    if not stdout(output) and shows_summary(output, quiet=quiet):
        wrote = f"wrote {output} ({_NAMES[format]}, {format_bytes(len(text.encode()))})"
        say(*filter(None, (damage(inputs.profile), verdict_of(inputs.profile).sentence, wrote)))


def _report_history(history: str | None, format: str, output: Path | None) -> None:
    """Write the ranking of `vani history top` as a page."""
    if history is None:
        raise click.UsageError("Missing argument 'PROFILE|TRACE' (or --history).")
    _refuse_all_but("history", "output", "kind", "quiet")
    check_outputs([output], [] if "://" in history else [Path(history)])
    emit(centre().history_page(history, _AS_RANKING.get(format, format)), output)


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
        todo = "use a name that ends in .html, .md or .txt"
        todo += ", or print the page from a browser" if suffix == ".pdf" else ""
        raise InputError(f"a report is not written as {suffix}", where=output, todo=todo)
    return REPORT.of_file(output) or "html"


def _with_machine(settings: _Options) -> _Options:
    """The settings with the machine that the user or the centre configured."""
    if settings.advice is None:
        return _Options.of(settings, system=settings.system or setting("system").value)
    if settings.system is not None:
        todo = "the advice names its machine: leave --system out"
        raise InputError("--system and --advice exclude each other", todo=todo)
    return settings
