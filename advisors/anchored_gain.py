"""Gains that a model of the storage promises, where it explains the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.rule import Gain
from vani.models import calibration

if TYPE_CHECKING:
    from vani.schema.system import System

__all__ = ["anchored_gain", "with_reason"]


def anchored_gain(
    metric: str, traced_s: float, before_s: float, after_s: float, method: str, system: System
) -> Gain | str:
    """What is left of `traced_s` seconds of the run by a model; a sentence where it does not explain them.

    `before_s` and `after_s` are what the model expects with the present setting and with the new one.
    """
    found = calibration.anchored(traced_s, before_s, after_s, generic=system.generic)
    if isinstance(found, str):
        return found
    wide = calibration.spread_of(generic=system.generic)
    return Gain(
        metric=metric,
        before_s=traced_s,
        after_s=min(traced_s, found.after_s),
        best_s=min(traced_s, found.best_s),
        worst_s=found.worst_s,
        method=f"{method}; range: nine of ten measured runs are within a factor {wide:.2g}",
    )


def with_reason(text: str, gain: Gain | str) -> str:
    """The sentences, and why no gain is given where there is none."""
    return f"{text} {gain}" if isinstance(gain, str) and gain else text
