"""Checkpoints among an app's write phases: which phases they are, their cost, and how often to write one.

A simulation writes states of about the same size at a fixed interval (Xie et al., section II-A). The checkpoints of an
app are the phases that write at least a given share of the largest phase's bytes. The profile merges similar phases
into one row, so one row may be many checkpoints. A checkpoint costs

    C = I/O time of the app's writing between the first and the last / number of checkpoints

seconds and is written every

    I = (start of the last - start of the first) / (number - 1)

seconds. I/O time is the time in which at least one process writes, flushes or does metadata, without phases that read,
times the share that the run waits for (`run_time.py`). The share of I/O is C / I; I/O stays below a share s if
I >= C / s (Xie et al., section II-A: users limit the cost of checkpoints to 10 % of the run by their write frequency).
With a failure every M seconds on average, the time lost to failures and writing is least at an interval of

    sqrt(2 * C * M)

(Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; Daly, FGCS 22, 2006, gives
the same to first order for C far below M). A run shorter than that needs no checkpoint against failures.

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

@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one app.

    `phases` are indices into `profile.phases`, whose rows are `count` checkpoints. `size` is the mean size in bytes,
    `cost_s` is C and `interval_s` is I. `processes` is the largest number that took part in one.
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
        """Share of the time between two checkpoints that is I/O, 0..1."""
        return min(1.0, self.cost_s / self.interval_s) if self.interval_s > 0 else 1.0

    def shortest(self, share: float) -> float:
        """Interval in seconds at which I/O takes `share` of the run."""
        return self.cost_s / share

    def best(self, mtbf_s: float) -> float:
        """Interval in seconds that loses least time with a failure every `mtbf_s` seconds (Young)."""
        return math.sqrt(2 * self.cost_s * mtbf_s)


def checkpoints(
    profile: Profile, *, least_bytes: float, alike: float, least_count: int
) -> tuple[list[Checkpoints], str]:
    """Find each app's checkpoints. If no app has any, the second value is the reason, as a sentence.

    Parameters
    ----------
    least_bytes
        Least size of a checkpoint.
    alike
        Least size of a checkpoint as a share, 0..1, of the largest.
    least_count
        Least number of checkpoints, at least 2: a single one has no interval.
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
        # Phases of several runs of the same executable do not form one sequence.
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
    """True if the app rereads much of its output. A restart does not: it reads one state of several."""
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
    # Parts of a checkpoint may be phases of their own: a header or new folders before it, a rename after it.
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
