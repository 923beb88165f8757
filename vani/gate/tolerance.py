"""Tolerances: how much an attribute may differ from a baseline before the difference means something.

Counts and bytes of a deterministic program are exact; times on a shared file system are not. The table is our choice:
a reader sees a share of 5 % in a plot, and a quarter of a time is the least change that is worth a look.

An exact value is accepted up to the tolerance around the median of the baseline's runs, and up to what one of these
runs had, so that no run of the baseline fails against it.

Times are compared as benchstat does, by their logarithms (noise of times is closer to log-normal than to normal). The
runs of a baseline and those that are checked are two groups of one variance. Student's t test gives the probability
that groups of an unchanged program differ as much, and the interval of the ratio. A time fails if its slowdown is both
significant and larger than the tolerance. The rate of false alarms is for all times of a check together: each of k
times is tested at 1 - (1 - rate)^(1/e), where e = 1 + (k - 1) sqrt(1 - r^2) lies between 1, for times that always vary
together, and k, for independent ones (Sidak's correction). r^2 is the mean squared correlation of the runs' deviations,
reduced by what chance gives to few runs. In k, a time whose noise hardly ever exceeds the tolerance counts less. The
form of e is our choice; `python -m benchmarks.gate` measures the rates.

Sources: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4; Z. Sidak,
Rectangular confidence regions for the means of multivariate normal distributions (1967); D. Nyholt, A simple correction
for multiple testing for single-nucleotide polymorphisms in linkage disequilibrium with each other (2004).
"""

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from operator import mul
from statistics import fmean, median
from typing import Final, Literal, NamedTuple

from vani.schema.check import Effect, Level
from vani.schema.policy import Direction
from vani.units import format_value, parse_bytes

Dimension = Literal["bytes", "seconds", "rate", "share", "count", "number", "text", "flag"]

QUANTITY: Final = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)[ \t]*([A-Za-zµ%]+(?:/s)?)?", re.ASCII
)

_TIMES: Final = {
    "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"),
    "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400),
}  # fmt: skip
MEANINGS: Final = {
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
        return MEANINGS[self.dimension or "number"]


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
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if dimension == "bytes" and value == int(value) and (exact or abs(value) < 1000):
            return f"{int(value):,} B"
        if exact:
            return f"{value!r}" + {"seconds": " s", "rate": " B/s", "bytes": " B"}.get(dimension, "")
    return format_value(value, dimension)


_ROUNDING: Final = 1e-9
"""Relative difference that counts as none, because documents keep nine digits of a float."""
_LEAST_SPREAD: Final = 0.01
"""Least relative deviation of times: no machine repeats a run more exactly."""
_STEADY: Final = 1e-6
"""Deviation of a time that has no noise, such as the share of a single process, and so no false alarm."""
_ROUNDS: Final = 20
"""Rounds after which the level no longer changes."""
_CAUTION: Final = 0.975
"""Part of the rate of false alarms that is used, because the correlation of times is known from few runs only."""


@dataclass(frozen=True)
class Tolerance:
    """The accepted difference, the bad direction, and the level of a failure."""

    relative: float
    absolute: float
    direction: Direction
    level: Level


_EXACT: Final = Tolerance(0.0, 0, "increase", "error")
_SAME: Final = Tolerance(0.0, 0, "both", "warning")
_MOMENT: Final = Tolerance(0.25, 0.1, "both", "note")
_RATE: Final = Tolerance(0.25, 0, "decrease", "warning")
_GOOD_SHARE: Final = Tolerance(0.0, 0.05, "decrease", "warning")
_BAD_SHARE: Final = Tolerance(0.0, 0.05, "increase", "warning")
_SHARE: Final = Tolerance(0.0, 0.05, "both", "warning")

TABLE: Final[tuple[tuple[str, Tolerance], ...]] = tuple(
    (pattern, tolerance)
    for tolerance, *patterns in (
        (_SAME, "workflow.processes"),
        (_BAD_SHARE, "*.access_pattern.random"),
        (_GOOD_SHARE, "*.access_pattern.consecutive", "*collective_share"),
        (_BAD_SHARE, "*_share.metadata", "*_share.sync", "*io_time_share", "*io_time_share_slowest"),
        (_SHARE, "*_share.*", "*.access_pattern.*"),
        (_RATE, "*.bandwidth.*"),
        (Tolerance(0.1, 0, "decrease", "warning"), "*.transfer_size.*", "*.granularity.*"),
        (_EXACT, "*.ops.*", "*.bytes.*", "*.bytes_*", "*.footprint.*", "*.past_end.*", "*.opens", "*.calls"),
        (_EXACT, "*.metadata_kinds.*.count", "*.files.*", "dataset.files"),
        (_EXACT, "dataset.size"),
        (_EXACT, "folders.files", "folders.creates", "folders.entries"),
        (_EXACT, "patterns.files", "patterns.reads", "patterns.writes"),
        (_MOMENT, "*.start_s", "*.end_s", "*.first_s", "*.last_s", "*phase_gap_s", "*.period_s"),
        (Tolerance(0.0, 1, "both", "warning"), "*.repeats.count"),
        (_SHARE, "*.dominant.share"),
        (Tolerance(0.25, 0.1, "increase", "warning"), "*_s", "*_s.*"),
    )
    for pattern in patterns
)
"""Tolerances by pattern of dotted keys; the first match applies. Anything else must stay the same, or is a warning."""

OF_IO: Final = ("io.bytes.read", "io.bytes.written", "io.ops.*", "io.time_s.total")
"""Attributes of a workflow and of each app that say most about its I/O."""

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
    *(f"apps[*].{key}" for key in OF_IO),
    "apps[*].io.access_pattern.random",
    "interfaces[*].calls",
    "interfaces[*].collective_share",
)
"""Attributes to compare with a baseline if a policy names none."""


