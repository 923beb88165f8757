"""What `vani model fit` and `vani model evaluate` do, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import vani
from vani.api.given import PathLike
from vani.errors import InputError
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.history.write_time.choice import Fitted
    from vani.history.write_time.samples import Floats, Samples
    from vani.models.write_time.judged import Evaluated
    from vani.schema.write_model import WriteModel

__all__ = ["model_evaluate", "model_fit"]

MOST_WIDTH: Final = 3.0
"""A model whose predictions are off by more, either way, for one write in ten is not written."""

Machine = Literal["cetus", "titan"]


def model_fit(
    samples: PathLike,
    *,
    scale: str = "nodes",
    method: str | None = None,
    system: Machine | None = None,
) -> WriteModel:
    """Fit a model of write times to samples.

    Parameters
    ----------
    samples
        CSV; see `vani.history.write_time.samples.read_samples`.
    scale
        Column by which samples are small or large.
    method
        Its name; None: the one that is best on the largest scale without having seen it.
    system
        Machine whose features of Xie et al. are used; None: loads of the columns.

    Raises
    ------
    InputError
        Samples that cannot be used, or that no method explains.
    """
    from vani.history.write_time.choice import choose  # noqa: PLC0415 - heavy
    from vani.schema.write_model import Envelope, JudgedMethod  # noqa: PLC0415
    from vani.schema.write_model import WriteModel as Document  # noqa: PLC0415

    read, scales = _read(samples, scale)
    names = _known(method)
    found = choose(_prepared(read, system), scales, names)
    _refuse_unexplained(found, samples)
    return Document(
        version=vani.__version__,
        method=found.method,
        system=system,
        scale=scale,
        samples=len(read),
        held_out=len(found.judged[0].ratios),
        columns={
            name: Envelope(low=float(column.min()), high=float(column.max()))
            for name, column in read.numbers.items()
        },
        words={name: sorted(set(column.tolist())) for name, column in read.words.items()},
        low=found.low,
        high=found.high,
        judged=[
            JudgedMethod(
                method=one.method, error=one.error, within_20=one.within(0.2), within_30=one.within(0.3)
            )
            for one in found.judged
        ],
        parameters=found.parameters,
    )


def model_evaluate(
    samples: PathLike,
    up_to: float | str,
    *,
    scale: str = "nodes",
    system: Machine | None = None,
) -> Evaluated:
    """Fit all methods to the scales up to one, and hold them against the larger ones.

    Raises
    ------
    InputError
        Samples that cannot be used, or none on one side of `up_to`.
    """
    from vani.history.write_time.choice import choose, judge  # noqa: PLC0415 - heavy
    from vani.history.write_time.methods import methods  # noqa: PLC0415
    from vani.models.write_time.judged import Evaluated as Found  # noqa: PLC0415

    read, scales = _read(samples, scale)
    limit = _limit(up_to)
    small = scales <= limit
    if small.all() or not small.any():
        which = "no" if small.all() else "all"
        raise InputError(
            f"{which} samples are larger than {limit:g}",
            where="--up-to",
            todo=f"{scale} has {_shown(scales)}",
        )
    prepared = _prepared(read, system)
    train, test = prepared.only(small), prepared.only(~small)
    found = choose(train, scales[small])
    held = scales[~small]
    whole = []
    for name in methods():
        try:
            whole.append(judge(name, train, scales[small], test))
        except InputError:
            continue
    ratios = test.seconds / found.predict(test)
    return Found(
        scale=scale,
        trained_on=len(train),
        by_scale={
            float(one): [judged.only(held == one) for judged in whole] for one in sorted(set(held.tolist()))
        },
        chosen=found.method,
        low=found.low,
        high=found.high,
        covered=float(((ratios >= found.low) & (ratios <= found.high)).mean()),
    )


def _read(samples: PathLike, scale: str) -> tuple[Samples, Floats]:
    from vani.history.write_time.samples import read_samples  # noqa: PLC0415

    read = read_samples(Path(samples))
    return read, read.of_scale(scale)


def _prepared(samples: Samples, system: Machine | None) -> Samples:
    if system is None:
        return samples
    from vani.history.write_time.paper_columns import with_paper_features  # noqa: PLC0415
    from vani.models.write_time.published import PUBLISHED  # noqa: PLC0415

    return with_paper_features(samples, PUBLISHED[system].pool)


def _known(method: str | None) -> Sequence[str] | None:
    if method is None:
        return None
    from vani.history.write_time.methods import methods  # noqa: PLC0415

    if method not in methods():
        raise InputError(f"no method {method!r}", where="--method", todo=f"known are {', '.join(methods())}")
    return [method]


def _refuse_unexplained(found: Fitted, samples: PathLike) -> None:
    if found.low < 1 / MOST_WIDTH or found.high > MOST_WIDTH:
        raise InputError(
            f"no method explains the largest scale: the best, {found.method}, is off by a factor of "
            f"{max(1 / found.low, found.high):.1f}; no model is written",
            where=samples,
            todo="measure more scales, or leave out writes that end in memory",
        )


def _limit(up_to: float | str) -> float:
    try:
        return float(parse_bytes(up_to) if isinstance(up_to, str) else up_to)
    except (ValueError, OverflowError):
        raise InputError(f"is {up_to!r}", where="--up-to", todo="give a number or a size") from None


def _shown(scales: Floats) -> str:
    return ", ".join(f"{one:g}" for one in sorted(set(scales.tolist()))[:20])
