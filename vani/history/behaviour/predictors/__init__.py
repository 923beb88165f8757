"""Predictors of what comes next in a sequence of behaviours, a file each, found by themselves; plain ones come first.

Each file has `PREDICTORS`, a tuple of `Predictor`: a name, what it assumes, its place in tables, and `begin()`, which
makes a `Follower` of one category. A follower is shown the ids of a category's runs one after the other.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pkgutil import iter_modules

from vani.history.behaviour.follower import Predictor

__all__ = ["predictors"]


@functools.cache
def predictors() -> dict[str, Predictor]:
    """All predictors by name, the plain ones first; those whose library is not installed are left out."""
    found = [
        one
        for module in iter_modules(__path__)
        for one in import_module(f"{__name__}.{module.name}").PREDICTORS
    ]
    return {one.name: one for one in sorted(found, key=lambda one: one.order) if one.installed()}
