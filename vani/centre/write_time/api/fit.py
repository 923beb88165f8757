"""Implements `vani model fit` and `vani model evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

import vani
from vani.centre.write_time.api.samples import Machine, Measured, measured, prepared
from vani.centre.write_time.choice import choose, score_all
from vani.centre.write_time.methods import methods
from vani.centre.write_time.models.cross_validation import CrossValidation
from vani.centre.write_time.schema import Envelope, JudgedMethod, RivalMethod, StageCost, WriteModel
from vani.centre.write_time.stage_costs import stage_costs
from vani.errors import InputError
from vani.schema.settings import PathLike
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.centre.write_time.choice import Fitted
    from vani.centre.write_time.samples import Floats

MOST_WIDTH: Final = 3.0
"""Factor above which a model is refused, if one write in ten is off by more in either direction."""
LEAST: Final = 8
"""Minimum number of samples for a fit."""


def model_fit(
    samples: PathLike | Sequence[PathLike] = (),
    *,
    scale: str | None = None,
    method: str | None = None,
    system: Machine | None = None,
    confidence: float = 0.9,
    application: str | None = None,
    user: str | None = None,
    db: PathLike | None = None,
) -> WriteModel:
    """Fit a model of write times to samples.

    Parameters
    ----------
    samples
        Files of measured writes: CSV (see `vani.centre.write_time.csv_file.read_csv`), or IOR output as text or
        JSON.
    scale
        Column that measures the scale of a sample; None takes the first present of `nodes`, `processes` and
        `bytes`.
    method
        Name of a method; None takes the one that best predicts the largest scales when they are held out.
    system
        Machine whose features (Xie et al.) are used; None uses loads computed from the columns.
    confidence
        Required confidence that the mean of the repetitions is within a tenth of the true mean; other samples are
        left out.
    application, user, db
        Also use the runs of this application, and of this user, in a history.

    Raises
    ------
    InputError
        The samples cannot be used, or no method explains them.
    """
    names = _known(method)
    measurements = measured(
        samples, scale=scale, confidence=confidence, application=application, user=user, db=db
    )
    read = measurements.samples
    _refuse_few(measurements)
    known = prepared(read, system)
    fitted = choose(known, measurements.scales, names)
    _refuse_unexplained(fitted, measurements.where)
    return WriteModel(
        version=vani.__version__,
        method=fitted.method,
        system=system,
        scale=measurements.scale,
        samples=len(read),
        unconverged=len(measurements.unconverged),
        confidence=confidence,
        held_out=fitted.held_out,
        columns={
            name: Envelope(low=float(column.min()), high=float(column.max()))
            for name, column in read.numbers.items()
        },
        words={name: sorted(set(column.tolist())) for name, column in read.words.items()},
        low=fitted.low,
        high=fitted.high,
        offset=fitted.offset,
        rivals=[
            RivalMethod(method=name, parameters=parameters) for name, parameters in fitted.rivals.items()
        ],
        judged=[
            JudgedMethod(
                method=score.method,
                error=score.error,
                within_20=score.within(0.2),
                within_30=score.within(0.3),
            )
            for score in fitted.scores
        ],
        stages=[
            StageCost(stage=cost.stage, cost=cost.cost, low=cost.low, high=cost.high, share=cost.share)
            for cost in stage_costs(fitted, known, measurements.scales)
        ],
        parameters=fitted.parameters,
    )


def model_evaluate(
    samples: PathLike | Sequence[PathLike] = (),
    up_to: float | str = 0.0,
    *,
    scale: str | None = None,
    system: Machine | None = None,
    confidence: float = 0.9,
    application: str | None = None,
    user: str | None = None,
    db: PathLike | None = None,
) -> CrossValidation:
    """Fit all methods to scales up to `up_to`, and test them on the larger ones.

    The other parameters are those of `model_fit`.

    Raises
    ------
    InputError
        The samples cannot be used, or there are none on one side of `up_to`.
    """
    limit = _limit(up_to)
    measurements = measured(
        samples, scale=scale, confidence=confidence, application=application, user=user, db=db
    )
    _refuse_few(measurements)
    scales = measurements.scales
    small = scales <= limit
    if small.all() or not small.any():
        which = "no" if small.all() else "all"
        raise InputError(
            f"{which} samples are larger than {limit:g}",
            where="--up-to",
            todo=f"{measurements.scale} has {_shown(scales)}",
        )
    known, unsure = prepared(measurements.samples, system), prepared(measurements.unconverged, system)
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
            float(test_scale): [score.only(test_scales == test_scale) for score in whole]
            for test_scale in sorted(set(test_scales.tolist()))
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
        raise InputError(
            f"{unsure:,} of {count + unsure:,} samples have not converged",
            where=measurements.where,
            todo="repeat these writes more often, or lower --confidence",
        )
    columns = [*measurements.samples.numbers.values(), *measurements.samples.words.values()]
    differ = sum(len(set(column.tolist())) > 1 for column in columns)
    if LEAST <= count <= differ:
        raise InputError(
            f"{count:,} samples differ in {differ:,} columns: any model would fit them",
            where=measurements.where,
            todo="measure more writes, or leave columns out",
        )


def _known(method: str | None) -> Sequence[str] | None:
    if method is None:
        return None
    if method not in methods():
        raise InputError(f"no method {method!r}", where="--method", todo=f"known are {', '.join(methods())}")
    return [method]


def _refuse_unexplained(best: Fitted, where: str) -> None:
    if not (best.low >= 1 / MOST_WIDTH and best.high <= MOST_WIDTH):
        raise InputError(
            f"no method explains the largest scale: the best, {best.method}, is off by a factor of "
            f"{max(1 / best.low, best.high):.1f}; no model is written",
            where=where,
            todo="measure more scales, or leave out writes that are cached in memory",
        )


def _limit(up_to: float | str) -> float:
    try:
        return float(parse_bytes(up_to) if isinstance(up_to, str) else up_to)
    except (ValueError, OverflowError):
        raise InputError(f"is {up_to!r}", where="--up-to", todo="give a number or a size") from None


def _shown(scales: Floats) -> str:
    return ", ".join(f"{scale:g}" for scale in sorted(set(scales.tolist()))[:20])
