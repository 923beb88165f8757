"""CKP001: how often a program can write its state while I/O stays a small share of the run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict
from vani.models.checkpoint import Checkpoints, checkpoints
from vani.units import format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

_SHOWN = 3


class CheckpointInterval(Rule):
    """Checkpoints come more often than their cost allows, or could come more often for what they cost.

    Looks at
        The write phases of each app that write about the same amount: how many, how far apart, and the I/O time
        of one of them.
    Why
        The interval is a setting of the program, and its cost is a choice: I/O time of one checkpoint over
        the time from one to the next. What is lost in a failure is half an interval on average, so
        neither too often nor too seldom is right.
    Recommends
        The shortest interval at which I/O stays below `budget` of the run: cost / `budget`. Where checkpoints
        come more often, so many seconds are won; where they come less often, they may come as often as
        that for the price.
    Stays silent when
        No app writes twice or more about the same amount, or less than `min_bytes` each time; the bytes of the phases
        are not known; the write time is 0 by the trace's clock; the interval is within `tolerance` of the advised one.
    Source
        Xie et al., section II-A (the cost of checkpoints is limited to 10 % of the run by choosing the write
        frequency) and section IV-D (repetitions of a write differ by more than 1.3 in half of Titan's samples).
    Example
        A run writes 34 MB every 140 ms, each taking 65 ms, 46 % of the run: at an interval of 650 ms it is 10 %.
    """

    id = "CKP001"
    name = "checkpoint-interval"
    family = "workflow"
    needs = ("phases",)
    sources = ("Xie et al., section II-A", "Xie et al., section IV-D")

    # Xie et al., section II-A: "limit the checkpointing cost to 10 % of job execution times".
    budget = 0.10
    # The smallest burst that Xie et al. measured (table III): 1 MB.
    min_bytes = 1_000_000
    # States have the same variables each time (Xie et al., section II-A), so half of the largest is another thing.
    alike = 0.5
    # One checkpoint has no interval.
    min_count = 2
    # Xie et al., section IV-D: repetitions differ by a factor of 1.3, so an interval this near is the same.
    tolerance = 1.3

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - time needs no machine
        found, why = checkpoints(
            profile, least_bytes=self.min_bytes, alike=self.alike, least_count=max(2, int(self.min_count))
        )
        if not found:
            return self.nothing(why)
        timed = [one for one in found if one.cost_s > 0 and one.interval_s > 0]
        if not timed:
            return self.nothing("the checkpoints take no time that the trace's clock shows")
        tolerance = max(1.0, self.tolerance)
        off = [
            one
            for one in timed
            if not 1 / tolerance <= one.interval_s / one.shortest(self.budget) <= tolerance
        ]
        if not off:
            return self.nothing(
                f"checkpoints already take about {format_share(self.budget)} of the time between them"
            )
        return [self._finding(one, profile) for one in off]

    def _finding(self, one: Checkpoints, profile: Profile) -> Finding:
        shortest = one.shortest(self.budget)
        too_often = one.interval_s < shortest
        every = math.ceil(shortest / one.interval_s)
        writes = (
            f"{one.app} writes {format_bytes(one.size)} every {format_seconds(one.interval_s)}, {one.count} times, and "
            f"each takes {format_seconds(one.cost_s)} ({format_share(one.share)} of the time between two)."
        )
        if too_often:
            what = (
                f" Every {format_seconds(shortest)} (one in {every}), I/O stays below "
                f"{format_share(self.budget)} of the run."
            )
        else:
            what = (
                f" It may write every {format_seconds(shortest)} and still stay below {format_share(self.budget)}: "
                "less work is lost in a failure."
            )
        first, phases = one.phases[0], profile.phases or []
        return Finding(
            target=Target("app", None, one.app),
            reason=writes + what,
            # Phases are taken for checkpoints by their sizes alone, and costs vary between runs.
            confidence=0.7 if one.count > 2 else 0.5,
            touched_s=one.cost_s * one.count if too_often else 0.0,
            recommended={"interval_s": shortest, "io_share": self.budget},
            current={"interval_s": one.interval_s, "io_share": one.share},
            evidence=[
                Evidence(f"phases[{first}].app", one.app),
                Evidence(f"phases[{first}].start_s", phases[first].start_s),
                Evidence(f"phases[{first}].io.bytes.written", phases[first].io.bytes.written),
                Evidence(f"phases[{first}].io.busy_s.total", phases[first].io.busy_s.total),
                Evidence(f"phases[{one.phases[-1]}].end_s", phases[one.phases[-1]].end_s),
                *(
                    Evidence(f"phases[{index}].repeats.count", repeats.count)
                    for index in one.phases[:_SHOWN]
                    if (repeats := phases[index].repeats) is not None
                ),
            ],
            gain=self._gain(one, shortest) if too_often else None,
            apply=comment(
                f"in the input of {one.app}: write a checkpoint every {format_seconds(shortest)}"
                + (f", that is one in {every}" if too_often and every > 1 else "")
            ),
        )

    def _gain(self, one: Checkpoints, shortest: float) -> Gain:
        before = one.cost_s * one.count
        left = one.interval_s / shortest
        return Gain(
            metric="write_time_s",
            before_s=before,
            after_s=before * left,
            best_s=before * left / self.tolerance,
            worst_s=min(before, before * left * self.tolerance),
            method="checkpoints fewer by the ratio of the intervals, each as costly as now; range: repetitions "
            f"differ by {self.tolerance} (Xie et al., section IV-D)",
        )
