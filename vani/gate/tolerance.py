"""Tolerances: how much an attribute may differ from a baseline before the difference means something.

Counts and bytes of a deterministic program are exact; times on a shared file system are not. The table is our choice:
a reader sees a share of 5 % in a plot, and a quarter of a time is less than the difference between two successive runs
on a busy file system (so times are only warnings, and several baselines replace the guess with measurements).

For baselines b1 ... bn with median m, a value v is accepted as long as

    v - m <= max(relative * |m|, absolute, max |bi - m|, noise * 1.4826 * MAD)

where MAD is the median of |bi - m|, and 1.4826 * MAD estimates the standard deviation of normal noise (C. Leys et
al., Detecting outliers: Do not use standard deviation around the mean, use absolute deviation around the median,
Journal of Experimental Social Psychology 49, 2013, 764-766; 3 is their very conservative choice). max |bi - m| ensures
that no run of the baseline fails against the baseline.

Times are warnings while their spread is unknown, which one run cannot show. With three or more runs, a time beyond
their noise that is at least 1.5 m is an error.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from statistics import median
from typing import Final, Literal, NamedTuple

from vani.schema.check import Level
from vani.schema.policy import Direction
from vani.units import format_bytes, format_number, format_rate, format_seconds, format_share, parse_bytes

Dimension = Literal["bytes", "seconds", "rate", "share", "count", "number", "text", "flag"]

QUANTITY: Final = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)[ \t]*([A-Za-zµ%]+(?:/s)?)?", re.ASCII
)

_TIMES: Final = {
    "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"),
    "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400),
}  # fmt: skip
_MEANINGS: Final = {
    "bytes": "a size", "seconds": "a time", "rate": "a rate", "share": "a share", "count": "a count",
    "number": "a number", "text": "text", "flag": "true or false",
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A number in bytes, seconds or bytes per second, or a share. `dimension` is None for a bare number."""

    value: int | float
    dimension: Dimension | None
    text: str

    def fits(self, dimension: Dimension) -> bool:
        """True if the number can be compared with an attribute of this dimension. A bare number always can."""
        return self.dimension is None or dimension in (self.dimension, "number")

    def meaning(self) -> str:
        """The dimension in words: `a size`."""
        return _MEANINGS[self.dimension or "number"]


def parse_quantity(text: str) -> Quantity:
    """Parse a number with or without a unit. Sizes are as in `vani.units.parse_bytes`.

    Raises
    ------
    ValueError
        The text is not a number, its unit is unknown, or it is too large.
    """
    match = QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{_short(text)} is not a number with a unit such as 1e5, 4 MiB, 10 s, 10 %, 2 GB/s")
    number, unit = Decimal(match[1]), match[2]
    dimension: Dimension | None = None
    if unit is not None:
        factor, dimension = _unit(unit)
        number *= factor
    if abs(number) > Decimal("1e300"):
        raise ValueError(f"{_short(text)} is too large")
    is_whole = number == number.to_integral_value() and abs(number) < 1 << 63
    return Quantity(int(number) if is_whole else float(number), dimension, " ".join(text.split()))


def _unit(unit: str) -> tuple[Decimal, Dimension]:
    if unit == "%":
        return Decimal("0.01"), "share"
    if unit in _TIMES:
        return _TIMES[unit], "seconds"
    size, slash, _ = unit.partition("/s")
    try:
        return Decimal(parse_bytes(f"1{size}")), "rate" if slash else "bytes"
    except ValueError:
        known = "B, K or KiB, M or MiB, G or GiB, KB, MB, GB, .../s, ns, us, ms, s, min, h, d, %"
        raise ValueError(f"{_short(unit)} is not a unit; known are {known}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def shown(value: float | str | bool | None, dimension: Dimension, *, exact: bool = False) -> str:
    """Format a value for people. `exact` keeps all digits, for values that would look the same otherwise."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if dimension == "bytes" and value == int(value):
        return f"{int(value):,} B" if exact or abs(value) < 1000 else format_bytes(value)
    if exact:
        return f"{value!r}" + {"seconds": " s", "rate": " B/s", "bytes": " B"}.get(dimension, "")
    if dimension == "bytes":
        return format_bytes(value)
    if dimension == "seconds":
        return "0 s" if value == 0 else format_seconds(value)
    if dimension == "rate":
        return format_rate(value)
    if dimension == "share":
        return format_share(value)
    return f"{value:,}" if isinstance(value, int) else format_number(value, 6)


NOISE: Final = 3.0
SEVERAL: Final = 3
"""Least number of runs in a baseline whose spread shows how much times vary."""
SLOWER: Final = 1.5
"""Least factor between a time and that of several baselines, beyond their noise, that is an error."""
_CONSISTENT: Final = 1.4826
"""1 / (0.75 quantile of the standard normal distribution), with which MAD estimates a standard deviation."""


_ROUNDING: Final = 1e-9
"""Relative difference that counts as none, because documents keep nine digits of a float."""


@dataclass(frozen=True)
class Tolerance:
    """The accepted difference, the bad direction, and the level of a failure."""

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
"""Tolerances by pattern of dotted keys; the first match applies. Anything else must stay the same, or is a warning."""

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
"""Attributes to compare with a baseline if a policy names none."""


@functools.lru_cache(maxsize=10_000)
def tolerance_of(dotted: str) -> Tolerance:
    """The table's tolerance for an attribute, given its dotted keys such as `apps.io.ops.read`."""
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
    """The formula in the module docstring, for at least one value."""
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
