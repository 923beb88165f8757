"""Predictors of creations, a file each, found by themselves; plain ones have low numbers and win ties.

Each file has `NAME`, `ABOUT`, `ORDER`, and `predict(past, so_far, count)`: what is created after `so_far`, the
beginning of a run that follows the runs of `past` (the oldest first; may be empty, as `so_far` may, but not both).
`count` is the number of creations wanted; None: all until the end of the run. `COSTLY` ones are tried where the others
do badly.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

__all__ = ["predictors"]


@functools.cache
def predictors() -> dict[str, ModuleType]:
    """All predictors by name, the plain ones first."""
    found = [import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__)]
    return {one.NAME: one for one in sorted((m for m in found if hasattr(m, "NAME")), key=lambda m: m.ORDER)}
