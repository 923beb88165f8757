"""`vani check`: the gate of a project's CI, and the baselines that it compares with."""

import os
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import click
from pydantic import Field

import vani
from vani.advisors.catalogue import find, pick
from vani.advisors.judge import UNKNOWN_SYSTEM, judge
from vani.cli.options import format_option, quiet_option, settings_options, source_argument
from vani.cli.output import check_outputs, emit_all, say, shows_summary, stderr_console, system_files, working
from vani.cli.profile import profile_of
from vani.cli.sources import JUDGED_FILES, Decoding, OptionalFile, Resources, scheduler_files
from vani.engine.executor import Progress
from vani.errors import InputError, one_line, os_errors_as
from vani.gate import baselines as saved
from vani.gate.baselines import key_figures
from vani.gate.checks import RulesAdvice
from vani.gate.matching import Figures, path_text, read_figures
from vani.gate.policy import PolicyChecks, checks_of_policy
from vani.gate.tuned import TunedCheck
from vani.gate.verdict import columns_compared, verdict_on
from vani.render.check import in_repository
from vani.render.code_hosts import summary
from vani.render.formats import CHECK, OF_CODE_HOSTS
from vani.schema.advice import ProfileRef, SystemRef
from vani.schema.check import Check, Level, Source
from vani.schema.document import read_bytes
from vani.schema.profile import Profile
from vani.schema.settings import Option, PathLike
from vani.schema.tuned import Tuned
from vani.site import Settings, setting, settings_of
from vani.systems import system_of
from vani.units import counted

Policy = Annotated[
    OptionalFile,
    Field(description="The policy; by default the nearest vani.toml or .vani.yaml, from here upwards."),
]
RulesMachine = Annotated[
    Any,
    Option(metavar="NAME|FILE"),
    Field(description="The machine that rules assume; by default the policy's, else from `vani config`."),
]


class SaveSettings(Decoding):
    """How runs are saved as a baseline."""

    policy: Policy = None
    system: RulesMachine = None
    add: bool = Field(default=False, description="With --save: keep the existing runs and add these.")
    keep: Annotated[int, Field(ge=1, le=100)] = Field(default=10, description="With --add: keep the newest N runs.")


class CheckSettings(Decoding):
    """Figures that a run is compared with, and how it is judged."""

    policy: Policy = None
    baselines: Annotated[tuple[str | Path, ...], Option(("--baseline",), "FILE")] = Field(
        default=(), description="Compare with this baseline or profile, or a folder or glob of them. May be repeated."
    )
    tuned: OptionalFile = Field(
        default=None,
        description="Result of `vani tune`: the run must use its setting and be as fast as the tuned runs.",
    )
    fail_on: Level | None = Field(
        default=None, description="The lowest level that makes the check fail.  [default: error, or the policy's]"
    )
    allow_empty: bool = Field(default=False, description="Succeed if there is nothing to check.")
    update_baseline: bool = Field(
        default=False, description="Then replace the baseline by these runs, whether the check passes or fails."
    )
    system: RulesMachine = None
    today: date | None = Field(
        default=None, description="Date for the expiry of exceptions; by default today (UTC)."
    )


class _Options(SaveSettings, CheckSettings):
    """Options of the command, which checks a run, or saves or shows a baseline."""

    show: bool = Field(
        default=False,
        description="Check nothing, and print the key figures of baselines; by default of the policy's.",
    )


