"""What moving files to a tier wins, where the model of the file system explains what they cost now."""

from __future__ import annotations

from vani.advisors.rule import Gain
from vani.models import calibration
from vani.units import format_seconds

__all__ = ["SUPPLY", "staging_gain"]

SUPPLY = "For an expected gain, supply rates of the file system and of the burst buffer in --system."


def staging_gain(
    metric: str,
    traced_s: float,
    before_s: float | None,
    after_s: float | None,
    method: str,
    *,
    generic: bool,
) -> Gain | str:
    """The gain for I/O that costs the run `traced_s`; a sentence where none is promised.

    `before_s` is what the model expects of that I/O as it is, `after_s` with the files on the tier, copying included;
    None where a rate is missing.
    """
    if before_s is None or after_s is None:
        return SUPPLY
    found = calibration.anchored(traced_s, before_s, after_s, generic=generic)
    if isinstance(found, str):
        return found
    return Gain(
        metric=metric,
        before_s=traced_s,
        after_s=found.after_s,
        best_s=found.best_s,
        worst_s=found.worst_s,
        method=f"{method} (docs/models.md): {format_seconds(before_s)} expected as it is, {format_seconds(after_s)} "
        "with copying; range: nine of ten measured runs",
    )
