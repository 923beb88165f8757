"""The files that the next run of an application will create, with their names (`vani history creations`).

Names are taken from an earlier run; numbers in them are continued if they count up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import click
import numpy as np
from pydantic import AfterValidator, Field, TypeAdapter

import vani
from vani.centre.columns import Floats, Ints
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.settings import HistorySettings, user_options
from vani.centre.placement_library import interactions
from vani.centre.plan.inputs import files_to_place, is_layout_file
from vani.centre.plan.schema.jobs import Creation, Jobs, PlannedJob
from vani.centre.prediction.creations import series
from vani.centre.prediction.creations.choice import Chosen, Follower, choose_next, remembered
from vani.centre.prediction.creations.extraction import read_partial_run
from vani.centre.prediction.creations.predictors import PREDICTORS
from vani.centre.prediction.schema import CreationsPrediction, PredictedCreation
from vani.centre.prediction.text import FORMATS
from vani.cli.options import format_option, output_option, settings_options
from vani.cli.output import check_outputs, emit_all
from vani.errors import InputError, StoreError, one_line
from vani.models.pfl import parse_buckets
from vani.schema.document import dumps, read_text
from vani.schema.settings import Option
from vani.units import counted

if TYPE_CHECKING:
    import sqlalchemy as sa

_DIGITS: Final = re.compile(r"\d{1,18}")
_TURNS: Final = 4
_SURE: Final = 0.99
_MAX_PERIOD: Final = 64
_COUNTED: Final = 2000
"""Number of files of two runs compared to learn how numbers in names continue."""

Fields = tuple[str, tuple[int, ...]]
"""A name without its numbers, and the numbers."""


def coming_paths(past: Sequence[series.Creations], so_far: series.Creations, ranks: Ints) -> list[str | None]:
    """Names of the files that `ranks` create after `so_far`, in order; None if unknown.

    The names come from the last run, or from the second, third or fourth last if those are the same. Numbers that
    grow by the same amount from run to run, or from one creation of a rank to the next, are continued.
    """
    runs = [run for run in past if run.paths][-_TURNS - 1 :]
    nth = series.nth_of_rank(ranks, so_far)
    names: list[str | None] = [None] * len(ranks)
    template = _base(runs, so_far) if runs else None
    if template is not None:
        base, steps = template
        at = base.find(ranks, nth)
        for place in np.flatnonzero(at >= 0).tolist():
            names[place] = _moved(base.paths[at[place]], steps, 1)
    known = so_far if so_far.paths and len(so_far) else runs[-1] if runs else None
    missing = [place for place, name in enumerate(names) if name is None]
    if known is not None and missing:
        _count_on(names, missing, known, ranks, nth)
    return _once(names, set(so_far.paths))


def _base(
    runs: Sequence[series.Creations], so_far: series.Creations
) -> tuple[series.Creations, tuple[int, ...]] | None:
    """The run whose names recur, and the increments of their numbers; None if there is none."""
    last = runs[-1]
    if so_far.paths:
        for run in reversed(runs):
            if _same_share(so_far, run) >= _SURE:
                return run, ()
    for back in range(1, min(_TURNS, len(runs) - 1) + 1):
        if _same_share(last, runs[-1 - back]) >= _SURE:
            return runs[-back], ()
    if len(runs) == 1:
        return last, ()
    steps = _steps(runs[-2], last)
    # Any two numbers differ by some amount; only the same amount twice is a law.
    if steps is not None and len(runs) > 2 and steps == _steps(runs[-3], runs[-2]):
        return last, steps
    return None


def _same_share(this: series.Creations, other: series.Creations) -> float:
    at = other.find(this.ranks[:_COUNTED], this.nth[:_COUNTED])
    there = np.flatnonzero(at >= 0).tolist()
    return sum(this.paths[i] == other.paths[at[i]] for i in there) / len(there) if there else 0.0


def _steps(before: series.Creations, after: series.Creations) -> tuple[int, ...] | None:
    """The increment of each number in names from one run to the next; None if names differ in another way."""
    at = before.find(after.ranks[:_COUNTED], after.nth[:_COUNTED])
    differences: set[tuple[int, ...]] = set()
    for place in np.flatnonzero(at >= 0).tolist():
        difference = _difference(before.paths[at[place]], after.paths[place])
        if difference is None:
            return None
        differences.add(difference)
    return differences.pop() if len(differences) == 1 else None


def _fields(path: str) -> Fields:
    return _DIGITS.sub("\0", path), tuple(int(digits) for digits in _DIGITS.findall(path))


def _difference(before: str, after: str) -> tuple[int, ...] | None:
    (shape, first), (other, second) = _fields(before), _fields(after)
    if shape != other:
        return None
    return tuple(b - a for a, b in zip(first, second, strict=True))


def _moved(path: str, steps: tuple[int, ...], times: int) -> str | None:
    if not any(steps):
        return path
    numbers = iter(steps)

    def count(number: re.Match[str]) -> str:
        value = int(number[0]) + times * next(numbers, 0)
        return str(max(0, value)).zfill(len(number[0]))

    return _DIGITS.sub(count, path)


def _count_on(
    names: list[str | None], missing: Sequence[int], known: series.Creations, ranks: Ints, nth: Ints
) -> None:
    """Fill in names beyond the end of a run by continuing the numbers in each rank's last names."""
    of_rank = series.places_by_rank(known.ranks)
    laws: dict[int, tuple[int, tuple[int, ...], list[str]] | None] = {}
    for place in missing:
        rank = int(ranks[place])
        if rank not in of_rank:
            continue
        if rank not in laws:
            laws[rank] = _law([known.paths[at] for at in of_rank[rank][-4 * _MAX_PERIOD :].tolist()])
        law = laws[rank]
        if law is None:
            continue
        period, steps, tail = law
        ahead = int(nth[place]) - len(of_rank[rank])
        if ahead >= 0:
            names[place] = _moved(tail[ahead % period], steps, ahead // period + 1)


def _law(paths: Sequence[str]) -> tuple[int, tuple[int, ...], list[str]] | None:
    """Period after which names recur, the increments of their numbers, and the last such period."""
    for period in range(1, min(_MAX_PERIOD, len(paths) // 2) + 1):
        differences = {
            _difference(paths[at - period], paths[at])
            for at in range(max(period, len(paths) - 3 * period), len(paths))
        }
        if len(differences) == 1:
            steps = differences.pop()
            if steps is not None and any(steps):
                return period, steps, list(paths[-period:])
    return None


def _once(names: list[str | None], used: set[str]) -> list[str | None]:
    """The names without repetitions, because a file is created only once."""
    for place, name in enumerate(names):
        if name is not None:
            if name in used:
                names[place] = None
            used.add(name)
    return names


def expected_files(
    past: Sequence[series.Creations], so_far: series.Creations, chosen: Chosen, least: float
) -> list[PredictedCreation]:
    """One row per file; sizes with a probability below `least` are unknown."""
    foreseen = chosen.foreseen
    nth = series.nth_of_rank(foreseen.ranks, so_far)
    paths = coming_paths(past, so_far, foreseen.ranks)
    stripes = _stripes(past, so_far, foreseen.ranks, nth)
    known = np.isfinite(foreseen.sizes) & ~(chosen.probability < least)
    bounds = [_whole(foreseen.sizes * factor) for factor in (1.0, chosen.low, chosen.high)]
    ranged = np.isfinite(foreseen.sizes) & bool(np.isfinite(chosen.low))
    arrays = (foreseen.ranks, *bounds, known, ranged, chosen.probability, stripes)
    columns = zip(paths, *(array.tolist() for array in arrays), strict=True)
    # Validating all rows at once takes a fifth of the time for a million rows.
    return TypeAdapter(list[PredictedCreation]).validate_python(
        [
            {
                "path": path, "rank": None if rank < 0 else rank, "size": size if is_known else None,
                "low": low if has_range else None, "high": high if has_range else None, "stripe_count": count or None,
                "probability": None if math.isnan(probability) else round(probability, 4),
            }
            for path, rank, size, low, high, is_known, has_range, probability, count in columns
        ]
    )


def _whole(sizes: Floats) -> Ints:
    with np.errstate(invalid="ignore"):
        return np.clip(np.rint(np.nan_to_num(sizes)), 0, float(series.LARGEST)).astype(np.int64)


def _stripes(
    past: Sequence[series.Creations], so_far: series.Creations, ranks: Ints, nth: Ints
) -> Ints:
    """Stripe counts of the same creations in the last run; otherwise the most frequent one."""
    last = past[-1] if past else so_far
    at = last.find(ranks, nth)
    every = last.stripes[last.stripes > 0]
    common = int(np.bincount(every).argmax()) if len(every) else 0
    stripe_counts = np.full(len(ranks), common, dtype=np.int64)
    stripe_counts[at >= 0] = last.stripes[at[at >= 0]]
    return stripe_counts


_SEARCHED_RUNS = 256
"""Number of latest runs of a category that are searched for known creations."""


def _known_method(name: str) -> str:
    if name not in PREDICTORS:
        raise ValueError(f"is no method; there are {', '.join(PREDICTORS)}")
    return name


class CreationsSettings(HistorySettings):
    """The run to predict."""

    processes: Annotated[int | None, Option(metavar="N")] = Field(
        None, description="Processes of each run; by default as in the latest run."
    )
    begun: Annotated[Path | None, Option(metavar="FILE")] = Field(
        None,
        description="Files that the run has created so far: CSV (path,rank,size,stripe_count) or its trace. The rest "
        "is predicted.",
    )
    method: Annotated[str | None, AfterValidator(_known_method), Option(metavar="NAME")] = Field(
        None, description="A predictor; by default the best on past runs."
    )
    least: Annotated[float, Field(ge=0, le=1), Option(metavar="P")] = Field(
        0.5, description="Report less probable sizes as unknown."
    )


def history_creations(
    application: str, user: str | None = None, settings: CreationsSettings | None = None, **fields: Any
) -> CreationsPrediction:
    """Predict which files an application's next run creates, or a running one has yet to create.

    Parameters
    ----------
    user
        User of the runs; None takes that of the latest run.

    Raises
    ------
    InputError
        There is no history, no such run or no run with known creations in it, or the method is unknown.
    """
    settings = CreationsSettings.of(settings, **fields)
    seen = series.nothing() if settings.begun is None else read_partial_run(settings.begun)
    if settings.begun is not None and not len(seen):
        todo = "leave --begun out for a run that has not started"
        raise InputError("has no files", where=settings.begun, todo=todo)
    with Store(settings.db).reading() as connection:
        categories = read.categories_of(connection, application, user, settings.processes)
        if not categories:
            what = f"no runs of {one_line(application)} by this user or with this number of processes"
            raise InputError(what, todo="`vani history top` lists applications and users")
        whose, wide, number, _ = categories[0]
        past = remembered(_past(connection, application, whose, wide))
        hidden = read.fact(connection, "names") is not None
    if not past:
        what = f"the files that {one_line(application)} created are not known for any of {counted(number, 'run')}"
        raise InputError(what, todo="`vani history add` traces, logs or profiles that list all files")
    names = None if settings.method is None else [settings.method]
    if settings.begun is None:
        chosen = choose_next(past, names)
    else:
        follower = Follower(past, names)
        follower.see_all(seen)
        chosen = follower.rest(seen)
    return CreationsPrediction(
        version=vani.__version__, outside=[], notes=_notes(categories, chosen, hidden=hidden),
        application=application, user=whose, processes=wide, task="rest_of_run" if len(seen) else "next_run",
        runs=len(past), begun=len(seen), method=chosen.method, law=chosen.foreseen.law, held_out=chosen.runs,
        judged=dict(chosen.accuracy), creations=expected_files(past, seen, chosen, settings.least),
    )  # fmt: skip


def _past(connection: sa.Connection, application: str, user: str, processes: int) -> list[series.Creations]:
    digests = read.latest_digests(connection, application, user, processes, _SEARCHED_RUNS)
    packed = read.creations_of(connection, digests)
    past = []
    for digest in digests:
        if digest in packed:
            try:
                past.append(series.unpack_creations(packed[digest]))
            except ValueError as error:
                what = "has creations that cannot be read"
                raise StoreError(what, where=digest[:12], todo="add the run again") from error
    return past


def _notes(categories: list[tuple[str, int, int, float | None]], chosen: Chosen, *, hidden: bool) -> list[str]:
    notes = []
    if len(categories) > 1:
        notes.append(f"{counted(len(categories), 'category')} of user and processes: this is the latest run's")
    if not chosen.runs:
        notes.append("only one run is known: the spread of later runs is not known")
    if hidden:
        notes.append("the history is anonymised: paths are hashes, and files cannot be named")
    return notes


def creations_jobs(prediction: CreationsPrediction, layout: str | None = None) -> Jobs:
    """Describe a job that creates the predicted files with known names and sizes.

    Parameters
    ----------
    layout
        Layout of each file: a stripe count, options of `lfs setstripe` (`-E 128M -c 1 -E -1 -c 8`), or the path of
        a file with Tarazu's buckets (.ini). None keeps the stripe count that such a file had before.

    Raises
    ------
    InputError
        No file has a known name and size, or the layout is invalid.
    """
    if is_layout_file(layout):
        layout = parse_buckets(read_text(Path(str(layout))), str(layout)).to_options()
    creations = [
        Creation(
            path=file.path, size=file.size, rank=file.rank, layout=layout if layout is not None else file.stripe_count
        )
        for file in prediction.creations
        if file.path is not None and file.size is not None
    ]
    if not creations:
        todo = "add more runs (`vani history add`), or accept less probable sizes (--least 0)"
        raise InputError("no file has both a known name and size", where=prediction.application, todo=todo)
    letters = prediction.application
    name = "".join(sign if sign.isprintable() and sign not in "\"'`\\$" else "_" for sign in letters)
    processes = max(1, prediction.processes)
    return Jobs(jobs=[PlannedJob(name=name, nodes=1, processes=processes, creations=creations)])


def creations_rows(prediction: CreationsPrediction, layout: str | None = None) -> list[interactions.Interaction]:
    """Rows for the interaction database, one per file extent; Lustre or a plan chooses the OSTs.

    Parameters
    ----------
    layout
        As in `creations_jobs`; -1 (all OSTs) is refused, since the number is unknown before a plan.

    Raises
    ------
    InputError
        As in `creations_jobs`, or the database does not accept a file.
    """
    files = files_to_place(creations_jobs(prediction, layout), {}, 1, prediction.application, as_printed=False)
    if any(part.count == -1 for file in files[:1] for part in file.layout.components):
        what = "is on all OSTs, but their number is not known"
        raise InputError(what, where="--layout", todo="give a stripe count")
    return interactions.refuse_contradictions(
        interactions.interaction_of(file.creation, extent, extent.settable, extent.count)
        for file in files
        for extent in file.extents
    )


class _Written(CreationsSettings):
    layout: Annotated[str | None, Option(metavar="LAYOUT")] = Field(
        None, description="Layout of each file: a stripe count, `-E ...`, or a file with Tarazu's buckets."
    )
    table: Annotated[Path | None, Option(metavar="FILE")] = Field(
        None, description="Also write the rows for `vani plan store`, a CSV."
    )
    jobs: Annotated[Path | None, Option(metavar="FILE")] = Field(
        None, description="Also write a jobs.yaml for `vani plan place`."
    )


@click.command("creations")
@click.argument("application", metavar="APP")
@user_options("The same as USER; by default the user of the latest run.")
@settings_options(_Written)
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def command(application: str, user: str | None, settings: _Written, kind: str | None, output: Path | None) -> None:
    """Predict the files that the next run of APP will create: rank, size and probability.

    With --begun, it predicts the rest of a run in progress. --table and --jobs get files of known name and size;
    others keep the default layout.
    """
    files = [path for path in (output, settings.table, settings.jobs) if path is not None]
    check_outputs(files or [None], [settings.begun, Path(settings.db) if settings.db else None])
    prediction = history_creations(application, user, settings)
    texts: list[tuple[str, Path | None]] = []
    if settings.table is not None:
        texts.append((interactions.write_csv(creations_rows(prediction, settings.layout)), settings.table))
    if settings.jobs is not None:
        texts.append((dumps(creations_jobs(prediction, settings.layout)), settings.jobs))
    emit_all([*texts, (FORMATS.render(FORMATS.chosen(kind, output, "text"), prediction), output)])
