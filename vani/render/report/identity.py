"""The identity of a report's run: time, program, command, job, user, number of nodes, and tracer.

The page and the ticket show it first, so that printed copies can be distinguished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from vani.render.report.bounds import Limits, clip
from vani.render.wording import tracer_of
from vani.schema.damage import damage
from vani.schema.profile import Profile
from vani.units import counted, format_count

_SHOWN: Final = 3
"""Maximum number of names to list."""
_LAST: Final = 253_402_300_799.0
"""Last second of the year 9999; a clock with a later time is broken."""


@dataclass(frozen=True)
class Fact:
    """A line of "what ran": a label, its value, and a qualification."""

    label: str
    value: str
    note: str = ""
    key: str = ""
    """Attribute of the profile, such as `workflow.io.bytes.read`."""


def identity(profile: Profile, users: Sequence[str], limits: Limits) -> tuple[Fact, ...]:
    """Facts that identify the run; for unknown ones, a note or how to get them.

    Parameters
    ----------
    users
        Users who ran it, from the names of the trace folders; empty if these contain none, although the profile
        may.
    """
    tools = dict.fromkeys(tracer_of(trace.tool, trace.format) for trace in profile.traces)
    programs = dict.fromkeys(app.name for app in profile.apps)
    nodes = profile.job.nodes
    return (
        Fact("Run", _when(profile)),
        Fact("Program", _some(list(programs), limits)),
        *_command(profile, limits),
        _job(profile, limits),
        Fact("User", _some(list(dict.fromkeys(users or filter(None, [profile.job.user]))), limits)),
        Fact("Nodes", format_count(nodes), "" if nodes is not None else "`vani collect` records it"),
        Fact("Traced by", _some(list(tools), limits)),
        Fact("Trace", _state(profile)),
    )


def _when(profile: Profile) -> str:
    starts = [trace.start_unix_s for trace in profile.traces if trace.start_unix_s is not None]
    if not starts or not 0 < min(starts) <= _LAST:
        return "date unknown"
    return f"{datetime.fromtimestamp(min(starts), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _job(profile: Profile, limits: Limits) -> Fact:
    job_id = profile.job.id
    if job_id is None:
        return Fact("Job", "unknown", "`vani collect` records it")
    return Fact("Job", clip(" ".join(filter(None, (profile.job.scheduler, job_id))), limits.path // 4))


def _command(profile: Profile, limits: Limits) -> tuple[Fact, ...]:
    """The command line, which few tracers record."""
    command = profile.job.command
    return (Fact("Command", clip(command, 2 * limits.path)),) if command else ()


def _some(names: Sequence[str], limits: Limits) -> str:
    shown = [clip(name, limits.path // 4) for name in names[:_SHOWN]]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(shown)}{more}" if shown else "unknown"


def _state(profile: Profile) -> str:
    if damage(profile) is not None:
        broken = sum(trace.complete is False for trace in profile.traces)
        return (
            f"damaged ({format_count(broken)} of {counted(len(profile.traces), 'trace')})"
            if broken
            else "damaged"
        )
    return "complete" if all(trace.complete for trace in profile.traces) else "not checked (no times were read)"
