"""`vani diff`: compares two runs attribute by attribute, or many runs with one line each."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import click
from pydantic import Field

import vani
from vani.cli.check import figures_of
from vani.cli.options import format_option, output_option, quiet_option, settings_options, source_argument
from vani.cli.output import check_outputs, emit, say, working
from vani.cli.sources import Decoding, Resources, is_trace, scheduler_files
from vani.engine.executor import Progress
from vani.errors import InputError
from vani.gate.baselines import files_of_gate, read_runs
from vani.gate.difference import FILE_COLUMNS, Side, compare
from vani.gate.matching import lists_all_files
from vani.gate.policy import checks_of_policy
from vani.models.verdict import verdict_of
from vani.render.formats import DIFF, RUNS
from vani.schema.check import Source
from vani.schema.damage import damage
from vani.schema.diff import COLUMNS, Diff, RunRow, RunTable, Unread
from vani.schema.profile import Profile
from vani.schema.settings import Option, PathLike
from vani.schema.syntax import first_bytes

_LAST_SECOND: Final = 253_402_300_799
"""Last second of the year 9999, the latest possible date."""


class DiffSettings(Decoding):
    """How two runs are compared."""

    strip: Annotated[tuple[str, ...] | None, Option(metavar="PATTERN")] = Field(
        default=None,
        description="Prefix of paths that differs between runs, such as '/scratch/job*'; by default the policy's.",
    )


class TableSettings(Decoding):
    """The order of runs in a table."""

    sort: Annotated[str | None, Option(metavar="COLUMN")] = Field(
        default=None,
        description="With a line per run: sort by a column of the CSV, such as io_s: numbers from large to small, text "
        "from A to Z.",
    )
    reverse: bool = Field(default=False, description="With a line per run: reverse the order.")


class _Options(DiffSettings, TableSettings):
    """Options of the command that have no meaning for a Python caller."""

    everything: Annotated[bool, Option(("--all",))] = Field(
        default=False, description="Also show changes within the tolerance, and repetitions."
    )


def diff(
    a: PathLike | Profile,
    b: PathLike | Profile,
    settings: DiffSettings | None = None,
    *,
    progress: Progress | None = None,
    **fields: Any,
) -> Diff:
    """Compare two profiles, traces or baselines, attribute by attribute.

    Parameters
    ----------
    settings, fields
        The settings, or single fields of `DiffSettings`.
    progress
        As in `profile`, for traces.

    Raises
    ------
    InputError
        A document or a trace cannot be used.
    """
    settings = DiffSettings.of(settings, **fields)

    def side(resources: Resources, path_or_profile: PathLike | Profile) -> Side:
        if isinstance(path_or_profile, (str, Path)) and not is_trace(path_or_profile):
            earlier = read_runs(Path(path_or_profile), FILE_COLUMNS, todo="name a profile or a trace")
            return Side(earlier.source, earlier.runs, all(map(lists_all_files, earlier.runs)), earlier.is_saved)
        figures = figures_of(resources, path_or_profile, FILE_COLUMNS, 1)
        source = Source(path=figures.path, sha256=figures.sha256)
        return Side(source, (figures.tree,), lists_all_files(figures.tree))

    strip = checks_of_policy(None, search=True).strip if settings.strip is None else settings.strip
    with Resources([a, b], settings, progress) as resources:
        return compare(side(resources, a), side(resources, b), strip=strip, version=vani.__version__)


def table(
    *runs: PathLike | Profile,
    settings: TableSettings | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> RunTable:
    """Tabulate the figures of many runs, one row per run.

    Parameters
    ----------
    runs
        Profiles, their paths, folders of profiles, or traces, which are profiled first.
    settings, fields
        The settings, or single fields of `TableSettings`. `sort` is a column of `vani.schema.diff.COLUMNS`:
        numbers in descending order, texts in ascending order, unknown values last. None keeps the order of `runs`.
    progress
        As in `profile`, for traces.

    Raises
    ------
    InputError
        No run can be read, or the column does not exist. Single runs that cannot be read are listed in `unread`.
    """
    settings = TableSettings.of(settings, **fields)
    sorted_rows((), settings.sort, reverse=settings.reverse)
    rows, unread = [], []
    named = [each for run in runs for each in _runs_of(run)]
    for source in named:
        try:
            with Resources([source], settings, progress) as resources:
                figures = figures_of(resources, source, (), 1)
        except InputError as error:
            unread.append(Unread(run=str(source), why=str(error)))
        else:
            rows.append(row_of(figures.model, figures.path))
    if not rows:
        raise InputError(
            f"none of {len(named)} runs can be read ({unread[0].why})" if unread else "no run was named",
            todo="name profiles or traces",
        )
    return RunTable(
        schema="vani.table/1",
        version=vani.__version__,
        rows=sorted_rows(rows, settings.sort, reverse=settings.reverse),
        unread=unread,
    )


def _runs_of(source: PathLike | Profile) -> Sequence[PathLike | Profile]:
    """The path itself, or the profiles in a folder that contains some; any other folder is a trace."""
    if not isinstance(source, (str, Path)) or not Path(source).is_dir():
        return [source]
    try:
        within = sorted(
            path
            for path in Path(source).iterdir()
            if path.suffix in (".yaml", ".yml", ".json") and path.is_file()
        )
    except OSError:
        return [source]
    return [path for path in within if b"vani.profile/" in (first_bytes(path) or b"")] or [source]


def row_of(profile: Profile, run: str) -> RunRow:
    """The figures of one run."""
    workflow = profile.workflow
    io, size = workflow.io, workflow.io.transfer_size
    starts = [trace.start_unix_s for trace in profile.traces if trace.start_unix_s]
    tracers = sorted({f"{trace.tool} {trace.format}" for trace in profile.traces})
    verdict = verdict_of(profile)
    return RunRow(
        run=run,
        apps=", ".join(app.name for app in profile.apps),
        start=_date(min(starts)) if starts else None,
        tracer=", ".join(tracers) or None,
        processes=workflow.processes,
        nodes=profile.job.nodes,
        runtime_s=workflow.runtime_s,
        matters=verdict.matters,
        io_share=verdict.share,
        io_share_slowest=verdict.share_slowest,
        io_share_is_lower_bound=verdict.is_lower_bound,
        verdict=verdict.sentence,
        io_s=io.time_s.total,
        read=io.bytes.read,
        written=io.bytes.written,
        read_rate=io.bandwidth.read,
        write_rate=io.bandwidth.write,
        reads=io.ops.read,
        writes=io.ops.write,
        metadata=io.ops.metadata,
        read_p50=size.read.p50 if size.read is not None else None,
        write_p50=size.write.p50 if size.write is not None else None,
        files=workflow.files.total,
        shared_files=workflow.files.shared,
        costliest=verdict.cause.call if verdict.cause is not None else None,
        damage=damage(profile),
    )


def sorted_rows(rows: Sequence[RunRow], column: str | None, *, reverse: bool) -> list[RunRow]:
    """Sort rows by a column: numbers in descending order, texts and dates ascending, unknown values last.

    Raises
    ------
    InputError
        The column does not exist.
    """
    if column is None:
        return list(reversed(rows)) if reverse else list(rows)
    if column not in COLUMNS:
        raise InputError(f"no column {column!r}", where="--sort", todo=f"there are {', '.join(COLUMNS)}")
    known = [row for row in rows if getattr(row, column) is not None]
    unknown = [row for row in rows if getattr(row, column) is None]
    is_text = bool(known) and isinstance(getattr(known[0], column), str)
    return sorted(known, key=lambda row: getattr(row, column), reverse=reverse is is_text) + unknown


def _date(seconds: float) -> str | None:
    if not 0 < seconds < _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@click.command("diff")
@source_argument("runs", nargs=-1, required=True, metavar="RUN [RUN ...]")
@settings_options(_Options)
@format_option(
    dict.fromkeys([*DIFF, *RUNS]),
    default=None,
    help="Output format: text, markdown or json for two runs; text, csv, json or parquet for a line per run; by "
    "default from the suffix of -o, else text.",
)
@output_option()
@quiet_option
def command(runs: tuple[Path, ...], settings: _Options, kind: str | None, output: Path | None, quiet: bool) -> None:
    """Show what changed from one run to another, or compare many runs with one line each.

    A RUN is a profile, a baseline or a trace (folder or file). Of two runs, files, apps and phases are matched by name;
    changes that exceed the tolerance and affect at least 1 % of the I/O time are marked, the most important first.

    Three or more runs, or a folder of profiles, give a table. The text has the most common columns; CSV, JSON and
    Parquet have all, named as in the profile. Unreadable files are reported, and the rest is written.
    """
    kind = kind or (RUNS.of_file(output) if output is not None else None)
    in_columns = settings.model_fields_set & {"sort", "reverse"} or kind in ("csv", "parquet")
    if len(runs) == 2 and not in_columns and all(list(_runs_of(run)) == [run] for run in runs):
        emit(_differences(runs, settings, kind or "text", output, quiet=quiet), output)
    else:
        emit(_table(runs, settings, kind or "text", output, quiet=quiet), output)


def _differences(runs: Sequence[Path], settings: _Options, kind: str, output: Path | None, *, quiet: bool) -> str:
    with working(*runs, quiet=quiet) as progress:
        files = files_of_gate(baselines=None)
        check_outputs([output], chain(runs, scheduler_files(settings.scheduler), files))
        differences = diff(runs[0], runs[1], settings, progress=progress)
    return DIFF.render(kind, differences, everything=settings.everything)


def _table(runs: Sequence[Path], settings: _Options, kind: str, output: Path | None, *, quiet: bool) -> str | bytes:
    RUNS.check(kind)
    if settings.model_fields_set & {"strip", "everything"}:
        raise InputError("--all and --strip are for two runs", todo="leave them out, or name two runs")
    with working(*runs, quiet=quiet) as progress:
        check_outputs([output], [*runs, *scheduler_files(settings.scheduler)])
        compared = table(*runs, settings=settings, progress=progress)
    say(*(f"vani: left out: {run.why}" for run in compared.unread))
    return RUNS.render(kind, compared)
