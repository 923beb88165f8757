"""Whether I/O matters in a run, and which call costs most: the two sentences a scientist reads first.

There are two shares of the run, both in the profile: the time in which any process does I/O (`io_time_share`) and the
I/O time of the slowest process (`io_time_share_slowest`). Of a workflow, whose programs wait for each other in ways
that no trace shows, the first decides. Most parallel programs wait for their slowest process: of one program the
second decides, or that process's time in calls of I/O libraries, which the run waits for just as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.units import format_count, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, CallCost, Profile

__all__ = [
    "HARDLY",
    "SHORT_IO_S",
    "SHORT_RUN_S",
    "cause",
    "deciding_share",
    "how_much",
    "is_in_libraries",
    "library_words",
    "most_share",
    "too_short",
]

HARDLY = 0.05
"""Share of the run below which I/O hardly matters: that of the rule MAT001, which says why."""
_MUCH = 0.2
"""Share of the run from which on I/O matters without doubt: a run without it is 1.25 times as fast."""
SHORT_RUN_S = 1.0
SHORT_IO_S = 0.1
"""Runs or I/O times shorter than these vary by more than any setting changes: start-up and caches decide."""
_SECOND = 0.6
"""A function that costs less than this of the I/O time is not named alone."""
_NEARLY_ALL = 0.99
_LIBRARIES = {"mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "netcdf": "netCDF"}


def too_short(profile: Profile) -> bool:
    """Whether the run, or its I/O, is too short to judge from."""
    runtime, busy = profile.workflow.runtime_s, profile.workflow.io.busy_s.total
    libraries = max((one.slowest for one in (profile.workflow.library_time_s or {}).values()), default=0.0)
    return runtime is not None and (runtime < SHORT_RUN_S or max(busy or 0.0, libraries) < SHORT_IO_S)


def deciding_share(profile: Profile) -> float | None:
    """Share of the run that at most could be won; None where no times are known."""
    workflow = profile.workflow
    if workflow.io_time_share is None:
        return None
    if len(profile.traces) > 1:
        return workflow.io_time_share
    _, called = _slowest_in_libraries(profile)
    return max(workflow.io_time_share_slowest or 0.0, called)


def most_share(profile: Profile) -> float | None:
    """The upper bound of `deciding_share`: larger where busy times are bounded."""
    share, runtime = deciding_share(profile), profile.workflow.runtime_s
    bounds = profile.bounds.get("workflow.io.busy_s.total")
    if share is None or bounds is None or not runtime:
        return share
    return max(share, min(1.0, bounds[1] / runtime))


def how_much(profile: Profile, *, whole: bool) -> str:
    """How much of the run is I/O, and whether that matters; `whole`: nothing of the trace was lost."""
    workflow = profile.workflow
    if not workflow.io.ops.all:
        return "No I/O on files of a data set."
    if workflow.io.time_s.total is None:
        return f"Time: unknown (--quick), {format_count(workflow.io.ops.all)} I/O calls counted."
    if not workflow.io.time_s.total:
        return "I/O takes less time than the trace's clock can tell."
    if workflow.io_time_share is None:
        return "I/O time is unknown."
    text = f"I/O takes {format_share(workflow.io_time_share)}"
    most = most_share(profile)
    if most is not None and format_share(most) not in text and "workflow.io.busy_s.total" in profile.bounds:
        text += f" to {format_share(most)}"
    text += " of the run"
    if len(profile.traces) > 1:
        text += f" ({format_seconds(workflow.io.busy_s.total)})"
    if workflow.processes > 1 and workflow.io_time_share_slowest is not None:
        text += f", {format_share(workflow.io_time_share_slowest)} in the slowest process{_who(profile)}"
    return f"{text}{_verdict(profile, whole=whole)}"


def _who(profile: Profile) -> str:
    slowest = _slowest(profile)
    if slowest is None or slowest.balance is None or slowest.balance.slowest_rank is None:
        return ""
    of = f" of {one_line(slowest.name)}" if len(profile.apps) > 1 else ""
    return f" (rank {slowest.balance.slowest_rank}{of})"


def _slowest(profile: Profile) -> App | None:
    timed = [
        app for app in profile.apps if app.balance is not None and app.balance.slowest_io_time_s is not None
    ]
    return max(timed, key=lambda app: app.balance.slowest_io_time_s or 0.0, default=None)  # type: ignore[union-attr]


def _verdict(profile: Profile, *, whole: bool) -> str:
    share = deciding_share(profile) or 0.0
    what = "this workflow" if len(profile.traces) > 1 else "this run"
    if share < HARDLY <= (most_share(profile) or 0.0):
        text = "it may matter, and counts do not tell more"
    elif share < HARDLY:
        text = f"storage is not what {what} waits for" if whole else "what was lost may change that"
    elif is_in_libraries(profile):
        text = "the time goes to its I/O library"
    else:
        text = "it matters" if share >= _MUCH else "worth a look"
    return f": {text}.{_short(profile)}"


def _short(profile: Profile) -> str:
    runtime, busy = profile.workflow.runtime_s or 0.0, profile.workflow.io.busy_s.total or 0.0
    if not too_short(profile):
        return ""
    why = f"a run of {format_seconds(runtime)}" if runtime < SHORT_RUN_S else f"{format_seconds(busy)} of I/O"
    return f" But {why} is too short to judge."


def _slowest_in_libraries(profile: Profile) -> tuple[App | None, float]:
    """The app whose slowest process spends most time in outermost I/O calls, and that time as a share of the run."""
    runtime = profile.workflow.runtime_s
    timed = [
        app for app in profile.apps if app.balance is not None and app.balance.slowest_call_time_s is not None
    ]
    if not timed or not runtime:
        return None, 0.0
    app = max(timed, key=lambda one: one.balance.slowest_call_time_s or 0.0)  # type: ignore[union-attr]
    assert app.balance is not None
    return app, min(1.0, (app.balance.slowest_call_time_s or 0.0) / runtime)


def is_in_libraries(profile: Profile) -> bool:
    """Most of what the slowest process spends in I/O calls is spent in libraries and not in the file system."""
    workflow = profile.workflow
    _, called = _slowest_in_libraries(profile)
    below = max(workflow.io_time_share or 0.0, workflow.io_time_share_slowest or 0.0)
    return bool(workflow.library_time_s) and called >= HARDLY and called >= 2 * below


def library_words(profile: Profile) -> str:
    """How long the slowest process is inside I/O libraries, where that is much more than in the file system."""
    if not is_in_libraries(profile):
        return ""
    app, share = _slowest_in_libraries(profile)
    assert app is not None and app.balance is not None
    times = profile.workflow.library_time_s or {}
    name = max(times, key=lambda layer: (times[layer].total, layer))
    outside = times[name].outside_file_system / times[name].total if times[name].total else 0.0
    part = "nearly all" if outside >= _NEARLY_ALL else format_share(outside)
    rank = app.balance.slowest_call_rank
    of = f" of {one_line(app.name)}" if len(profile.apps) > 1 else ""
    return (
        f"rank {rank}{of} is inside {_LIBRARIES.get(name, name)} calls for {format_share(share)} of the run; "
        f"{part} of that time is exchange and waiting between processes, not storage."
    )


def cause(profile: Profile) -> str:
    """The function that costs most I/O time (has most calls, where no times are known), and the next one."""
    calls = [call for call in profile.workflow.io.calls or () if call.name is not None]
    if not calls:
        return ""
    first = calls[0]
    if first.time_s is None:
        return f"{one_line(first.name or '')}: {format_count(first.count)} of the calls."
    whole = sum(call.time_s or 0.0 for call in profile.workflow.io.calls or ())
    if not whole:
        return ""
    share = first.time_s / whole
    text = f"{one_line(first.name or '')}: {_count(first)}, {format_share(share)} of the I/O time"
    if share < _SECOND and len(calls) > 1 and calls[1].time_s:
        second = calls[1]
        text += f"; {one_line(second.name or '')}: {_count(second)}, {format_share((second.time_s or 0.0) / whole)}"
    return f"{text}.{_safe(profile)}"


def _count(call: CallCost) -> str:
    plural = "call" if call.count == 1 else "calls"
    return f"{format_count(call.count)} {plural}"


def _safe(profile: Profile) -> str:
    """How fast data is safe, where flushing takes a part of the time that shows."""
    io = profile.workflow.io
    if io.bandwidth.write_synced is None or io.time_share is None or (io.time_share.sync or 0.0) < HARDLY:
        return ""
    return f" Data is safe at {format_rate(io.bandwidth.write_synced)}."
