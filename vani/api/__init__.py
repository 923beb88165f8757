"""Vani as a library: one function per command::

    import vani
    profile = vani.profile("traces/ior")
    profile.save("profile.yaml")
    profile.frame("files")

A function raises `InputError`, with a one-line message for the user, if it cannot use a trace or a document.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vani.api.advise import advise
    from vani.api.advise_next import advise_next
    from vani.api.apply import Applied, Check, apply
    from vani.api.arguments import JUDGED_FILES
    from vani.api.assistant.server import mcp_serve
    from vani.api.baseline import baseline_figures, save_baseline
    from vani.api.benchmark import benchmark_result, measured_system
    from vani.api.characterise import Characterised, characterise
    from vani.api.check import check
    from vani.api.convert import convert
    from vani.api.diff import diff
    from vani.api.events import Events, events
    from vani.api.gate_inputs import files_of_gate
    from vani.api.heat_map import heat_map
    from vani.api.profile import profile
    from vani.api.report import Reported, report, reported
    from vani.api.table import table
    from vani.api.trace import Trace, trace
    from vani.api.tune import tune, tune_again, tuned_state

__all__ = [
    "JUDGED_FILES",
    "Applied",
    "Characterised",
    "Check",
    "Events",
    "Reported",
    "Trace",
    "advise",
    "advise_next",
    "apply",
    "baseline_figures",
    "benchmark_result",
    "characterise",
    "check",
    "convert",
    "diff",
    "events",
    "files_of_gate",
    "heat_map",
    "mcp_serve",
    "measured_system",
    "profile",
    "report",
    "reported",
    "save_baseline",
    "table",
    "trace",
    "tune",
    "tune_again",
    "tuned_state",
]

_MODULES = {
    "Applied": "apply",
    "Check": "apply",
    "JUDGED_FILES": "arguments",
    "mcp_serve": "assistant.server",
    "benchmark_result": "benchmark",
    "measured_system": "benchmark",
    "baseline_figures": "baseline",
    "save_baseline": "baseline",
    "Characterised": "characterise",
    "Events": "events",
    "files_of_gate": "gate_inputs",
    "Reported": "report",
    "reported": "report",
    "Trace": "trace",
    "tune_again": "tune",
    "tuned_state": "tune",
}
"""Submodules whose name differs from the function's."""


class _Library(ModuleType):
    """The package as a module that loads each of its submodules when its function is first used."""

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _MODULES.get(name, name)
        value = getattr(import_module(f"{__name__}.{module}"), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # A submodule that is loaded replaces the function of the same name.
        is_own = isinstance(value, ModuleType) and name in __all__
        super().__setattr__(name, getattr(value, name) if is_own else value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Library
