"""The phases of runs, as they are shown."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PhaseOfRun", "RunPhases"]


@dataclass(frozen=True)
class PhaseOfRun:
    """A phase: its id, when it begins and how long it lasts in seconds, and bytes per second in it."""

    phase: int
    begin_s: float
    length_s: float
    read_per_s: float
    written_per_s: float


@dataclass(frozen=True)
class RunPhases:
    """A run: where it was read from, what its series is from and how fine it is, its behaviour and its phases."""

    path: str
    source: str
    behaviour: int
    step_s: float
    phases: tuple[PhaseOfRun, ...]