def check(
    *profiles: PathLike | Profile,
    settings: CheckSettings | None = None,
    search: bool = True,
    default_system: PathLike | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> Check:
    """Check one or several runs of a program against a policy and a baseline's runs.

    Parameters
    ----------
    profiles
        Profiles, their paths, or traces, which are profiled first and list all files: one for each run.
    settings, fields
        The settings, or single fields of `CheckSettings`. `baselines`, `system` and `fail_on` replace the policy's.
    search
        Without a policy, take the nearest one from the working directory upwards.
    default_system
        The machine if neither `system` nor the policy names one.
    progress
        As in `profile`, for a trace.

    Raises
    ------
    InputError
        A document cannot be used, or there is nothing to check.
    """
    if not profiles:
        raise InputError("no run was named", todo="name profiles or traces")
    settings = CheckSettings.of(settings, **fields)
    system, update = settings.system, settings.update_baseline
    checks = checks_of_policy(settings.policy, search=search)
    target = None
    if update:
        target = saved.path_to_update(checks, [Path(baseline) for baseline in settings.baselines])
    proven = None if settings.tuned is None else _proven(settings.tuned)
    columns = columns_compared(checks)
    files = max(JUDGED_FILES if checks.rules else 1, saved.FILES)
    # Checked before a trace is profiled: a pattern that matches no file should not cost minutes.
    places = saved.files_to_compare(checks, [str(path) for path in settings.baselines], missing_ok=update)
    earlier = [saved.read_runs(place, columns | {*saved.FILE_COLUMNS}) for place in places]
    with Resources(profiles, settings, progress) as resources:
        figures = [figures_of(resources, profile, columns, files, system=system) for profile in profiles]
    verdict = verdict_on(
        checks,
        figures,
        [run for baseline in earlier for run in baseline.runs],
        [baseline.source for baseline in earlier],
        _rules_advice(
            checks, figures, default_system if system is None and checks.table.system is None else system
        ),
        today=settings.today or datetime.now(UTC).date(),
        fail_on=settings.fail_on,
        allow_empty=settings.allow_empty or update,
        version=vani.__version__,
        tuned=proven,
    )
    if target is not None:
        saved.write(saved.baseline_of([saved.run_of(run) for run in figures], checks.strip), target)
    return verdict


def save_baseline(
    *profiles: PathLike | Profile,
    output: PathLike | None = None,
    settings: SaveSettings | None = None,
    search: bool = True,
    progress: Progress | None = None,
    **fields: Any,
) -> Path:
    """Save profiles or traces of the same program, one per run, as a baseline and return its path.

    Parameters
    ----------
    output
        The baseline's path; by default the one in the policy, or .vani/baseline.yaml next to the policy.
    settings, fields
        The settings, or single fields of `SaveSettings`.
    search, progress
        As in `check`.

    Raises
    ------
    InputError
        A document cannot be used, or `output` exists and is not a baseline.
    """
    settings = SaveSettings.of(settings, **fields)
    checks = checks_of_policy(settings.policy, search=search)
    place = saved.baseline_path(checks) if output is None else Path(output)
    saved.refuse_to_overwrite(place)
    runs = []
    if settings.add and place.is_file():
        earlier = saved.read_runs(place, saved.FILE_COLUMNS)
        runs += list(zip(earlier.origins, earlier.runs, strict=True))
    with Resources(profiles, settings, progress) as resources:
        for profile in profiles:
            runs.append(saved.run_of(figures_of(resources, profile, (), saved.FILES, system=settings.system)))
    saved.write(saved.baseline_of(runs[-settings.keep :] if settings.add else runs, checks.strip), place)
    return place


def figures_of(
    resources: Resources,
    source: PathLike | Profile,
    columns: Collection[tuple[str, ...]],
    files: int,
    *,
    system: Any = None,
) -> Figures:
    """The profile as a tree; a trace gets the figures that its saved profile would have."""
    profile = profile_of(resources, source, system=system, files=None)
    where = path_text(source) if isinstance(source, (str, Path)) else "profile"
    if isinstance(profile, (str, Path)):
        content = read_bytes(Path(profile), todo="name a profile or a trace")
    else:
        content = profile.to_yaml().encode()
    return read_figures(content, where, columns, model_files=files)


def _proven(path: Path) -> TunedCheck:
    content = read_bytes(path, todo="name the tuned.yaml of vani tune")
    return TunedCheck(Tuned.load(path), Source(path=path_text(path), sha256=sha256(content).hexdigest()))


def _rules_advice(checks: PolicyChecks, figures: Sequence[Figures], system: Any) -> list[RulesAdvice]:
    """Evaluate the catalogue's rules for each run if the policy limits their findings."""
    if checks.rules is None:
        system_of(system)  # Reports a misspelt name even if no check needs the machine.
        return []

    table = checks.rules.table
    place = f"{checks.rules.place.path}:{checks.rules.place.line}"
    try:
        if system is None and checks.table.system is not None:
            named = checks.folder / checks.table.system
            machine = system_of(named if named.is_file() else checks.table.system)
        else:
            machine = system_of(system)
    except InputError as error:
        # Errors inside a system file already name their lines; an unknown name is reported where the policy
        # uses it.
        where = error.where or ("" if system is not None else checks.where("system"))
        raise InputError(error.what, where=where, todo=error.todo) from None
    settings = settings_of(dict(checks.advise), checks.path or Path()) if checks.advise else Settings()
    try:
        forbidden = frozenset(rule.id for rule in pick(table.forbid)) if table.forbid else frozenset()
        levels = {find(name).id: level for name, level in table.levels.items()}
        pick(table.ignore)
    except InputError as error:
        raise InputError(error.what, where=place, todo=error.todo) from None
    try:
        advice = [
            judge(
                run.model,
                UNKNOWN_SYSTEM if machine is None else machine,
                profile_ref=ProfileRef(path=run.path, sha256=run.sha256),
                system_ref=SystemRef(name=None if machine is None else machine.name, sha256=""),
                select=settings.select,
                ignore=[*settings.ignore, *table.ignore],
                thresholds=settings.thresholds,
            )
            for run in figures
        ]
    except InputError as error:
        # The table `[advise]` names an unknown rule or threshold.
        raise InputError(error.what, where=error.where or str(checks.path), todo=error.todo) from None
    return [RulesAdvice(document, forbidden, levels) for document in advice]


@click.command("check")
@source_argument("profiles", nargs=-1, metavar="RUN [RUN ...]")
@format_option(CHECK, default="text", help="Output format, for stdout or the file of -o.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="[FORMAT=]FILE",
    help="Write here; with FORMAT=, in addition to --format. May be repeated.",
)
@settings_options(_Options)
@click.option(
    "--save",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Check nothing, and save runs of the same program as a baseline: in FILE, else in the policy's, or in "
    ".vani/baseline.yaml next to it.",
)
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    profiles: tuple[Path, ...],
    kind: str,
    outputs: tuple[str, ...],
    settings: _Options,
    save: str | None,
    quiet: bool,
) -> None:
    """Check runs of a program against a policy and earlier runs, or save them as a baseline.

    Each argument is a run; a trace, which is a folder or a file, is profiled first. Exit status: 0 all checks pass, 1 a
    failure at or above the level of --fail-on, 2 nothing to check or bad input. The more runs are checked and saved,
    the smaller the slowdowns that `vani check` sees.
    """
    if settings.show:
        _show_baselines(profiles, settings)
    elif not profiles:
        raise click.UsageError("Missing argument 'PROFILE|TRACE'.")
    elif save is not None:
        _save(profiles, Path(save) if save else None, settings, quiet=quiet)
    else:
        ctx.exit(_check(profiles, _outputs(kind, outputs), settings, quiet=quiet))


