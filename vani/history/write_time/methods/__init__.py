"""Methods to predict write times, a file each, found by themselves; plain ones have low numbers and win ties.

Each file has `NAME`, `ABOUT`, `ORDER`, and

- `fit(samples, scale, known)`: parameters, plain data that a document can hold; `known` are the settings of columns of
  words
- `predict(parameters, samples, known)`: seconds, shape (samples,)
- `refit(parameters, samples, scale, known)`, where its coefficients are costs of stages: the cost of each by other
  samples, seconds per unit of its load
"""

from __future__ import annotations

import functools
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

__all__ = ["methods"]


@functools.cache
def methods() -> dict[str, ModuleType]:
    """All methods by name, the plain ones first."""
    found = [import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__)]
    return {one.NAME: one for one in sorted((m for m in found if hasattr(m, "NAME")), key=lambda m: m.ORDER)}
