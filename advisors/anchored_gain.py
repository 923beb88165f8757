"""Gains from a storage model that explains the trace, for settings and for moving files to a tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.rule import Gain
from vani.models import calibration
from vani.units import format_number, format_seconds

if TYPE_CHECKING:
    from vani.schema.system import System

SUPPLY = "supply rates of the file system and of the burst buffer (--system; `vani systems detect --measure`)"


def anchored_gain(
    metric: str, traced_s: float, before_s: float, after_s: float, method: str, system: System
) -> Gain | str:
    """The gain on `traced_s` seconds of the run from a storage model; a phrase if the model does not explain them.

    `before_s` and `after_s` are the model's times with the present setting and with the new one.
    """
    anchored = calibration.anchored(traced_s, before_s, after_s, generic=system.generic)
    if isinstance(anchored, str):
        return anchored
    wide = calibration.spread_of(generic=system.generic)
    return Gain(
        metric=metric,
        before_s=traced_s,
        after_s=min(traced_s, anchored.after_s),
        best_s=min(traced_s, anchored.best_s),
        worst_s=anchored.worst_s,
        method=f"{method}; range: nine of ten measured runs are within a factor {format_number(wide, 2)}",
    )


def staging_gain(
    metric: str,
    traced_s: float,
    before_s: float | None,
    after_s: float | None,
    method: str,
    *,
    generic: bool,
) -> Gain | str:
    """The gain for I/O that costs the run `traced_s`; a phrase if there is no number.

    `before_s` is the model's present time of that I/O, and `after_s` its time with the files on the tier, including
    copying; None if a rate is missing.
    """
    if before_s is None or after_s is None:
        return SUPPLY
    anchored = calibration.anchored(traced_s, before_s, after_s, generic=generic)
    if isinstance(anchored, str):
        return anchored
    return Gain(
        metric=metric,
        before_s=traced_s,
        after_s=anchored.after_s,
        best_s=anchored.best_s,
        worst_s=anchored.worst_s,
        method=f"{method} (docs/models.md): {format_seconds(before_s)} expected as it is, {format_seconds(after_s)} "
        "with copying; range: nine of ten measured runs",
    )

