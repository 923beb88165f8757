"""Fits a model of write times to samples, and tests all methods on larger scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from pydantic import BeforeValidator, Field

import vani
from vani.centre.columns import Floats
from vani.centre.write_time import published
from vani.centre.write_time.choice import CrossValidation, Fitted, choose, score_all, stage_costs
from vani.centre.write_time.methods import METHODS
from vani.centre.write_time.samples import CONFIDENCE, Samples, converged, read_samples, writes_of
from vani.centre.write_time.schema import Envelope, JudgedMethod, RivalMethod, WriteModel
from vani.errors import InputError, one_line
from vani.schema.settings import Option, PathLike, Settings
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.centre.write_time.samples import Writes

# The paper's features as columns of samples, for known file systems and node placements.

_GPFS = {"io": ("s_io", "n_io"), "bridge": ("s_b", "n_b"), "link": ("s_l", "n_l")}
_LUSTRE = {"router": ("s_r", "n_r")}


def with_paper_features(samples: Samples, pool: published.GpfsPool | published.LustrePool) -> Samples:
    """Replace all numbers with the features of section III-A of Xie et al.

    Needs the columns `nodes`, `processes_per_node`, `bytes_per_process`, on Lustre `stripe_count`, and for each
    kind of component the largest group of the job's nodes and the number of components used: `s_r`, `n_r`, or
    `s_io`, `n_io`, `s_b`, `n_b`, `s_l`, `n_l`.

    Raises
    ------
    InputError
        A column is missing.
    """
    wanted = _LUSTRE if isinstance(pool, published.LustrePool) else _GPFS
    names = ["nodes", "processes_per_node", "bytes_per_process", *(name for pair in wanted.values() for name in pair)]
    names += ["stripe_count"] if isinstance(pool, published.LustrePool) else []
    missing = [name for name in names if name not in samples.numbers]
    if missing:
        raise InputError(f"no column {missing[0]!r}", where="samples", todo="the features of this machine need it")
    numbers: Mapping[str, Any] = samples.numbers
    megabytes = numbers["bytes_per_process"] / 1e6
    stripes = numbers.get("stripe_count", np.ones(len(samples)))
    patterns = published.Write(numbers["nodes"], numbers["processes_per_node"], megabytes, stripes)
    placed = {kind: published.Groups(numbers[largest], numbers[used]) for kind, (largest, used) in wanted.items()}
    if isinstance(pool, published.LustrePool):
        features = published.lustre_features(patterns, pool, **placed)
    else:
        features = published.gpfs_features(patterns, pool, **placed)
    columns = {name: np.asarray(value, dtype=float) for name, value in features.items()}
    return samples.with_numbers(columns)


# Samples of writes for `vani model fit` and `vani model evaluate`.

Machine = Literal["cetus", "titan"]


def _limit(up_to: object) -> float:
    try:
        return float(parse_bytes(up_to) if isinstance(up_to, str) else up_to)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        raise ValueError("is neither a number nor a size") from None


class SampleSettings(Settings):
    """Which samples are used, and how."""

    scale: Annotated[str | None, Option(metavar="COLUMN")] = Field(
        None, description="Column of the scale; by default nodes, else processes, else bytes."
    )
    system: Machine | None = Field(
        None, description="Machine whose features (Xie et al.) are used instead of the loads of columns."
    )
    confidence: Annotated[float, Field(ge=0.5, lt=1), Option(metavar="P")] = Field(
        CONFIDENCE,
        description="Required confidence that the mean of repetitions is within a tenth of the true mean; other "
        "samples are set aside.",
    )
    application: Annotated[str | None, Option(metavar="APP")] = Field(
        None, description="Also use the writing runs of APP in a history."
    )
    user: Annotated[str | None, Option(metavar="USER")] = Field(None, description="Only runs of this user.")


class FitSettings(SampleSettings):
    """How a model is fitted."""

    method: Annotated[str | None, Option(metavar="NAME")] = Field(
        None, description="Use this method instead of the best one."
    )


class EvaluateSettings(SampleSettings):
    """How methods are compared."""

    up_to: Annotated[float, BeforeValidator(_limit), Option(metavar="VALUE")] = Field(
        description="The largest scale to fit."
    )

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
    unconverged: Samples
    unconverged_scales: Floats


def measured(samples: PathLike | Sequence[PathLike], settings: SampleSettings, db: PathLike | None) -> Measured:
    """Read samples from files and a history, and separate those whose mean has not converged.

    Raises
    ------
    InputError
        No source is named, or the samples cannot be used.
    """
    paths = [Path(samples)] if isinstance(samples, (str, Path)) else [Path(sample) for sample in samples]
    application = settings.application
    runs = [] if application is None else [_of_history(application, settings.user, db)]
    if application is None and (settings.user is not None or db is not None):
        raise InputError("is for runs of a history", where="--user or --database", todo="name --application")
    if not paths and not runs:
        raise InputError("no samples", todo="name files of writes, or --application of a history")
    read = read_samples(paths, runs)
    where = ", ".join([*map(str, paths[:2]), *(name for name, _ in runs), *(["..."] if len(paths) > 2 else [])])
    scale = settings.scale or next((name for name in _SCALES if name in read.numbers), "nodes")
    scales = read.of_scale(scale)
    known = converged(read, settings.confidence)
    return Measured(where, read.only(known), scale, scales[known], read.only(~known), scales[~known])


def prepared(samples: Samples, system: Machine | None) -> Samples:
    """The samples with the features of the machine, if one is named."""
    if system is None:
        return samples
    return with_paper_features(samples, published.PUBLISHED[system].pool)


def _of_history(application: str, user: str | None, db: PathLike | None) -> tuple[str, Writes]:
    from vani.centre.history.rows import StoredRun  # noqa: PLC0415 - loads SQL, an extra
    from vani.centre.history.runs import read, tables  # noqa: PLC0415
    from vani.centre.history.runs.store import Store  # noqa: PLC0415

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


# Implements `vani model fit` and `vani model evaluate`.

MAX_WIDTH: Final = 3.0
"""Factor above which a model is refused, if one write in ten is off by more in either direction."""
LEAST: Final = 8
"""Minimum number of samples for a fit."""


def model_fit(
    samples: PathLike | Sequence[PathLike] = (), settings: FitSettings | None = None, *,
    db: PathLike | None = None, **fields: Any,
) -> WriteModel:
    """Fit a model of write times to samples.

    Parameters
    ----------
    samples
        Files of measured writes: CSV (see `vani.centre.write_time.samples.read_csv`), or IOR output as text or
        JSON.
    db
        The history with the runs of `application`.

    Raises
    ------
    InputError
        The samples cannot be used, or no method explains them.
    """
    settings = FitSettings.of(settings, **fields)
    names = _known(settings.method)
    measurements = measured(samples, settings, db)
    read = measurements.samples
    _refuse_few(measurements)
    known = prepared(read, settings.system)
    fitted = choose(known, measurements.scales, names)
    _refuse_unexplained(fitted, measurements.where)
    return WriteModel(
        version=vani.__version__,
        method=fitted.method,
        system=settings.system,
        scale=measurements.scale,
        samples=len(read),
        unconverged=len(measurements.unconverged),
        confidence=settings.confidence,
        held_out=fitted.held_out,
        columns={
            name: Envelope(low=float(column.min()), high=float(column.max()))
            for name, column in read.numbers.items()
        },
        words={name: sorted(set(column.tolist())) for name, column in read.words.items()},
        low=fitted.low,
        high=fitted.high,
        offset=fitted.offset,
        rivals=[RivalMethod(method=name, parameters=parameters) for name, parameters in fitted.rivals.items()],
        judged=[
            JudgedMethod(
                method=score.method, error=score.error, within_20=score.within(0.2), within_30=score.within(0.3)
            )
            for score in fitted.scores
        ],
        stages=stage_costs(fitted, known, measurements.scales),
        parameters=fitted.parameters,
    )


def model_evaluate(
    samples: PathLike | Sequence[PathLike] = (), settings: EvaluateSettings | None = None, *,
    db: PathLike | None = None, **fields: Any,
) -> CrossValidation:
    """Fit all methods to scales up to `up_to`, and test them on the larger ones.

    The other parameters are those of `model_fit`.

    Raises
    ------
    InputError
        The samples cannot be used, or there are none on one side of `up_to`.
    """
    settings = EvaluateSettings.of(settings, **fields)
    limit = settings.up_to
    measurements = measured(samples, settings, db)
    _refuse_few(measurements)
    scales = measurements.scales
    small = scales <= limit
    if small.all() or not small.any():
        which = "no" if small.all() else "all"
        known_scales = ", ".join(f"{scale:g}" for scale in np.unique(scales)[:20])
        what = f"{which} samples are larger than {limit:g}"
        raise InputError(what, where="--up-to", todo=f"{measurements.scale} has {known_scales}")
    known, unsure = (prepared(some, settings.system) for some in (measurements.samples, measurements.unconverged))
    train, test = known.only(small), known.only(~small)
    chosen = choose(train, scales[small])
    test_scales = scales[~small]
    whole = score_all(train, scales[small], test)
    beyond = measurements.unconverged_scales > limit
    least, most = chosen.interval(test, test_scales / scales[small].max())
    expected = np.maximum(chosen.predict(test), 1e-6)
    return CrossValidation(
        scale=measurements.scale,
        trained_on=len(train),
        by_scale={
            scale: [score.only(test_scales == scale) for score in whole] for scale in np.unique(test_scales).tolist()
        },
        unconverged=score_all(train, scales[small], unsure.only(beyond)) if beyond.any() else [],
        left_out=int((~beyond).sum()),
        chosen=chosen.method,
        low=float(np.median(least / expected)),
        high=float(np.median(most / expected)),
        covered=float(((test.seconds >= least) & (test.seconds <= most)).mean()),
    )


def _refuse_few(measurements: Measured) -> None:
    """Raise an error that explains too few samples: they have not converged, or are fewer than the columns need."""
    count, unsure = len(measurements.samples), len(measurements.unconverged)
    if count < LEAST and unsure:
        what = f"{unsure:,} of {count + unsure:,} samples have not converged"
        raise InputError(what, where=measurements.where, todo="repeat these writes more often, or lower --confidence")
    columns = [*measurements.samples.numbers.values(), *measurements.samples.words.values()]
    differ = sum(len(set(column.tolist())) > 1 for column in columns)
    if LEAST <= count <= differ:
        what = f"{count:,} samples differ in {differ:,} columns: any model would fit them"
        raise InputError(what, where=measurements.where, todo="measure more writes, or leave columns out")


def _known(method: str | None) -> Sequence[str] | None:
    if method is None:
        return None
    if method not in METHODS:
        raise InputError(f"no method {method!r}", where="--method", todo=f"known are {', '.join(METHODS)}")
    return [method]


def _refuse_unexplained(best: Fitted, where: str) -> None:
    if not (best.low >= 1 / MAX_WIDTH and best.high <= MAX_WIDTH):
        what = f"no method explains the largest scale: the best, {best.method}, is off by a factor of "
        what += f"{max(1 / best.low, best.high):.1f}; no model is written"
        raise InputError(what, where=where, todo="measure more scales, or leave out writes that are cached in memory")