@functools.lru_cache(maxsize=10_000)
def tolerance_of(dotted: str) -> Tolerance:
    """The table's tolerance for an attribute, given its dotted keys such as `apps.io.ops.read`."""
    return next((tolerance for pattern, tolerance in TABLE if fnmatchcase(dotted, pattern)), _SAME)


def is_measured(dotted: str, dimension: Dimension) -> bool:
    """Whether an attribute is a time, or follows from times, so that runs of one program differ in it."""
    return dimension in ("seconds", "rate") or "time_share" in dotted


class Limits(NamedTuple):
    """The range that exact values of a baseline and a tolerance allow, around the median."""

    center: int | float
    low: float
    high: float

    def accepts(self, value: float, direction: Direction) -> bool:
        """True if `value` is no worse than allowed."""
        room = _ROUNDING * max(abs(value), abs(self.center)) if isinstance(value - self.center, float) else 0
        is_low, is_high = value < self.low - room, value > self.high + room
        return not ((is_low and direction != "increase") or (is_high and direction != "decrease"))


def limits_of(baselines: Sequence[int | float], *, relative: float, absolute: float) -> Limits:
    """See the module docstring; for at least one value."""
    center: int | float = median(baselines)
    if isinstance(center, float) and center.is_integer() and all(isinstance(value, int) for value in baselines):
        center = int(center)
    most = max(relative * abs(center), absolute)
    return Limits(center, min(center - most, *baselines), max(center + most, *baselines))


