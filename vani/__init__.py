"""Vani: storage settings for HPC programs, from a trace of their run.

    profile = vani.profile("traces/ior")
    advice = vani.advise(profile, system="lassen")

The names below load their modules on first use.
"""

from __future__ import annotations

from importlib import import_module

# Importing `typing` takes longer than everything else that is needed before the command can handle an interrupt.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vani.api import advise, check, convert, diff, profile, report
    from vani.cli.plot import plot
    from vani.readers import open_trace
    from vani.schema.advice import Advice
    from vani.schema.profile import Profile

__all__ = [
    "Advice", "Profile", "__version__", "advise", "check", "convert", "diff", "open_trace", "plot", "profile", "report",
]  # fmt: skip

__version__ = "0.1.0"

# `import vani` and `vani --help` stay fast because Dask and Arrow, which take about a second together,
# are loaded only by the code that needs them.
_ORIGINS = {
    # For document methods, which are below the layers that lay out screens, draw and judge.
    "profile_screen": "vani.render.screen:profile_screen",
    "advice_screen": "vani.render.screen:advice_screen",
    "drawing": "vani.cli.plot:drawing",
    "plot": "vani.cli.plot:plot",
    "diagnosis": "vani.advisors.diagnosis:diagnosis",
    "Advice": "vani.schema.advice:Advice",
    "Profile": "vani.schema.profile:Profile",
    "advise": "vani.api:advise",
    "check": "vani.api:check",
    "convert": "vani.api:convert",
    "diff": "vani.api:diff",
    "open_trace": "vani.readers:open_trace",
    "profile": "vani.api:profile",
    "report": "vani.api:report",
}


def __getattr__(name: str) -> Any:
    origin = _ORIGINS.get(name)
    if origin is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vani.errors import refuse_missing_links  # noqa: PLC0415 - `import vani` loads nothing

    refuse_missing_links()
    module, _, attribute = origin.partition(":")
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
