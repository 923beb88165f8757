"""Predictors of creations, discovered in the modules of this package; plain ones come first, also in ties."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from vani.centre.prediction.creations.series import Creations, Foreseen

__all__ = ["Predictor", "predictors"]


@dataclass(frozen=True)
class Predictor:
    """A method to predict creations; each module lists its own in `PREDICTORS`.

    Attributes
    ----------
    about
        Its assumption, in a few words.
    order
        Its position in tables.
    predict
        Called with the past runs (the oldest first), the beginning of the run that follows them, and the number of
        creations wanted (None: all until the end of the run); returns the creations after that beginning. Past runs
        or beginning may be empty, but not both.
    costly
        Whether it takes long; such predictors are tried only if the others do badly.
    """

    name: str
    about: str
    order: int
    predict: Callable[[Sequence[Creations], Creations, int | None], Foreseen]
    costly: bool = False


@functools.cache
def predictors() -> dict[str, Predictor]:
    """All predictors by name, plain ones first."""
    listed = [
        predictor
        for module in iter_modules(__path__)
        for predictor in import_module(f"{__name__}.{module.name}").PREDICTORS
    ]
    return {predictor.name: predictor for predictor in sorted(listed, key=lambda predictor: predictor.order)}
