"""When I/O takes place, in one line: the costliest phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.units import format_bytes, format_count, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Phase, Profile

_SHOWN = 2
_ENOUGH = 0.9
"""Share of the I/O time (or bytes) after which no further phase is named."""
_METADATA = {
    "open": "opening files",
    "close": "closing files",
    "stat": "querying files",
    "seek": "seeking",
    "directory": "directory operations",
    "remove": "removing or renaming files",
    "other": "metadata operations",
}


def when(profile: Profile) -> str:
    """Phases with the longest I/O time (or most bytes), in order of time; empty for a single phase."""
    phases = profile.phases or ()
    # Phases from heat maps have bytes but no times.
    timed = any(phase.io.time_s.total is not None for phase in phases)
    cost = _time if timed else _moved
    rows = [phase for phase in phases if cost(phase)]
    whole = sum(map(cost, rows))
    if not whole or (len(rows) == 1 and rows[0].count == 1):
        return ""
    chosen: list[Phase] = []
    for phase in sorted(rows, key=lambda phase: -cost(phase)):
        enough = sum(map(cost, chosen)) >= _ENOUGH * whole
        if len(chosen) == _SHOWN or (enough and len(rows) > _SHOWN):
            break
        chosen.append(phase)
    several = len(profile.apps) > 1
    in_time = sorted(chosen, key=lambda phase: phase.start_s)
    text = "; ".join(_phase(phase, several=several) for phase in in_time)
    share = sum(map(cost, chosen)) / whole
    rest = sum(phase.count for phase in rows) - sum(phase.count for phase in chosen)
    if not rest:
        return text
    more = f"{format_count(rest)} more {'phase' if rest == 1 else 'phases'}"
    return f"{text} ({format_share(share)} of the {'I/O time' if timed else 'bytes'}; {more})"


def _time(phase: Phase) -> float:
    return phase.io.time_s.total or 0.0


def _moved(phase: Phase) -> float:
    return phase.io.bytes.total or 0


def _phase(phase: Phase, *, several: bool) -> str:
    text = _done(phase)
    if several:
        text += f" by {phase.app}"
    if phase.repeats is not None and phase.count > 1:
        period = phase.repeats.period_s
        apart = "" if period is None else f", {format_seconds(period)} apart"
        return f"{format_count(phase.count)} times {text}{apart}"
    return f"{text} from {format_seconds(phase.start_s)} on, for {format_seconds(phase.runtime_s)}"


def _done(phase: Phase) -> str:
    """The work of a phase, and its amount each time."""
    io = phase.io
    data = {"read": (io.bytes.read or 0) // phase.count, "written": (io.bytes.written or 0) // phase.count}
    if phase.kind == "metadata":
        return _metadata(phase)
    sides = {"read": ("read",), "write": ("written",)}.get(phase.kind, ("written", "read"))
    text = " and ".join(
        f"{format_bytes(data[side])} {side}" for side in sides if data[side] or len(sides) == 1
    )
    doing, share = costliest_metadata(phase)
    if phase.dominant is None or phase.dominant.kind != "metadata" or share is None:
        return text
    # Moved bytes do not show how the time was spent.
    return f"{text} ({format_share(share)} of its I/O time {doing})"


def _metadata(phase: Phase) -> str:
    doing, share = costliest_metadata(phase)
    text = f"{doing} by {format_count(phase.processes)} {'process' if phase.processes == 1 else 'processes'}"
    return (
        f"{text} ({format_share(share)} of its I/O time)"
        if phase.io.bytes.total and share is not None
        else text
    )


def costliest_metadata(phase: Phase) -> tuple[str, float | None]:
    """The costliest kind of metadata operation, and its share of the I/O time."""
    kinds, whole = phase.io.metadata_kinds, phase.io.time_s.total
    if kinds is None:
        return "metadata operations", phase.dominant.share if phase.dominant is not None else None
    costs = {name: getattr(kinds, name) for name in _METADATA}
    most = max(costs, key=lambda name: (costs[name].time_s or 0.0, costs[name].count))
    # Concurrent calls of several threads add up to more than the elapsed time.
    return _METADATA[most], min(1.0, (costs[most].time_s or 0.0) / whole) if whole else None
