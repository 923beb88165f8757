"""CKP001: how often a program can write its state while I/O stays a small share of the run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vani.advisors.data_files import is_checkpoint
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict, figures, known_figures
from vani.models.checkpoint import Checkpoints, checkpoints
from vani.models.run_time import seconds
from vani.units import format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

_SHOWN = 3


class CheckpointInterval(Rule):
    """Checkpoints come more often than their cost allows, or so seldom that a failure costs more than they do.

    Looks at
        The write phases of each app that write about the same amount: how many, how far apart, and the I/O time
        of one of them; how long the run is.
    Why
        The interval is a setting of the program, and its cost is a choice: I/O time of one checkpoint over the time
        from one to the next. A failure loses half an interval on average, so both too often and too seldom cost time.
    Recommends
        The interval of Young and Daly for a failure every `mtbf_s` seconds, or the shortest at which I/O stays below
        `budget` of the run, whichever is longer. If checkpoints come more often than that and take more than `budget`,
        the gain is the seconds saved. If they come less often, and files are checkpoints by their names, less work is
        lost in a failure.
    Stays silent when
        No app writes `min_count` times or more about the same amount, or less than `min_bytes` each time; what it
        writes it reads again, as benchmarks do; the bytes of the phases are not known; the write time is 0 by the
        trace's clock; the run is shorter than `min_run_s`, or than the interval that would be advised: it is simply
        started again after a failure; the interval is within `tolerance` of the advised one, or I/O within the budget.
    Source
        Young (CACM 17(9), 1974) and Daly (FGCS 22, 2006): the interval. Xie et al., section II-A (the cost of
        checkpoints is limited to 10 % of the run by choosing the write frequency) and section IV-D (repetitions of a
        write differ by more than 1.3 in half of Titan's samples).
    Example
        A run of 12 hours writes 1 TB every 5 min, each taking 100 s, a third of the run: with a failure a day, every
        1 h 9 min is best, and I/O takes 2 %.
    """

    id = "CKP001"
    needs = ("phases",)
    sources = ("Young 1974", "Daly 2006", "Xie et al., section II-A", "Xie et al., section IV-D")

    # Xie et al., section II-A: "limit the checkpointing cost to 10 % of job execution times".
    budget = 0.10
    # The smallest burst that Xie et al. measured (table III): 1 MB.
    min_bytes = 1_000_000
    # A state has the same variables each time (Xie et al., section II-A), so half of the largest is something else.
    alike = 0.5
    # Two similar writes may be the start and the end of a run; three have an interval (our choice).
    min_count = 3
    # A failure per day is typical of a job on a large part of a machine (general knowledge; ask the site).
    mtbf_s = 86_400.0
    # For a shorter run, a failure costs less than setting up checkpoints (our choice).
    min_run_s = 3_600.0
    # Xie et al., section IV-D: repetitions differ by a factor of 1.3, so an interval this close is good enough.
    tolerance = 1.3

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - time needs no machine
        all_series, why = checkpoints(
            profile, least_bytes=self.min_bytes, alike=self.alike, least_count=max(2, int(self.min_count))
        )
        if not all_series:
            return why
        timed = [series for series in all_series if series.cost_s > 0 and series.interval_s > 0]
        if not timed:
            return "the checkpoints take no time that the trace's clock shows"
        runtime = seconds(profile.workflow.runtime_s)
        long = [series for series in timed if runtime >= max(self.min_run_s, self._advised(series))]
        if not long:
            least = max(self.min_run_s, min(self._advised(series) for series in timed))
            return (
                f"the run takes {format_seconds(runtime)}: below {format_seconds(least)} it is restarted after "
                "a failure"
            )
        tolerance = max(1.0, self.tolerance)
        off = [
            series
            for series in long
            # Results may be as rare as users like, and only names distinguish checkpoints from results.
            if (_is_named(series, profile) and series.interval_s > self._advised(series) * tolerance)
            or (
                series.interval_s * tolerance < self._advised(series)
                and series.share > self.budget * tolerance
            )
        ]
        if not off:
            return (
                f"checkpoints take {format_share(max(series.share for series in long))} of the time between them, "
                "and are as frequent as failures require"
            )
        return [self._finding(series, profile) for series in off]

    def _advised(self, series: Checkpoints) -> float:
        return max(series.shortest(self.budget), series.best(self.mtbf_s))

    def _finding(self, series: Checkpoints, profile: Profile) -> Finding:
        shortest = self._advised(series)
        too_often = series.interval_s < shortest
        every = math.ceil(shortest / series.interval_s)
        writes = (
            f"{series.app} writes {format_bytes(series.size)} every {format_seconds(series.interval_s)}, "
            f"{series.count} times, and each takes {format_seconds(series.cost_s)} "
            f"({format_share(series.share)} of the time between two)."
        )
        if too_often:
            advice = (
                f" Every {format_seconds(shortest)} (one in {every}), I/O takes "
                f"{format_share(min(1.0, series.cost_s / shortest))} of the run; with a failure every "
                f"{format_seconds(self.mtbf_s)}, which is typical and not known of this machine, that is enough."
            )
        else:
            advice = (
                f" It may write every {format_seconds(shortest)} and still stay below {format_share(self.budget)}: "
                f"less work is lost in a failure, which typically occurs every {format_seconds(self.mtbf_s)}."
            )
        first, last, phases = series.phases[0], series.phases[-1], profile.phases or []
        return Finding(
            target=Target("app", None, series.app),
            reason=writes + advice,
            # Without names, phases count as checkpoints because of their sizes, and costs vary between runs.
            confidence=0.7 if series.count > 2 and _is_named(series, profile) else 0.5,
            touched_s=series.cost_s * series.count if too_often else 0.0,
            recommended={"interval_s": shortest, "io_share": min(1.0, series.cost_s / shortest)},
            current={"interval_s": series.interval_s, "io_share": series.share},
            evidence=[
                Evidence(f"phases[{first}].app", series.app),
                *figures(phases[first], f"phases[{first}]", "start_s", "io.bytes.written", "io.busy_s.total"),
                *figures(phases[last], f"phases[{last}]", "end_s"),
                *(
                    figure
                    for index in series.phases[:_SHOWN]
                    for figure in known_figures(phases[index], f"phases[{index}]", "repeats.count")
                ),
            ],
            gain=self._gain(series, shortest) if too_often else None,
            apply=(
                f"in the input of {series.app}: write a checkpoint every {format_seconds(shortest)}"
                + (f", that is one in {every}" if too_often and every > 1 else "")
            ),
        )

    def _gain(self, series: Checkpoints, shortest: float) -> Gain:
        before = series.cost_s * series.count
        left = series.interval_s / shortest
        return Gain(
            metric="write_time_s",
            before_s=before,
            after_s=before * left,
            best_s=before * left / self.tolerance,
            worst_s=min(before, before * left * self.tolerance),
            method="checkpoints fewer by the ratio of the intervals, each as costly as now; range: repetitions "
            f"differ by {self.tolerance} (Xie et al., section IV-D)",
        )


def _is_named(series: Checkpoints, profile: Profile) -> bool:
    return any(file.writers and series.app in file.apps and is_checkpoint(file.path) for file in profile.files)
