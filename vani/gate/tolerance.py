"""Tolerances: how much an attribute may differ from a baseline before the difference means something.

Counts and bytes of a deterministic program are exact; times on a shared file system are not. The table is ours:
a share of 5 % is what a reader sees in a plot, and a quarter of a time is less than the difference of two runs in a
row on a busy file system (so times are warnings, and several baselines replace the guess by measurements).

With baselines b1 ... bn and m their median, a value v is accepted as long as

    v - m <= max(relative * |m|, absolute, max |bi - m|, noise * 1.4826 * MAD)

where MAD is the median of |bi - m|, and 1.4826 * MAD estimates the standard deviation of normal noise (C. Leys et
al., Detecting outliers: Do not use standard deviation around the mean, use absolute deviation around the median,
Journal of Experimental Social Psychology 49, 2013, 764-766; 3 is their very conservative choice). max |bi - m| means
that no run of the baseline fails against it.

Times are warnings as long as their spread is unknown: one run cannot show it. Three or more runs do: a time beyond
their noise that is 1.5 times m or more is then an error.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import median
from typing import Final, NamedTuple

from vani.schema.check import Level
from vani.schema.policy import Direction

__all__ = ["DEFAULTS", "NOISE", "SEVERAL", "SLOWER", "TABLE", "Allowed", "Tolerance", "allowed", "tolerance_of"]

NOISE: Final = 3.0
SEVERAL: Final = 3
"""Runs of a baseline from which on their spread shows how much times vary."""
SLOWER: Final = 1.5
"""A time that is so many times that of several baselines, and beyond their noise, is an error."""
_CONSISTENT: Final = 1.4826
"""1 / (quantile of 0.75 of the standard normal distribution): makes MAD estimate a standard deviation."""


_ROUNDING: Final = 1e-9
"""Documents keep nine digits of a float: that much of a value is no difference."""


@dataclass(frozen=True)
class Tolerance:
    """The accepted difference, the direction that is bad, and how bad it is."""

    relative: float
    absolute: float
    direction: Direction
    level: Level


_EXACT: Final = Tolerance(0.0, 0, "increase", "error")
_SAME: Final = Tolerance(0.0, 0, "both", "warning")
_TIME: Final = Tolerance(0.25, 0.1, "increase", "warning")
_MOMENT: Final = Tolerance(0.25, 0.1, "both", "note")
_RATE: Final = Tolerance(0.25, 0, "decrease", "warning")
_GOOD_SHARE: Final = Tolerance(0.0, 0.05, "decrease", "warning")
_BAD_SHARE: Final = Tolerance(0.0, 0.05, "increase", "warning")
_SHARE: Final = Tolerance(0.0, 0.05, "both", "warning")
_SIZE: Final = Tolerance(0.1, 0, "decrease", "warning")
_REPEATED: Final = Tolerance(0.0, 1, "both", "warning")

TABLE: Final[tuple[tuple[str, Tolerance], ...]] = (
    ("workflow.processes", _SAME),
    ("*.access_pattern.random", _BAD_SHARE),
    ("*.access_pattern.consecutive", _GOOD_SHARE),
    ("*collective_share", _GOOD_SHARE),
    ("*_share.metadata", _BAD_SHARE),
    ("*_share.sync", _BAD_SHARE),
    ("*io_time_share", _BAD_SHARE),
    ("*io_time_share_slowest", _BAD_SHARE),
    ("*_share.*", _SHARE),
    ("*.access_pattern.*", _SHARE),
    ("*.bandwidth.*", _RATE),
    ("*.transfer_size.*", _SIZE),
    ("*.granularity.*", _SIZE),
    ("*.ops.*", _EXACT),
    ("*.bytes.*", _EXACT),
    ("*.bytes_*", _EXACT),
    ("*.footprint.*", _EXACT),
    ("*.past_end.*", _EXACT),
    ("*.opens", _EXACT),
    ("*.calls", _EXACT),
    ("*.metadata_kinds.*.count", _EXACT),
    ("*.files.*", _EXACT),
    ("dataset.files", _EXACT),
    ("dataset.size", _EXACT),
    ("folders.files", _EXACT),
    ("folders.creates", _EXACT),
    ("folders.entries", _EXACT),
    ("patterns.files", _EXACT),
    ("patterns.reads", _EXACT),
    ("patterns.writes", _EXACT),
    ("*.start_s", _MOMENT),
    ("*.end_s", _MOMENT),
    ("*.first_s", _MOMENT),
    ("*.last_s", _MOMENT),
    ("*phase_gap_s", _MOMENT),
    ("*.period_s", _MOMENT),
    ("*.repeats.count", _REPEATED),
    ("*.dominant.share", _SHARE),
    ("*_s", _TIME),
    ("*_s.*", _TIME),
)
"""By keys with dots, the first that fits. Anything else must stay the same, and either direction is a warning."""

DEFAULTS: Final = (
    "workflow.apps",
    "workflow.processes",
    "workflow.runtime_s",
    "workflow.files.total",
    "workflow.files.shared",
    "workflow.io_time_share",
    "workflow.io.bytes.read",
    "workflow.io.bytes.written",
    "workflow.io.past_end.read",
    "workflow.io.ops.*",
    "workflow.io.time_s.total",
    "workflow.io.access_pattern.random",
    "workflow.io.transfer_size.*.p50",
    "dataset.size",
    "apps[*].io.bytes.read",
    "apps[*].io.bytes.written",
    "apps[*].io.ops.*",
    "apps[*].io.time_s.total",
    "apps[*].io.access_pattern.random",
    "interfaces[*].calls",
    "interfaces[*].collective_share",
)
"""Attributes that are compared with a baseline if a policy names none."""


@functools.lru_cache(maxsize=10_000)
def tolerance_of(dotted: str) -> Tolerance:
    """The table's tolerance for an attribute, by its keys alone: `apps.io.ops.read`."""
    return next((tolerance for pattern, tolerance in TABLE if fnmatchcase(dotted, pattern)), _SAME)


class Allowed(NamedTuple):
    """The range that baselines and a tolerance allow."""

    center: int | float
    by_tolerance: float
    by_noise: float

    @property
    def most(self) -> float:
        """Largest allowed distance from the center."""
        return max(self.by_tolerance, self.by_noise)

    def accepts(self, value: float, direction: Direction) -> bool:
        """True if `value` is no worse than allowed."""
        difference = value - self.center
        if isinstance(difference, float):
            rounding = _ROUNDING * max(abs(value), abs(self.center))
            difference = (
                0.0 if abs(difference) <= rounding else difference - math.copysign(rounding, difference)
            )
        if direction == "increase":
            return difference <= self.most
        if direction == "decrease":
            return -difference <= self.most
        return abs(difference) <= self.most


def allowed(
    baselines: Sequence[int | float], *, relative: float, absolute: float, noise: float = NOISE
) -> Allowed:
    """The formula of this module for at least one value."""
    if len(baselines) == 1:
        return Allowed(baselines[0], max(relative * abs(baselines[0]), absolute), 0.0)
    center = _median(baselines)
    away = [abs(baseline - center) for baseline in baselines]
    by_noise = max(*away, noise * _CONSISTENT * median(away))
    return Allowed(center, max(relative * abs(center), absolute), by_noise)


def _median(values: Sequence[int | float]) -> int | float:
    middle = median(values)
    return int(middle) if isinstance(middle, float) and middle.is_integer() and _are_whole(values) else middle


def _are_whole(values: Sequence[int | float]) -> bool:
    return all(isinstance(value, int) for value in values)
