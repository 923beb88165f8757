"""Remarks beside the verdict: what keeps the numbers of a report from being what they seem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vani.render.report.bounds import Limits, clip
from vani.render.wording import judged_part, matters
from vani.schema.advice import Advice
from vani.schema.profile import Profile
from vani.units import format_bytes, format_count, format_share

__all__ = ["library_time", "remarks"]

MOST: Final = 12

# The share of a run below which MAT001 calls I/O hardly worth a change: the same holds for libraries.
_HARDLY: Final = 0.05

_LIBRARIES: Final = {"hdf5": "HDF5", "mpiio": "MPI-IO", "netcdf": "NetCDF", "pnetcdf": "PnetCDF"}


def remarks(profile: Profile, advice: Advice, limits: Limits) -> tuple[str, ...]:
    """All remarks, what touches most numbers first."""
    found = [
        *_damage(profile),
        *library_time(profile),
        *(why for key, why in profile.provenance.items() if key.startswith("traces[")),
        *_unseen_writes(profile),
        *_doubts(profile),
    ]
    if profile.workflow.runtime_s is None:
        why = profile.provenance.get("workflow.runtime_s") or "the profile was made without time stamps"
        if why not in matters(advice, profile):
            found.append(why)
    if advice.profile.files is not None:
        found.append(judged_part(advice.profile.files))
    return tuple(clip(one, limits.prose) for one in found[:MOST])


def library_time(profile: Profile) -> list[str]:
    """Apps that spend much more of their run in calls of a library than in the file-system calls below it.

    I/O time counts file-system calls alone: the time in which a collective call waits for other processes is in none.
    """
    said = []
    for app in profile.apps:
        seconds = app.processes * (app.runtime_s or 0.0)
        layers = [
            (layer.time_s, _LIBRARIES[layer.layer])
            for layer in profile.interfaces
            if layer.app == app.name and layer.layer in _LIBRARIES and layer.time_s is not None
        ]
        if not seconds or not layers or app.io.time_s.total is None:
            continue
        time, name = max(layers)
        share, below = min(1.0, time / seconds), app.io.time_s.total / seconds
        if share - below >= _HARDLY:
            who = clip(app.name, 40) if len(profile.apps) > 1 else "a process"
            said.append(
                f"On average {who} spends {format_share(share)} of the run in calls of {name}, but "
                f"{format_share(below)} in file-system calls: the rest is the library's own work or waiting for "
                "other processes, which is not I/O time and which faster storage does not change."
            )
    return said[:3]


def _damage(profile: Profile) -> Iterator[str]:
    damaged = [trace for trace in profile.traces if trace.complete is False or trace.problems]
    if not damaged:
        return
    one = damaged[0]
    what = f": {one.problems[0]}" if one.problems else ""
    further = len(one.problems) - 1
    if further > 0:
        what += f" (and {format_count(further)} more problem{'s' * (further > 1)})"
    traces = len(damaged) - 1
    more = f"; {format_count(traces)} more trace{'s are' if traces > 1 else ' is'} damaged" if traces else ""
    yield f"{one.path} is not complete, and what it lacks is in no number here{what}{more}"


def _unseen_writes(profile: Profile) -> Iterator[str]:
    """Apps whose files others read though no byte was seen to be written to them."""
    edges = profile.workflow.app_dependencies or ()
    makers = dict.fromkeys(edge.producer for edge in edges if edge.bytes_read and not edge.bytes_written)
    if makers:
        names = [clip(name, 40) for name in makers]
        who = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield (
            f"Others read files of {who} to which no write is in the trace: formatted output, such as fprintf, often "
            "leaves no record. Bytes written are more than shown."
        )


def _doubts(profile: Profile) -> Iterator[str]:
    past = profile.workflow.io.past_end.read
    if past:
        yield f"{format_bytes(past)} of the reads lie past the end of their file: asked for in vain."
    for side in ("read", "write"):
        why = profile.provenance.get(f"io.bandwidth.{side}")
        if why:
            yield f"Bandwidth of {side}s: {why}"
