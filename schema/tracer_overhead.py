"""Times lengthened by the tracer; advice promises no seconds computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Rules use this module, and listing rules must not load pydantic.
    from vani.schema.profile import Profile

OVERHEAD_S: Final = 50e-6
"""Seconds that strace adds to each call, some (docs/tracing.md)."""

_TOOLS: Final = {"strace": "some 50 us"}
"""Tracers that stop a program at each call, and what that adds to each (docs/tracing.md)."""


def overhead_of(profile: Profile) -> tuple[str, str] | None:
    """The tracer that lengthened times, and by how much per call; None if the times are the program's own.

    Counts, bytes and order stay correct. The share of the run spent in I/O is an upper bound, because time added to
    calls is also added to the run.
    """
    for trace in profile.traces:
        if trace.tool in _TOOLS:
            return trace.tool, _TOOLS[trace.tool]
    return None
