"""Samples of writes for `vani model fit` and `vani model evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vani.centre.history.rows import StoredRun
from vani.centre.history.runs import read, tables
from vani.centre.history.runs.store import Store
from vani.centre.write_time.models.published import PUBLISHED
from vani.centre.write_time.paper_columns import with_paper_features
from vani.centre.write_time.samples import converged
from vani.centre.write_time.sources import read_samples, writes_of
from vani.errors import InputError, one_line
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.write_time.samples import Floats, Samples, Writes

Machine = Literal["cetus", "titan"]

_SCALES: Final = ("nodes", "processes", "bytes")


@dataclass(frozen=True, eq=False)
class Measured:
    """Samples of writes.

    Parameters
    ----------
    where
        Source of the samples, for messages.
    scale
        Column that measures their scale; `scales` contains each sample's value.
    unconverged
        Samples whose repetitions vary too much for a mean, and their scales in `unconverged_scales`.
    """

    where: str
    samples: Samples
    scale: str
    scales: Floats
    confidence: float
    unconverged: Samples
    unconverged_scales: Floats


def measured(
    samples: PathLike | Sequence[PathLike],
    *,
    scale: str | None,
    confidence: float,
    application: str | None,
    user: str | None,
    db: PathLike | None,
) -> Measured:
    """Read samples from files and a history, and separate those whose mean has not converged.

    Raises
    ------
    InputError
        No source is named, or the samples cannot be used.
    """
    if not 0.5 <= confidence < 1:
        raise InputError(f"is {confidence:g}", where="--confidence", todo="give 0.5 to less than 1")
    paths = [Path(samples)] if isinstance(samples, (str, Path)) else [Path(sample) for sample in samples]
    runs = [] if application is None else [_of_history(application, user, db)]
    if application is None and (user is not None or db is not None):
        raise InputError("is for runs of a history", where="--user or --database", todo="name --application")
    if not paths and not runs:
        raise InputError("no samples", todo="name files of writes, or --application of a history")
    read = read_samples(paths, runs)
    where = ", ".join([*map(str, paths[:2]), *(name for name, _ in runs)]) + (
        ", ..." if len(paths) > 2 else ""
    )
    if scale is None:
        scale = next((name for name in _SCALES if name in read.numbers), "nodes")
    scales = read.of_scale(scale)
    known = converged(read, confidence)
    return Measured(
        where=where,
        samples=read.only(known),
        scale=scale,
        scales=scales[known],
        confidence=confidence,
        unconverged=read.only(~known),
        unconverged_scales=scales[~known],
    )


def prepared(samples: Samples, system: Machine | None) -> Samples:
    """The samples with the features of the machine, if one is named."""
    if system is None:
        return samples
    return with_paper_features(samples, PUBLISHED[system].pool)


def _of_history(application: str, user: str | None, db: PathLike | None) -> tuple[str, Writes]:
    name = f"runs of {one_line(application)}"
    with Store(db).reading() as connection:
        of = read.whose(tables.runs, application, user)
        runs = list(read.rows(connection, StoredRun, of, (tables.runs.c.submitted, tables.runs.c.digest)))
    if not runs:
        whose = "" if user is None else f" by {one_line(user)}"
        raise InputError(
            f"no runs of {one_line(application)}{whose}", todo="`vani history top` lists applications and users"
        )
    return name, writes_of(runs, name)
