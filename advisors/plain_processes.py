"""Processes that only run side by side: no ranks that share one job among them, as those of MPI do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile

__all__ = ["are_plain"]


def are_plain(app: App, profile: Profile) -> bool:
    """Whether an app's processes are whatever its program began: a shell's children, workers of a data loader.

    Of MPI programs strace leaves a log per rank, of others one with all processes; other tracers see ranks.
    """
    return any(
        trace.tool == "strace" and trace.layout == "processes" and trace.app == app.name
        for trace in profile.traces
    )
