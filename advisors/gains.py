"""Gains in seconds of the run. No rule saves more than its part can have cost, and all gains add up.

The run waits for its slowest process, so the part that a rule changes takes at most that process's I/O time. Longer
parts are scaled down to it, with the same factor. Expected gains are chained: the first recommendation acts on the
whole I/O time and each further one on what is left, so that all gains add up to at most the bound of MAT001
(`vani.advisors.competing_findings`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vani.advisors.rule import Finding, Gain, Perhaps
from vani.models import calibration
from vani.models.calibration import SPREAD
from vani.models.io_time import IOTime
from vani.units import format_number, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import Profile

SUPPLY: Final = "supply rates of the file system and of the burst buffer (--system; `vani systems detect --measure`)"

WIDEST: Final = 10.0
"""Greatest factor between the ends of a range. A wider one is only a direction (`vani.advisors.judge`)."""

_LITTLE: Final = 1.3
"""Factor by which repeated runs differ without any change (Xie et al., section IV-D)."""

_MEASURABLE: Final = 0.05
"""Least saving as a share of the time that a setting acts on: less is lost in the noise of runs (our choice)."""

RUNTIME: Final = "runtime_s"
"""Metric of gains on the time of the whole run."""


def of_run(finding: Finding, time: IOTime | None) -> Finding:
    """Convert a finding to seconds of the run: a part costs at most the calls of the slowest process."""
    if time is None:
        return replace(finding, gain=None)
    most = time.calls_s if finding.acts_on == "libraries" else time.slowest_s
    touched_s = min(finding.touched_s, most)
    if finding.known_gain is None:
        return replace(finding, touched_s=touched_s)
    gain = within(_repeated(_in_order(finding.known_gain)), most)
    return replace(finding, gain=gain, touched_s=touched_s)


def is_measurable(gain: Gain) -> bool:
    """True if the central estimate is more than noise, relative to the time that it acts on.

    Without rates of the storage, times of the traced machine decide nothing: the rule's counts did.
    """
    return bool(gain.why_no_number) or gain.seconds > _MEASURABLE * gain.before_s


def before_bounds(gain: Gain, profile: Profile) -> tuple[float, float] | None:
    """Bounds of `before_s`, in the same proportion as those of the run's time of that kind; None if it is exact.

    A part of the run takes at most the upper bound of that time.
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
    """Enforce 0 <= best <= after <= before and after <= worst."""
    central = min(max(gain.after_s, 0.0), gain.before_s)
    best = min(max(gain.best_s, 0.0), central)
    worst = max(gain.worst_s, central)
    if gain.metric == RUNTIME:
        worst = min(worst, gain.before_s)
    return replace(gain, best_s=best, after_s=central, worst_s=worst)


def _repeated(gain: Gain) -> Gain:
    """Widen the range to the noise of repeated runs. At worst, the next run may be slower than this one."""
    if gain.metric == RUNTIME or not gain.seconds:
        return gain
    best, worst = gain.after_s / SPREAD, gain.after_s * SPREAD
    return replace(gain, best_s=min(gain.best_s, best), worst_s=max(gain.worst_s, worst))


def without_little(finding: Finding) -> Finding:
    """Replace a gain that is small and may be none with a phrase."""
    gain = finding.known_gain
    if gain is None or gain.metric == RUNTIME or gain.worst_s < gain.before_s or gain.before_s > _LITTLE * gain.after_s:
        return finding
    if gain.why_no_number:
        return replace(finding, gain=Perhaps(gain.why_no_number))
    most = gain.before_s / gain.best_s
    return replace(finding, gain=Perhaps(f"at most {format_number(most, 2)} times as fast"))


def within(gain: Gain, most: float) -> Gain:
    """Limit a gain to a part of at most `most` seconds. A gain on the whole run saves at most that much."""
    if gain.metric == RUNTIME:
        best, after, worst = (max(s, gain.before_s - most) for s in (gain.best_s, gain.after_s, gain.worst_s))
        return replace(gain, best_s=best, after_s=after, worst_s=worst)
    if gain.before_s <= most:
        return gain
    part = most / gain.before_s
    # Rounding errors must not make the rest longer than the total.
    best, after = (min(most, s * part) for s in (gain.best_s, gain.after_s))
    return replace(gain, before_s=most, best_s=best, after_s=after, worst_s=max(after, gain.worst_s * part))


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

