"""Methods to predict write times, discovered in the modules of this package; plain ones are preferred in ties."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from vani.centre.write_time.samples import Floats, Samples
from vani.centre.write_time.stages import Kinds

__all__ = ["Method", "Parameters", "Refit", "methods"]

Parameters = dict[str, Any]
"""Plain data that a document can store."""
Refit = Callable[[Parameters, Samples, Floats, Kinds], dict[str, float]]


@dataclass(frozen=True)
class Method:
    """A method to predict write times; each module lists its own in `METHODS`.

    Attributes
    ----------
    order
        Its position in tables.
    fit
        Called with samples, their scales, shape (samples,), and the settings in text columns; returns the
        parameters.
    predict
        Called with parameters, samples and settings; returns seconds, shape (samples,).
    refit
        For methods whose coefficients are costs of stages: estimates these costs from other samples, in seconds per
        unit of load. Called with parameters, samples, scales and settings.
    """

    name: str
    order: int
    fit: Callable[[Samples, Floats, Kinds], Parameters]
    predict: Callable[[Parameters, Samples, Kinds], Floats]
    refit: Refit | None = None


@functools.cache
def methods() -> dict[str, Method]:
    """All methods by name, plain ones first."""
    listed = [
        method
        for module in iter_modules(__path__)
        for method in import_module(f"{__name__}.{module.name}").METHODS
    ]
    return {method.name: method for method in sorted(listed, key=lambda method: method.order)}
