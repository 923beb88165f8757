"""Which write phases of an app are its checkpoints, what one costs, and how often one may be written.

A simulation writes states of about the same size at a fixed interval (Xie et al., section II-A). Of an app's phases,
checkpoints are those that write at least a given share of what the largest writes. One costs

    C = I/O time of the app's writing between the first and the last / number of checkpoints

(time in which at least one process wrote or did metadata, reading phases left out), and comes every

    I = (start of the last - start of the first) / (number - 1)

seconds. The share of I/O is C / I; I/O stays below a share s if I >= C / s (Xie et al., section II-A: users limit
the cost of checkpoints to 10 % of the run by their write frequency).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.base import seconds
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Phase, Profile

__all__ = ["Checkpoints", "checkpoints"]


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one app.

    `phases` holds positions in `profile.phases`. `size` is the mean of bytes that one writes; `cost_s` C,
    `interval_s` I; `processes` the most that took part in one.
    """

    app: str
    phases: tuple[int, ...]
    size: int
    cost_s: float
    interval_s: float
    processes: int

    @property
    def count(self) -> int:
        return len(self.phases)

    @property
    def share(self) -> float:
        """Share of the time between two checkpoints that I/O takes."""
        return min(1.0, self.cost_s / self.interval_s) if self.interval_s > 0 else 1.0

    def shortest(self, share: float) -> float:
        """Seconds from one checkpoint to the next at which I/O takes `share` of the run."""
        return self.cost_s / share


def checkpoints(
    profile: Profile, *, least_bytes: float, alike: float, least_count: int
) -> tuple[list[Checkpoints], str]:
    """Find each app's checkpoints; where no app has any, say why as a sentence.

    Parameters
    ----------
    least_bytes
        What a checkpoint writes at least.
    alike
        Share of the largest, 0..1, that it writes at least.
    least_count
        How many there are at least; one has no interval.
    """
    by_app: dict[str, list[tuple[int, Phase]]] = {}
    for index, phase in enumerate(profile.phases or ()):
        by_app.setdefault(phase.app, []).append((index, phase))
    if not by_app:
        return [], "the run has no I/O phases"
    found: list[Checkpoints] = []
    known = False
    for app, phases in by_app.items():
        written = [phase.io.bytes.written for _, phase in phases]
        known = known or any(size is not None for size in written)
        most = max((size for size in written if size is not None), default=0)
        chosen = [
            (index, phase)
            for index, phase in phases
            if (phase.io.bytes.written or 0) >= max(least_bytes, alike * most) and phase.io.bytes.written
        ]
        one = next((one for one in profile.apps if one.name == app), None)
        # Phases of several runs of one executable are no sequence of one run.
        if len(chosen) >= least_count and (one is None or one.instances == 1):
            found.append(_of_app(app, chosen, phases))
    if not known:
        return [], "phases[].io.bytes.written is not known; supply a trace that holds sizes"
    amount = format_bytes(least_bytes)
    return found, "" if found else (
        f"no app writes {least_count} times or more about the same amount, {amount} at least"
    )


def _without_reading(phase: Phase) -> float:
    write, read = seconds(phase.io.busy_s.write), seconds(phase.io.busy_s.read)
    return write + max(0.0, seconds(phase.io.busy_s.total) - write - read)


def _of_app(
    app: str, chosen: Sequence[tuple[int, Phase]], phases: Sequence[tuple[int, Phase]]
) -> Checkpoints:
    first, last = chosen[0][1].start_s, chosen[-1][1]
    # What belongs to a checkpoint may be phases of its own: a header before it, folders, a rename after it.
    costs = sum(
        _without_reading(phase)
        for _, phase in phases
        if first <= phase.start_s <= last.end_s and phase.kind != "read"
    )
    sizes = [phase.io.bytes.written or 0 for _, phase in chosen]
    return Checkpoints(
        app=app,
        phases=tuple(index for index, _ in chosen),
        size=round(sum(sizes) / len(sizes)),
        cost_s=costs / len(chosen),
        interval_s=(last.start_s - first) / (len(chosen) - 1),
        processes=max(phase.processes for _, phase in chosen),
    )
