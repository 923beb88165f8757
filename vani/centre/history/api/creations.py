"""Implements `vani history creations`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.placement_library.interactions import Interaction as Row
from vani.centre.placement_library.interactions import refuse_contradictions
from vani.centre.plan.inputs import files_to_place, is_layout_file
from vani.centre.plan.schema.jobs import Creation, Jobs, PlannedJob
from vani.centre.prediction.creations.choice import Follower, choose_next, remembered
from vani.centre.prediction.creations.expected_files import expected_files
from vani.centre.prediction.creations.partial_run import read_partial_run
from vani.centre.prediction.creations.predictors import predictors
from vani.centre.prediction.creations.series import nothing, unpack_creations
from vani.centre.prediction.schema import CreationsPrediction
from vani.errors import InputError, StoreError, one_line
from vani.models.tarazu_layout import parse_buckets
from vani.schema.document import read_text
from vani.schema.settings import PathLike
from vani.units import counted

if TYPE_CHECKING:
    import sqlalchemy as sa

    from vani.centre.placement_library.interactions import Interaction
    from vani.centre.prediction.creations.choice import Chosen
    from vani.centre.prediction.creations.series import Creations

_SEARCHED_RUNS = 256
"""Number of latest runs of a category that are searched for known creations."""


def history_creations(
    application: str,
    user: str | None = None,
    processes: int | None = None,
    *,
    db: PathLike | None = None,
    method: str | None = None,
    begun: PathLike | None = None,
    least: float = 0.5,
) -> CreationsPrediction:
    """Predict which files an application's next run creates, or a running one has yet to create.

    Parameters
    ----------
    user, processes
        The category; None takes that of the latest run.
    db
        As in `history_top`.
    method
        Name of a predictor; None takes the one that predicted the last runs best.
    begun
        Files that the run has created so far: its trace, or a CSV with the columns `path`, `rank`, `size` and
        `stripe_count`, of which only `size` is required. None: the run has not started.
    least
        Probability below which a size is reported as unknown.

    Raises
    ------
    InputError
        There is no history, no such run or no run with known creations in it, or the method is unknown.
    """
    if method is not None and method not in predictors():
        known = ", ".join(predictors())
        raise InputError(f"no method {one_line(method)!r}", where="--method", todo=f"there are {known}")
    if not 0 <= least <= 1:
        raise InputError(f"is {least:g}", where="--least", todo="give a probability, 0 to 1")
    seen = nothing() if begun is None else read_partial_run(Path(begun))
    if begun is not None and not len(seen):
        raise InputError("has no files", where=begun, todo="leave --begun out for a run that has not started")
    with Store(db).reading() as connection:
        categories = read.categories_of(connection, application, user, processes)
        if not categories:
            raise InputError(
                f"no runs of {one_line(application)} by this user or with this number of processes",
                todo="`vani history top` lists applications and users",
            )
        whose, wide, number, _ = categories[0]
        past = remembered(_past(connection, application, whose, wide))
        hidden = read.fact(connection, "names") is not None
    if not past:
        raise InputError(
            f"the files that {one_line(application)} created are not known for any of {counted(number, 'run')}",
            todo="`vani history add` traces, logs or profiles that list all files",
        )
    names = None if method is None else [method]
    if begun is None:
        chosen = choose_next(past, names)
    else:
        follower = Follower(past, names)
        follower.see_all(seen)
        chosen = follower.rest(seen)
    notes = _notes(categories, chosen, hidden=hidden)
    return _document(application, (whose, wide), past, seen, chosen, least, notes)


def _past(connection: sa.Connection, application: str, user: str, processes: int) -> list[Creations]:
    digests = read.latest_digests(connection, application, user, processes, _SEARCHED_RUNS)
    packed = read.creations_of(connection, digests)
    past = []
    for digest in digests:
        if digest in packed:
            try:
                past.append(unpack_creations(packed[digest]))
            except ValueError as error:
                raise StoreError(
                    "has creations that cannot be read", where=digest[:12], todo="add the run again"
                ) from error
    return past


def _notes(
    categories: list[tuple[str, int, int, float | None]], chosen: Chosen, *, hidden: bool
) -> list[str]:
    notes = []
    if len(categories) > 1:
        notes.append(
            f"{counted(len(categories), 'category')} of user and processes: this is the latest run's"
        )
    if not chosen.runs:
        notes.append("only one run is known: the spread of later runs is not known")
    if hidden:
        notes.append("the history is anonymised: paths are hashes, and files cannot be named")
    return notes


def _document(
    application: str,
    category: tuple[str, int],
    past: list[Creations],
    begun: Creations,
    chosen: Chosen,
    least: float,
    notes: list[str],
) -> CreationsPrediction:
    return CreationsPrediction(
        version=vani.__version__,
        outside=[],
        notes=notes,
        application=application,
        user=category[0],
        processes=category[1],
        task="rest_of_run" if len(begun) else "next_run",
        runs=len(past),
        begun=len(begun),
        method=chosen.method,
        law=chosen.foreseen.law,
        held_out=chosen.runs,
        judged=dict(chosen.accuracy),
        creations=expected_files(past, begun, chosen, least),
    )


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
    wanted = [
        creation
        for creation in prediction.creations
        if creation.path is not None and creation.size is not None
    ]
    if not wanted:
        raise InputError(
            "no file has both a known name and size",
            where=prediction.application,
            todo="add more runs (`vani history add`), or accept less probable sizes (--least 0)",
        )
    name = "".join(
        letter if letter.isprintable() and letter not in "\"'`\\$" else "_"
        for letter in prediction.application
    )
    creations = [
        Creation(
            path=str(creation.path),
            size=creation.size or 0,
            rank=creation.rank,
            layout=layout if layout is not None else creation.stripe_count,
        )
        for creation in wanted
    ]
    return Jobs(
        jobs=[PlannedJob(name=name, nodes=1, processes=max(1, prediction.processes), creations=creations)]
    )


def creations_rows(prediction: CreationsPrediction, layout: str | None = None) -> list[Interaction]:
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
    files = files_to_place(
        creations_jobs(prediction, layout), {}, 1, prediction.application, as_printed=False
    )
    if any(part.count == -1 for file in files[:1] for part in file.layout.components):
        raise InputError(
            "is on all OSTs, but their number is not known", where="--layout", todo="give a stripe count"
        )
    return refuse_contradictions(
        Row(
            file=file.creation.path,
            file_size=file.creation.size,
            extent_id=extent.number,
            extent_start=extent.start,
            extent_end=extent.end if extent.end > extent.start else None,
            stripe_size=extent.settable,
            stripe_count=extent.count,
            mpi_rank=file.creation.rank,
            osts=(),
        )
        for file in files
        for extent in file.extents
    )
