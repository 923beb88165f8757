"""How many seconds of a run faster I/O could win at most, and which findings they make urgent.

Three readings of "the I/O time" of a run of T seconds with processes p:

- busy: length of the union of all I/O intervals of all processes. Outside it nobody does I/O, so no change to
  I/O can win more (any critical path of the run lies in I/O only while someone does I/O). A hard bound, far
  too high where many processes do a little I/O each at different times.
- slowest: the I/O time of the slowest process. What is won if the run waits for that process, the usual case
  in bulk-synchronous programs, hence the estimate. Of an app with several instances, which may depend on each
  other, the busy time is taken, and apps are added up; busy of the whole workload is the bound again.
- mean: mean over the processes, of the run of the whole workload. What is won if no process ever waits for another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.base import seconds

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile

__all__ = ["HARDLY", "IOTime", "io_time"]

# Removing all of 5 % of a run makes it 1.05 times as fast. That is not visible between runs of one and the
# same job: Xie et al. (section IV-D) saw write times that differ by more than 1.3 between repetitions for 10
# % (Cetus) and 50 % (Titan) of their samples, and the Vani paper's workloads that gained from tuning spent 11
# % to 75 % (table I).
HARDLY = 0.05
"""Share of the run below which I/O hardly matters."""


@dataclass(frozen=True)
class IOTime:
    """Seconds, see the module; mean_s <= slowest_s <= busy_s up to rounding, and none is above runtime_s.

    `slowest` names the process behind `slowest_s` as `(app, rank)`; None where the profile does not say. Of a
    workload of several traces it is only the slowest of all, and `slowest_s` is that of all traces together.
    """

    runtime_s: float
    mean_s: float
    slowest_s: float
    busy_s: float
    slowest: tuple[str, int] | None
    slowest_of_all_s: float
    """I/O time of that process alone."""
    traces: int
    """Of the workload."""

    @property
    def share(self) -> float:
        """Share of the run, 0..1, that `slowest_s` is; 0 for a run that took no time."""
        return self.slowest_s / self.runtime_s if self.runtime_s else 0.0


def io_time(profile: Profile) -> IOTime:
    """Read the three from a profile that has times."""
    runtime = seconds(profile.workflow.runtime_s)
    busy = min(seconds(profile.workflow.io.busy_s.total), runtime)
    slowest = min(busy, sum(_of_app(app) for app in profile.apps)) if profile.apps else busy
    balanced = [(app.name, app.balance) for app in profile.apps if app.balance is not None]
    worst = max(balanced, key=lambda pair: seconds(pair[1].slowest_io_time_s), default=None)
    traces = sum(app.instances for app in profile.apps)
    # Of several traces each share is one of its app's run, which may be a small part of the workload's.
    mean = profile.workflow.io_time_share if traces <= 1 else None
    if mean is None:
        processes = max(1, profile.workflow.processes)
        mean = seconds(profile.workflow.io.time_s.total) / processes / runtime if runtime else 0.0
    return IOTime(
        runtime_s=runtime,
        mean_s=min(mean * runtime, slowest),
        slowest_s=slowest,
        busy_s=busy,
        slowest=(worst[0], worst[1].slowest_rank) if worst and worst[1].slowest_rank is not None else None,
        slowest_of_all_s=seconds(worst[1].slowest_io_time_s) if worst else slowest,
        traces=traces,
    )


def _of_app(app: App) -> float:
    if app.balance is None or app.instances > 1:
        return seconds(app.io.busy_s.total)
    return min(seconds(app.balance.slowest_io_time_s), seconds(app.io.busy_s.total))
