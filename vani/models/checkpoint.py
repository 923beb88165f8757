"""Checkpoints among the write phases of an app: which they are, what one costs, how often to write one.

A simulation writes states of about the same size at a fixed interval (Xie et al., section II-A). Among an app's phases,
checkpoints are those that write at least a given share of the largest one's bytes; similar phases are one row
of the profile, so one row may be many checkpoints. One costs

    C = I/O time of the app's writing between the first and the last / number of checkpoints

(time in which at least one process wrote, flushed or did metadata, reading phases left out, as far as the run waits for
it: see `run_time.py`), and comes every

    I = (start of the last - start of the first) / (number - 1)

seconds. The share of I/O is C / I; I/O stays below a share s if I >= C / s (Xie et al., section II-A: users limit
the cost of checkpoints to 10 % of the run by their write frequency). With failures every M seconds on average, least
work is lost and least written at an interval of

    sqrt(2 * C * M)

(Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; Daly, FGCS 22, 2006, has the
same to first order for C far below M). A run that is shorter than that needs no checkpoint against failures.

An app that rereads much of its output is not a simulation that saves its state: it checks its output, as
benchmarks do, or works out of core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.models.run_time import app_share, seconds
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Phase, Profile

__all__ = ["Checkpoints", "checkpoints"]


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one app.

    `phases` are positions in `profile.phases`, which are `count` phases. `size` is the mean of bytes that one writes;
    `cost_s` C, `interval_s` I; `processes` the most that took part in one.
    """

    app: str
    phases: tuple[int, ...]
    count: int
    size: int
    cost_s: float
    interval_s: float
    processes: int

    @property
    def share(self) -> float:
        """Share of the time between two checkpoints that I/O takes."""
        return min(1.0, self.cost_s / self.interval_s) if self.interval_s > 0 else 1.0

    def shortest(self, share: float) -> float:
        """Seconds from one checkpoint to the next at which I/O takes `share` of the run."""
        return self.cost_s / share

    def best(self, mtbf_s: float) -> float:
        """Seconds from one to the next at which, with a failure every `mtbf_s` seconds, least time is lost."""
        return math.sqrt(2 * self.cost_s * mtbf_s)


def checkpoints(
    profile: Profile, *, least_bytes: float, alike: float, least_count: int
) -> tuple[list[Checkpoints], str]:
    """Find each app's checkpoints; where no app has any, return the reason as a sentence.

    Parameters
    ----------
    least_bytes
        Least bytes of a checkpoint.
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
    of_apps: list[Checkpoints] = []
    known, reading = False, ""
    for app, phases in by_app.items():
        known = known or any(phase.io.bytes.written is not None for _, phase in phases)
        most = max(_written(phase) for _, phase in phases)
        chosen = [
            (index, phase)
            for index, phase in phases
            if _written(phase) >= max(least_bytes, alike * most) and phase.io.bytes.written
        ]
        app_entity = next((entity for entity in profile.apps if entity.name == app), None)
        # Phases of several runs of one executable are no sequence of one run.
        enough = sum(phase.count for _, phase in chosen) >= least_count
        if enough and _reads_back(app, profile, alike):
            reading = app
        elif enough and (app_entity is None or app_entity.instances == 1):
            of_apps.append(
                _of_app(app, chosen, phases, 1.0 if app_entity is None else app_share(app_entity, "total"))
            )
    if not known:
        return [], "phases[].io.bytes.written is not known; supply a trace with sizes"
    if reading and not of_apps:
        return [], f"{reading} rereads its output, so these are not checkpoints"
    amount = format_bytes(least_bytes)
    return of_apps, "" if of_apps else (
        f"no app writes {least_count} times or more about the same amount, {amount} at least"
    )


def _written(phase: Phase) -> float:
    """Bytes that each repetition writes."""
    return (phase.io.bytes.written or 0) / phase.count


def _reads_back(app: str, profile: Profile, alike: float) -> bool:
    """True where the app rereads much of its output; a restart reads one state of several."""
    own = [file.io for file in profile.files if file.writers and file.apps == [app]]
    written = sum(io.bytes.written or 0 for io in own)
    read = sum(min(io.bytes.read or 0, io.bytes.written or 0) for io in own)
    return bool(written) and read >= alike * written


def _without_reading(phase: Phase) -> float:
    write, read = seconds(phase.io.busy_s.write), seconds(phase.io.busy_s.read)
    return write + max(0.0, seconds(phase.io.busy_s.total) - write - read)


def _of_app(
    app: str, chosen: Sequence[tuple[int, Phase]], phases: Sequence[tuple[int, Phase]], share: float
) -> Checkpoints:
    count = sum(phase.count for _, phase in chosen)
    spans = [span for _, phase in chosen for span in phase.spans]
    first, last = min(spans)[0], max(spans)
    # Parts of a checkpoint may be separate phases: a header before it, folders, a rename after it.
    costs = sum(
        _without_reading(phase) * sum(first <= start <= last[1] for start, _ in phase.spans) / phase.count
        for _, phase in phases
        if phase.kind != "read"
    )
    return Checkpoints(
        app=app,
        phases=tuple(index for index, _ in chosen),
        count=count,
        size=round(sum(phase.io.bytes.written or 0 for _, phase in chosen) / count),
        cost_s=share * costs / count,
        interval_s=(last[0] - first) / (count - 1),
        processes=max(phase.processes for _, phase in chosen),
    )
