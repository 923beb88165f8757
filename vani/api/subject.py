"""The run that settings apply to: its application, machine and scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.errors import one_line

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

@dataclass(frozen=True)
class Subject:
    """The run that settings apply to; unknown facts are None.

    Attributes
    ----------
    machine
        Name of the machine's description; None also for a machine with typical figures.
    runtime_s
        Duration of the run in seconds.
    """

    application: str | None = None
    machine: str | None = None
    processes: int | None = None
    nodes: int | None = None
    runtime_s: float | None = None


def subject_of(profile: Profile, machine: System | None) -> Subject:
    """Describe a profile's run on a machine."""
    return Subject(
        application=one_line(profile.application)[:200] if profile.apps else None,
        machine=None if machine is None or machine.generic else machine.name,
        processes=profile.workflow.processes or None,
        nodes=profile.job.nodes or None,
        runtime_s=profile.workflow.runtime_s,
    )
