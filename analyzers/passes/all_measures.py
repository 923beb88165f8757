"""The measures of the second pass: those of the package, and those of plug-ins."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

from vani.analyzers.measures.survey import Survey
from vani.analyzers.passes import Measure, declared_result
from vani.errors import InputError
from vani.plug_ins import described, plug_ins

_PACKAGE = "vani.analyzers.measures"
_ENTRY_POINTS = "vani.analyzers"
_OTHER_PASSES = frozenset({"survey", "busy"})
"""Names of the measures of the first and the last pass."""


def all_measures() -> list[Measure[Any, Any]]:
    """An instance of each measure.

    Raises
    ------
    InputError
        A plug-in cannot be loaded, or its measure has another one's name.
    """
    measures: list[Measure[Any, Any]] = []
    for module in pkgutil.iter_modules(import_module(_PACKAGE).__path__):
        defining = import_module(f"{_PACKAGE}.{module.name}")
        for candidate in vars(defining).values():
            own = isinstance(candidate, type) and candidate.__module__ == defining.__name__
            if own and hasattr(candidate, "chunk") and candidate is not Survey:
                measures.append(candidate())
    for point in plug_ins(_ENTRY_POINTS):
        try:
            measure = point.load()()
            name, *_ = measure.name, measure.chunk, measure.combine, measure.aggregate
        except Exception as error:
            raise InputError(
                f"the measure {point.value!r} cannot be loaded ({described(error)})",
                where=f"plug-in {point.name}",
                todo="fix it or uninstall it",
            ) from error
        if name in _OTHER_PASSES.union(m.name for m in measures):
            raise InputError(
                f"the measure {point.value!r} is called {name!r}, as another one is",
                where=f"plug-in {point.name}",
                todo="give it another name or uninstall it",
            )
        measures.append(measure)
    return measures


def extension_names() -> list[str]:
    """Names of the measures whose results the profile contains as extensions."""
    return [measure.name for measure in all_measures() if declared_result(measure) is None]
