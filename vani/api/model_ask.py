"""What `vani model predict --model` does, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import vani
from vani.api.given import PathLike
from vani.errors import InputError
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.history.write_time.samples import Samples
    from vani.schema.prediction import WriteTimePrediction
    from vani.schema.write_model import WriteModel

__all__ = ["model_ask"]

BEYOND: Final = 4.0
"""How far beyond the largest scale a model is asked: from 128 to 512 nodes is what Xie et al. tested."""
_NEAR: Final = 1.1


def model_ask(model: PathLike | WriteModel, asked: Mapping[str, str | float]) -> WriteTimePrediction:
    """Ask a fitted model for the time of one write.

    Parameters
    ----------
    asked
        A value for each column of the samples; sizes may be text such as `16GiB`.

    Raises
    ------
    InputError
        A value is missing, unknown or none, or the model is damaged.
    """
    from vani.schema.prediction import WriteTimePrediction as Document  # noqa: PLC0415
    from vani.schema.write_model import WriteModel as ModelDocument  # noqa: PLC0415

    where = str(model) if isinstance(model, (str, Path)) else "model"
    read = ModelDocument.load(model) if isinstance(model, (str, Path)) else model
    numbers, words = _values(read, asked)
    seconds = _seconds(read, numbers, words, where)
    outside = [
        f"{name} {numbers[name]:g}: the samples had {one.low:g} to {one.high:g}"
        for name, one in read.columns.items()
        if not one.low / _NEAR <= numbers[name] <= one.high * (BEYOND if _grows(name, read) else _NEAR)
    ]
    return Document(
        version=vani.__version__,
        outside=outside,
        notes=[
            f"of the {read.held_out:,} writes held out, nine of ten took {read.low:.2f} to {read.high:.2f} times what "
            "the method says"
        ],
        model=read.method,
        source=f"fitted to {read.samples:,} writes with {read.scale} up to {read.columns[read.scale].high:g}",
        write=None,
        asked={**numbers, **words},
        seconds=None if outside else seconds,
        low=None if outside else seconds * read.low,
        high=None if outside else seconds * read.high,
        ends=[],
    )


def _grows(name: str, model: WriteModel) -> bool:
    """Whether a column is the scale, or counts nodes and what they lie behind, which grows with it."""
    return name == model.scale or (
        model.system is not None and model.scale == "nodes" and name.startswith(("s_", "n_"))
    )


def _values(model: WriteModel, asked: Mapping[str, str | float]) -> tuple[dict[str, float], dict[str, str]]:
    known = [*model.columns, *model.words]
    for name in asked:
        if name not in known:
            raise InputError(
                f"the model has no column {name!r}", where="--set", todo=f"it has {', '.join(known)}"
            )
    for name in known:
        if name not in asked:
            raise InputError(f"no value of {name!r}", where="--set", todo=f"give --set {name}=...")
    numbers = {}
    for name in model.columns:
        try:
            numbers[name] = float(parse_bytes(value) if isinstance(value := asked[name], str) else value)
        except (ValueError, OverflowError):
            raise InputError(
                f"{name} is {asked[name]!r}", where="--set", todo="give a number or a size"
            ) from None
        if not 0 <= numbers[name] <= 1e30:
            raise InputError(f"{name} is {asked[name]}", where="--set", todo="give 0 or more")
    for name, met in model.words.items():
        if str(asked[name]) not in met:
            raise InputError(
                f"{name} is {asked[name]!r}", where="--set", todo=f"the samples had {', '.join(met)}"
            )
    return numbers, {name: str(asked[name]) for name in model.words}


def _seconds(model: WriteModel, numbers: Mapping[str, float], words: Mapping[str, str], where: str) -> float:
    import numpy as np  # noqa: PLC0415

    from vani.history.write_time.choice import Fitted  # noqa: PLC0415
    from vani.history.write_time.samples import Samples  # noqa: PLC0415

    one = Samples(
        {name: np.array([value]) for name, value in numbers.items()},
        {name: np.array([value]) for name, value in words.items()},
        np.ones(1),
    )
    fitted = Fitted(model.method, dict(model.parameters), model.words, model.low, model.high, ())
    try:
        with np.errstate(all="ignore"):
            found = float(fitted.predict(_prepared(one, model))[0])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"its parameters are not those of {model.method} ({type(error).__name__}: {error})",
            where=where,
            todo="fit it again",
        ) from error
    if not 0 < found < 1e12:
        raise InputError(f"predicts {found:g} seconds", where=where, todo="fit it again")
    return found


def _prepared(samples: Samples, model: WriteModel) -> Samples:
    if model.system is None:
        return samples
    from vani.history.write_time.paper_columns import with_paper_features  # noqa: PLC0415
    from vani.models.write_time.published import PUBLISHED  # noqa: PLC0415

    return with_paper_features(samples, PUBLISHED[model.system].pool)
