"""`vani centre advise`: the default layout, layouts of folders, slow targets, and users to write to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import click
from pydantic import Field

from vani.centre.history.ranking import ranking_in
from vani.centre.history.ranking_text import saved_text
from vani.centre.history.rows import StoredRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import RankedRow
from vani.centre.history.settings import PeriodSettings
from vani.centre.history.targets import ranked_targets
from vani.centre.prediction.creations.series import unpack_creations
from vani.centre.service import layouts
from vani.centre.service.configuration import DEFAULT_FILE, CentreConfiguration, SharedFileSystem, load
from vani.cli.options import settings_options
from vani.errors import one_line
from vani.render.table import table
from vani.schema.model import Model
from vani.schema.settings import Option
from vani.schema.syntax.json_text import json_text
from vani.units import counted, format_share

if TYPE_CHECKING:
    import sqlalchemy as sa

_MAX_JOBS: Final = 240
_BLOCK: Final = 20
"""Longer histories are replayed as blocks of this many successive runs."""
_MAX_LETTERS: Final = 10
_HOUR: Final = 3600.0


class SiteAdvice(Model):
    """Advice for a whole centre."""

    layout: layouts.LayoutAdvice | None = Field(
        description="null if there are too few jobs, for the reason in `why_none`"
    )
    why_none: str
    slow_targets: list[str]
    letters: list[RankedRow] = Field(description="application and users whose jobs could save a core-hour or more")


class AdviseSettings(PeriodSettings):
    """The history, and the file system that its jobs use."""

    config: Annotated[Path | None, Option(metavar="FILE", envvar="VANI_CENTRE")] = Field(
        None, description=f"The centre's file; by default {DEFAULT_FILE} in this folder, if it is there."
    )
    mount: str | None = Field(None, description="Mount point of the file system; by default the one in the file.")
    targets: int | None = Field(
        None, ge=1, le=65_536, description="Number of its OSTs; by default from the file, else the largest in the logs."
    )
    stripe_count: int | None = Field(
        None, ge=-1, le=65_536, description="Its present default stripe count; by default from the file, else 1."
    )


def centre_advice(settings: AdviseSettings | None = None, /, **fields: Any) -> SiteAdvice:
    """Replay a centre's jobs with every fixed layout, and advise on the best one, or on none.

    Raises
    ------
    InputError
        There is no history or file, or a day is invalid.
    """
    wanted = AdviseSettings.of(settings, **fields)
    path = wanted.config or (Path(DEFAULT_FILE) if wanted.db is None and Path(DEFAULT_FILE).exists() else None)
    configuration = None if path is None else load(path)
    store = Store(wanted.db) if configuration is None or wanted.db is not None else configuration.store()
    with store.reading() as connection:
        return advice_in(connection, wanted.period, _file_system(wanted, configuration))


def _file_system(wanted: AdviseSettings, configuration: CentreConfiguration | None) -> SharedFileSystem:
    known = configuration.file_system if configuration is not None else None
    given = wanted.model_dump(include={"mount", "targets", "stripe_count"}, exclude_none=True)
    return (known or SharedFileSystem(mount="/")).model_copy(update=given)


def advice_in(connection: sa.Connection, period: read.Period, file_system: SharedFileSystem) -> SiteAdvice:
    """Advice from the runs of a period."""
    jobs, targets = _jobs(connection, period, file_system)
    layout, why = None, ""
    if len(jobs) < 2 * layouts.LEAST_JOBS:
        why = f"{counted(len(jobs), 'job')} on {file_system.mount} can be replayed; {2 * layouts.LEAST_JOBS} are needed"
    elif targets < 2:
        why = "the number of OSTs is not known (--targets)" if targets < 1 else "the file system has one OST"
    else:
        default = (layouts.Component(None, file_system.stripe_count, file_system.stripe_size),)
        layout = layouts.choose(jobs, targets, default, file_system.mount)
    ranked = ranking_in(connection, period, limit=_MAX_LETTERS)
    slow = [row for row in ranked_targets(read.target_times(connection, period)) if row.slow]
    return SiteAdvice(
        layout=layout, why_none=why, slow_targets=[f"OST {row.target} of {row.mount}" for row in slow],
        letters=[row for row in ranked.rows if row.saved is not None and (row.saved.expected_s or 0.0) >= _HOUR],
    )


def _jobs(
    connection: sa.Connection, period: read.Period, file_system: SharedFileSystem
) -> tuple[list[layouts.ReplayJob], int]:
    """Jobs to replay, the oldest first, and the number of targets; 0 if unknown."""
    mount = file_system.mount.rstrip("/") or "/"
    digests = read.replayable(connection, period, None if mount == "/" else mount)
    if len(digests) > _MAX_JOBS:
        blocks = _MAX_JOBS // _BLOCK
        begins = [number * (len(digests) - _BLOCK) // (blocks - 1) for number in range(blocks)]
        digests = list(dict.fromkeys(digest for begin in begins for digest in digests[begin : begin + _BLOCK]))
    runs = sorted(read.rows_with(connection, StoredRun, digests), key=lambda run: (run.submitted or 0.0, run.digest))
    created = read.creations_of(connection, digests)
    known: set[str] = set()
    first_s = runs[0].submitted or 0.0 if runs else 0.0
    candidates = (
        layouts.job_of(run, unpack_creations(created[run.digest]) if run.digest in created else None, first_s, known)
        for run in runs
    )
    jobs = [job for job in candidates if job is not None]
    targets = file_system.targets or 1 + max(read.target_numbers(connection, digests), default=-1)
    return jobs, targets


def advice_as_text(advice: SiteAdvice) -> str:
    """The best line first, then everything else."""
    lines = [f"No advice on layouts: {advice.why_none}."] if advice.layout is None else _layout_lines(advice.layout)
    lines += ["", f"Slow targets: {', '.join(map(one_line, advice.slow_targets)) or 'none'}."]
    if advice.letters:
        head = ("application", "user", "core-hours that could be saved", "by")
        rows = [
            (row.application, row.user, saved_text(row.saved), row.saved.setting if row.saved is not None else "")
            for row in advice.letters
        ]
        cells = [tuple(one_line(str(text)) for text in row) for row in rows]
        lines += ["", "Users to write to (vani history letter APP USER):", *table(head, cells, all_rows=True)]
    else:
        lines.append("Users to write to: none, as no judged run could save a core-hour.")
    return "\n".join(lines) + "\n"


def _layout_lines(layout: layouts.LayoutAdvice) -> list[str]:
    mount = one_line(layout.mount)
    if layout.outcome is None:
        why = f"No fixed rule gains at least {layouts.LEAST_GAIN:.2f} for certain."
        if layout.error > layouts.MOST_ERROR:
            why = f"The replay does not explain the measured times: it is off by a factor of {layout.error:.1f}."
        lines = [f"Default layout of {mount}: leave it. {why}"]
    else:
        lines = [
            f"Default layout of {mount}: lfs setstripe {layout.options} {mount}",
            f"  {layout.outcome.new_files:.2f} times as fast in I/O ({layout.low:.2f} to {layout.high:.2f}); "
            f"{layout.outcome.slower:.0f} of {layout.judged} jobs 10 % slower ({layout.chance:.0f} by chance)",
            f"  {layout.outcome.all_files:.2f} times once the files that jobs read have it, too (lfs migrate)",
        ]
    lines.append(
        f"  {format_share(1 - layout.renewed)} of the written bytes are in files whose names earlier runs used. A file "
        "that is overwritten keeps its layout: use new folders, or lfs migrate."
    )
    head = ("all new files in", "new files", "with inputs", "slower")
    rows = [
        (rule.rule, f"{rule.new_files:.2f}", f"{rule.all_files:.2f}", f"{rule.slower:.0f}") for rule in layout.rules
    ]
    lines += [
        "",
        f"Replayed on {counted(layout.targets, 'OST')}: {layout.chose} jobs chose, the {layout.judged} jobs after them "
        f"judged. As they were, half of the jobs took within {layout.error:.2f} times their measured I/O time.",
        "Gains of the jobs that chose; at most "
        f"{format_share(layouts.MORE_SLOWER)} of them may be slower, beyond those by chance:",
        *table(head, rows, all_rows=True),
        "",
    ]
    if layout.folders:
        lines.append(f"Folders with another layout, together {layout.with_folders:.2f} times as fast:")
        lines += [f"  lfs setstripe {entry.options} {one_line(entry.folder)}" for entry in layout.folders]
    else:
        lines.append("Folders: none needs another layout.")
    better = "is better: set `hook` in centre.toml" if layout.hook_is_better else "stays off: it is not better"
    lines.append(f"A hook in each job: {layout.hook:.2f} times. It {better}.")
    return lines


class _Shown(AdviseSettings):
    format: Literal["text", "json"] = Field("text", description="Output format.")


@click.command("advise")
@settings_options(_Shown)
def command(settings: _Shown) -> None:
    """Advise on the default layout of the file system, layouts of folders, slow OSTs, and users to write to.

    The centre's own jobs are replayed on a model of the file system with every fixed rule: 1, 2, 4, 8 or all stripes,
    and progressive layouts. The first half of the jobs chooses the rule, and the second half judges it. If none gains
    for certain, the advice is to leave the layout as it is.
    """
    advice = centre_advice(settings)
    as_json = settings.format == "json"
    click.echo(json_text(advice.model_dump(), indent=2) + "\n" if as_json else advice_as_text(advice), nl=False)
