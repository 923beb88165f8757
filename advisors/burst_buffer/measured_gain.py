"""What moving files to a tier wins, by the range of factors that was measured elsewhere."""

from __future__ import annotations

import math

from vani.advisors.rule import Gain

__all__ = ["measured_gain"]


def measured_gain(
    metric: str,
    before_s: float,
    floor_s: float,
    measured: tuple[float, float],
    method: str,
    share: float = 1.0,
) -> Gain | None:
    """The gain for a tier that needs at least `floor_s`, by a measured range of factors (least, most).

    `share` is what a second of `before_s`, in which any process is at it, costs the run. None where no time passed.
    """
    if before_s <= 0:
        return None
    least, most = measured
    middle = math.sqrt(least * most)

    def after(factor: float) -> float:
        return share * min(before_s, max(floor_s, before_s / factor))

    return Gain(metric, share * before_s, after(middle), share * min(before_s, floor_s), after(least), method)
