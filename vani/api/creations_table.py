"""A prediction of creations made ready for plans: the rows of Tarazu's database, and jobs for `vani plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.errors import InputError

if TYPE_CHECKING:
    from vani.database.interactions import Interaction
    from vani.schema.jobs import Jobs
    from vani.schema.prediction import CreationsPrediction

__all__ = ["creations_jobs", "creations_rows"]


def creations_jobs(prediction: CreationsPrediction, layout: str | None = None) -> Jobs:
    """A job that creates the files whose names and sizes are known.

    Parameters
    ----------
    layout
        Of each file: a stripe count, options of `lfs setstripe` (`-E 128M -c 1 -E -1 -c 8`), or the path of a file with
        Tarazu's buckets (.ini); None: the stripe count that such a file had before.

    Raises
    ------
    InputError
        No file's name and size are known, or a layout that is none.
    """
    from vani.models.tarazu_layout import parse_buckets  # noqa: PLC0415
    from vani.plan.creations import is_layout_file  # noqa: PLC0415
    from vani.schema.document import read_text  # noqa: PLC0415
    from vani.schema.jobs import Creation, PlannedJob  # noqa: PLC0415
    from vani.schema.jobs import Jobs as Document  # noqa: PLC0415

    if is_layout_file(layout):
        layout = parse_buckets(read_text(Path(str(layout))), str(layout)).to_options()
    wanted = [one for one in prediction.creations if one.path is not None and one.size is not None]
    if not wanted:
        raise InputError(
            "of no file both name and size are known",
            where=prediction.application,
            todo="add more runs (`vani history add`), or take less probable sizes (--least 0)",
        )
    name = "".join(
        one if one.isprintable() and one not in "\"'`\\$" else "_" for one in prediction.application
    )
    creations = [
        Creation(
            path=str(one.path),
            size=one.size or 0,
            rank=one.rank,
            layout=layout if layout is not None else one.stripe_count,
        )
        for one in wanted
    ]
    return Document(
        jobs=[PlannedJob(name=name, nodes=1, processes=max(1, prediction.processes), creations=creations)]
    )


def creations_rows(prediction: CreationsPrediction, layout: str | None = None) -> list[Interaction]:
    """The rows of the interaction database, one per extent of a file; OSTs are left to Lustre, or to a plan.

    Parameters
    ----------
    layout
        As in `creations_jobs`; a count of -1 (all OSTs) is not known before a plan, and refused.

    Raises
    ------
    InputError
        As in `creations_jobs`, or files that the database does not take.
    """
    from vani.database.interactions import Interaction as Row  # noqa: PLC0415
    from vani.database.interactions import refuse_contradictions  # noqa: PLC0415
    from vani.plan.creations import files_to_place  # noqa: PLC0415

    files = files_to_place(
        creations_jobs(prediction, layout), {}, 1, prediction.application, as_printed=False
    )
    if any(part.count == -1 for file in files[:1] for part in file.layout.components):
        raise InputError(
            "lies on all OSTs, whose number is not known", where="--layout", todo="give a stripe count"
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