def _check(
    profiles: Sequence[Path], wanted: Sequence[tuple[str, Path | None]], settings: CheckSettings, *, quiet: bool
) -> int:
    """Check the runs, write the result in each format to its destination, and return the exit status."""
    page = _summary_place(wanted)
    with working(*profiles, quiet=quiet) as progress:
        read = [*profiles, settings.tuned, *scheduler_files(settings.scheduler)]
        read_too = saved.files_of_gate(settings.policy, baselines=settings.baselines)
        places = [*(path for _, path in wanted), *page]
        check_outputs(places, chain(read, read_too, system_files(settings.system)))
        result = check(*profiles, settings=settings, default_system=setting("system").value, progress=progress)
    # All texts are made before the first is written, so that an error leaves no partial output.
    emit_all([(_written(result, form), path) for form, path in wanted])
    for place in page:
        _append(summary(in_repository(result, folder=Path.cwd())).encode(), place)
    _show(result, wanted, quiet=quiet)
    return 1 if result.verdict == "fail" else 0


def _save(profiles: Sequence[Path], output: Path | None, settings: SaveSettings, *, quiet: bool) -> None:
    with working(*profiles, quiet=quiet) as progress:
        if output is not None:
            files = saved.files_of_gate(settings.policy, baselines=None)
            check_outputs([output], chain(profiles, scheduler_files(settings.scheduler), files))
        place = save_baseline(*profiles, output=output, settings=settings, progress=progress)
    if not quiet:
        say(f"Saved {place}; `vani check` compares with it.")


def _show_baselines(files: Sequence[Path], settings: _Options) -> None:
    """Print each baseline with its number of runs, and the key figures of all runs."""
    checks = checks_of_policy(settings.policy, search=True)
    places = saved.files_to_compare(checks, [str(file) for file in files or settings.baselines])
    if not places:
        raise InputError(
            "there is no baseline here or in parent folders",
            todo="make one with `vani check PROFILE --save`",
        )
    earlier = [saved.read_runs(place, saved.FILE_COLUMNS) for place in places]
    for baseline in earlier:
        click.echo(one_line(f"{baseline.source.path}: {counted(len(baseline.runs), 'run')}"))
    rows = key_figures([run for baseline in earlier for run in baseline.runs])
    wide = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(one_line(f"  {name.ljust(wide)}  {value}"))


def _show(result: Check, wanted: Sequence[tuple[str, Path | None]], *, quiet: bool) -> None:
    """Print the verdict on stderr, unless stdout already shows it."""
    on_screen = shows_summary(next((path for _, path in wanted if path is not None), None), quiet=quiet)
    if on_screen and ("text", None) not in wanted:
        text = CHECK.render("text", result, version=vani.__version__)
        stderr_console().print(text, markup=False, end="", soft_wrap=True)


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


def _append(content: bytes, place: Path) -> None:
    what, todo = "the summary cannot be written", "unset GITHUB_STEP_SUMMARY"
    with os_errors_as(InputError, what, where=place, todo=todo), place.open("ab") as file:
        file.write(content)
