"""Times that the tracer made longer: no advice promises seconds that are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Rules check it, and listing rules loads no pydantic.
    from vani.schema.profile import Profile

__all__ = ["OVERHEAD_S", "inflated_by"]

OVERHEAD_S: Final = 50e-6
"""Seconds that strace adds to each call, some (docs/tracing.md)."""

_TOOLS: Final = {"strace": "some 50 us"}
"""Tracers that stop a program at each call, and what that adds to each (docs/tracing.md)."""


def inflated_by(profile: Profile) -> tuple[str, str] | None:
    """The tracer that made times longer, and by how much a call; None where times are those of the program.

    Counts, bytes and order stay correct. A share of the run that is spent in I/O is an upper bound: what is added to
    calls is added to the run, too.
    """
    for trace in profile.traces:
        if trace.tool in _TOOLS:
            return trace.tool, _TOOLS[trace.tool]
    return None