class Times(NamedTuple):
    """How a time changed: the logarithm of the ratio with its standard error, and the deviations of all runs."""

    log_ratio: float
    error: float
    degrees: int
    deviations: tuple[float, ...]
    """Differences from the mean of the run's group, with squares that add up to 1; empty for a time without noise."""

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float]) -> "Times | None":
        """Compare two groups; None if a value is not positive, or no group has two runs, which show how times vary."""
        degrees = len(before) + len(after) - 2
        if degrees < 1 or min(*before, *after) <= 0:
            return None
        groups = [[math.log(value) for value in group] for group in (before, after)]
        deviations = [value - fmean(group) for group in groups for value in group]
        length = math.hypot(*deviations)
        spread = max(length / math.sqrt(degrees), _LEAST_SPREAD)
        error = spread * math.sqrt(1 / len(before) + 1 / len(after))
        unit = tuple(deviation / length for deviation in deviations) if length > _STEADY else ()
        return cls(fmean(groups[1]) - fmean(groups[0]), error, degrees, unit)

    def effect(self, direction: Direction, level: float, count: float, least: float) -> Effect:
        """The ratio, its interval, its probability, and what stays unseen at this level of each of `count` tests.

        `least` is the smallest ratio that exceeds the tolerance.
        """
        sides = 2 if direction == "both" else 1
        worse = abs(self.log_ratio) if direction == "both" else self.log_ratio * (-1 if direction == "decrease" else 1)
        beyond = min(1.0, sides * _beyond(worse / self.error, self.degrees))
        half = _quantile(0.025, self.degrees) * self.error
        return Effect(
            ratio=math.exp(self.log_ratio),
            low=math.exp(max(self.log_ratio - half, -_MAX_LOG)),
            high=math.exp(min(self.log_ratio + half, _MAX_LOG)),
            p=1 - math.pow(1 - beyond, count),
            is_significant=beyond <= level,
            unseen=max(least, math.exp(min(_quantile(level / sides, self.degrees) * self.error, _MAX_LOG))),
        )


_MAX_LOG: Final = 500.0


def level_of_each(times: Sequence[Times], least: Sequence[float], false_alarms: float) -> tuple[float, float]:
    """The level at which to test each of several times, and of how many independent tests it is the level.

    A time counts less the more seldom its noise exceeds the tolerance, the ratio `least`: small files hardly count.
    """
    by_noise = [
        _beyond(math.log(ratio) / time.error, time.degrees) if time.deviations else 0.0
        for time, ratio in zip(times, least, strict=True)
    ]
    correlation = _correlation([time for time in times if time.deviations])
    count, level = 1.0, _CAUTION * false_alarms
    for _ in range(_ROUNDS):
        worth = math.fsum(min(1.0, chance / level) for chance in by_noise)
        count = max(1.0, 1 + (worth - 1) * math.sqrt(1 - correlation))
        level = 1 - math.pow(1 - _CAUTION * false_alarms, 1 / count)
    return level, count


def _correlation(times: Sequence[Times]) -> float:
    """The mean squared correlation of the deviations of times, without what chance gives; 0 where that is unknown."""
    count, degrees = len(times), min((time.degrees for time in times), default=0)
    if count < 2 or degrees < 3 or len({len(time.deviations) for time in times}) > 1:
        return 0.0
    columns = list(zip(*(time.deviations for time in times), strict=True))
    squares = math.fsum(sum(map(mul, a, b)) ** 2 for a in columns for b in columns)
    observed = (squares - count) / (count * (count - 1))
    return min(1.0, max(0.0, 1 - (1 - observed) * degrees / (degrees - 2)))


def _beyond(t: float, degrees: int) -> float:
    """Probability that Student's t exceeds a value; degrees of freedom are whole, so that the series is finite."""
    angle, odd = math.atan(t / math.sqrt(degrees)), degrees % 2
    terms = [1.0]
    for place in range(1, degrees // 2):
        terms.append(terms[-1] * (2 * place - 1 + odd) / (2 * place + odd) * math.cos(angle) ** 2)
    series: float = math.sin(angle) * math.fsum(terms)
    if odd:
        series = (angle + (series * math.cos(angle) if degrees > 1 else 0.0)) * 2 / math.pi
    return (1 - series) / 2


@functools.cache
def _quantile(beyond: float, degrees: int) -> float:
    """The value that Student's t exceeds with this probability, which is below a half."""
    low, high = 0.0, 1.0
    while _beyond(high, degrees) > beyond and high < 1e12:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, degrees) > beyond else (low, middle)
    return high
