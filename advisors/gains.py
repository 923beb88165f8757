"""Gains in seconds of the run: no rule saves more than its part can have cost, and all together add up.

The run waits for its slowest process, so the part of it that a rule changes takes at most that process's I/O time:
longer ones are scaled down to it, factors stay. The expected gain of a recommendation follows those above it:
the first acts on the whole I/O time, each next one on what is left, so that all gains add up to what MAT001 names at
most (`vani.advisors.chained_gains`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vani.advisors.rule import Finding, Gain, Perhaps
from vani.models.calibration import SPREAD
from vani.models.io_time import IOTime
from vani.units import format_number

if TYPE_CHECKING:
    from vani.schema.profile import Profile

__all__ = ["WIDEST", "before_bounds", "is_measurable", "of_run", "within", "without_little"]

WIDEST: Final = math.sqrt(10)
"""Factor either way of the central estimate that a range has at most."""

_LARGEST: Final = 100.0
"""Speed-up that is promised at most: two of AIIO's pairs gained more, and were promised two to three times that."""

_LITTLE: Final = 1.3
"""Speed-up up to which repeated runs differ without any change (Xie et al., section IV-D)."""

_MEASURABLE: Final = 0.05
"""Share of the time that a setting acts on: less is lost in the noise of repeated runs (ours)."""

RUNTIME: Final = "runtime_s"
"""Metric of gains that are times of the whole run."""


def of_run(finding: Finding, time: IOTime | None) -> Finding:
    """The finding in seconds of the run: a part of it costs no more than the calls of the slowest process."""
    if time is None:
        return replace(finding, gain=None)
    most = time.calls_s if finding.acts_on == "libraries" else time.slowest_s
    touched_s = min(finding.touched_s, most)
    if finding.known_gain is None:
        return replace(finding, touched_s=touched_s)
    gain = within(_tenfold(_repeated(_in_order(finding.known_gain))), most)
    return replace(finding, gain=gain, touched_s=touched_s)


def is_measurable(gain: Gain) -> bool:
    """Whether the central estimate is more than next to nothing of the time that it is of."""
    return gain.seconds > _MEASURABLE * gain.before_s


def before_bounds(gain: Gain, profile: Profile) -> tuple[float, float] | None:
    """The least and the most that `before_s` can be, as far from it as the run's own time of that kind; None: exact.

    A part of the run takes no longer than all of that kind can.
    """
    if gain.metric == RUNTIME:
        return None
    kind = gain.metric.partition("_")[0]
    kind = kind if kind in ("read", "write", "metadata") else "total"
    known, value = profile.bounds.get(f"workflow.io.busy_s.{kind}"), getattr(profile.workflow.io.busy_s, kind)
    if known is None or value is None:
        return None
    low, high = known
    if not value:
        return 0.0, high
    return gain.before_s * min(1.0, low / value), min(max(gain.before_s, high), gain.before_s * high / value)


def _in_order(gain: Gain) -> Gain:
    """0 <= best <= after <= before, and after <= worst, whatever a rule returns; a hundredth is left, if anything."""
    least = gain.before_s / _LARGEST if gain.after_s > 0 and gain.metric != RUNTIME else 0.0
    central = min(max(gain.after_s, least), gain.before_s)
    best = min(max(gain.best_s, 0.0), central)
    worst = max(gain.worst_s, central)
    if gain.metric == RUNTIME:
        worst = min(worst, gain.before_s)
    return replace(gain, best_s=best, after_s=central, worst_s=worst)


def _repeated(gain: Gain) -> Gain:
    """The range includes at least the noise of repeated runs; at worst, the next run may be slower than this one."""
    if gain.metric == RUNTIME or not gain.seconds:
        return gain
    best, worst = gain.after_s / SPREAD, gain.after_s * SPREAD
    return replace(gain, best_s=min(gain.best_s, best), worst_s=max(gain.worst_s, worst))


def _tenfold(gain: Gain) -> Gain:
    """The range cut to a factor of `WIDEST` either way.

    Where a model knows only bounds (all of it, nothing of it), four of five runs are well inside them. Three pairs of
    runs before and after a change of request sizes do (`python -m benchmarks.gains`); others were not measured.
    """
    if gain.metric == RUNTIME or not gain.after_s:
        return gain
    best, worst = gain.after_s / WIDEST, gain.after_s * WIDEST
    return replace(gain, best_s=max(gain.best_s, best), worst_s=min(gain.worst_s, worst))


def without_little(finding: Finding) -> Finding:
    """The finding with a phrase in place of a gain that is small and may be none."""
    gain = finding.known_gain
    if gain is None or gain.metric == RUNTIME or gain.worst_s < gain.before_s or gain.before_s > _LITTLE * gain.after_s:
        return finding
    most = gain.before_s / gain.best_s
    return replace(finding, gain=Perhaps(f"at most {format_number(most, 2)} times as fast"))


def within(gain: Gain, most: float) -> Gain:
    """The same gain of a part that takes `most` seconds at most; of the whole run, one that saves no more."""
    if gain.metric == RUNTIME:
        best, after, worst = (max(s, gain.before_s - most) for s in (gain.best_s, gain.after_s, gain.worst_s))
        return replace(gain, best_s=best, after_s=after, worst_s=worst)
    if gain.before_s <= most:
        return gain
    part = most / gain.before_s
    # Rounding must not make the rest longer than the total.
    best, after = (min(most, s * part) for s in (gain.best_s, gain.after_s))
    return replace(gain, before_s=most, best_s=best, after_s=after, worst_s=max(after, gain.worst_s * part))
