"""Lines about the bytes that a run transferred, and which of its apps took the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.units import counted, format_bytes, format_rate, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile

SHOWN = 3
"""Number of apps that fit into a line; the profile has them all."""


def by_app(profile: Profile) -> str:
    """The apps that take the I/O time, if there are several."""
    times = [(app.io.time_s.total or 0.0, one_line(app.name)) for app in profile.apps]
    whole = sum(time for time, _ in times)
    if len(times) < 2 or not whole:
        return ""
    most = sorted(times, key=lambda pair: (-pair[0], pair[1]))[:SHOWN]
    return f"{', '.join(f'{name} {format_share(time / whole)}' for time, name in most)} of the I/O time"


def moved(profile: Profile) -> str:
    """Bytes written and read, with the number of calls and the rate."""
    io = profile.workflow.io
    parts = []
    for done, amount, count, rate, side in (
        ("written", io.bytes.written, io.ops.write, io.bandwidth.write, "write"),
        ("read", io.bytes.read, io.ops.read, io.bandwidth.read, "read"),
    ):
        if not count:
            continue
        text = f"{format_bytes(amount)} {done} by {counted(count, 'call')}"
        if f"io.bandwidth.{side}" in profile.provenance and rate is None:
            text += " (at an impossible rate: see below)"
        elif rate:
            text += f" at {_rate(profile, side, amount, rate)}"
        parts.append(text)
    return "; ".join(parts)


def _rate(profile: Profile, side: str, amount: int | None, rate: float) -> str:
    """A rate, or its range."""
    low, high = profile.bounds.get(f"workflow.io.busy_s.{side}", (0.0, 0.0))
    if not high or not amount:
        return format_rate(rate)
    least = format_rate(amount / high)
    most = format_rate(amount / low) if low else ""
    return f"{least} or more" if not most else least if least == most else f"{least} to {most}"
