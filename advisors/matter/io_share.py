"""MAT001: is I/O a part of the run that is worth anyone's time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.base import Evidence, Finding, Gain, Rule, Target, Verdict, seconds
from vani.advisors.models.io_time import HARDLY, IOTime, io_time
from vani.units import format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class IOShare(Rule):
    """Whether I/O matters in this run, and how many seconds faster I/O could win at most.

    Looks at
        The I/O time of the slowest process, the mean over all processes, and the time in which any
        process does I/O, each as a share of the run.
    Why
        Nothing that is done to storage wins more than the time that the run spends there. Where that is next
        to nothing, every other recommendation is true and useless.
    Recommends
        To go on or to stop here: the verdict, and the seconds that bound every other recommendation. The
        estimate is the I/O time of the slowest process, since most parallel programs wait for it (of a workload
        of several traces, of all of them together); the range reaches from the mean over the processes (nobody
        waits) to the time in which any process does I/O (a hard bound). Below `hardly` the verdict is "hardly",
        and all other recommendations are lowered to `info`.
    Stays silent when
        The profile was made without reading time stamps, so that it has no times.
    Source
        Vani paper, table I (I/O share of six workloads: 11 % to 75 %). 5 %: removing it all makes a run 1.05
        times as fast, while repetitions of one write differ by more than 1.3 in 10 % (Cetus) to 50 % (Titan)
        of the samples of Xie et al., section IV-D.
    Example
        CM1 on 1,280 processes runs for 668 s, of which its slowest process spends 4.1 s (0.6 %) in I/O: "I/O
        hardly matters here".
    """

    id = "MAT001"
    name = "io-share"
    family = "matter"
    sources = ("Vani paper, table I", "Xie et al., section IV-D")
    # See Source: a gain this small is within the noise of repeated runs.
    hardly = HARDLY

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - time needs no machine
        time = io_time(profile)
        return [
            Finding(
                target=Target("job"),
                reason=self._sentence(time, seen=seconds(profile.workflow.io.time_s.total) > 0),
                # The estimate rests on who waits for whom, which file-system calls alone do not show.
                confidence=0.9 if time.share < self.hardly or time.slowest_s >= 0.9 * time.busy_s else 0.7,
                touched_s=time.slowest_s,
                recommended={},
                current={
                    "io_share_slowest_process": time.share,
                    "io_share_mean": time.mean_s / time.runtime_s if time.runtime_s else 0.0,
                    "io_share_any_process": time.busy_s / time.runtime_s if time.runtime_s else 0.0,
                },
                evidence=self._evidence(profile),
                gain=Gain(
                    metric="runtime_s",
                    before_s=time.runtime_s,
                    after_s=time.runtime_s - time.slowest_s,
                    best_s=time.runtime_s - time.busy_s,
                    worst_s=time.runtime_s - time.mean_s,
                    method="upper bound: the run without the I/O time of its slowest process"
                    f"{', all traces together' if time.traces > 1 else ''}; "
                    "low: without the mean I/O time, high: without all time in which any process does I/O",
                ),
            )
        ]

    def _sentence(self, time: IOTime, *, seen: bool) -> str:
        if not seen:
            return "I/O does not matter here: the run has no file-system call that takes time."
        who = f"rank {time.slowest[1]} of {time.slowest[0]}" if time.slowest else "the slowest process"
        together = ""
        if time.traces > 1:
            together = ", all traces together"
            who += f" ({format_seconds(time.slowest_of_all_s)})"
        part = f"{format_seconds(time.slowest_s)} of {format_seconds(time.runtime_s)}"
        if time.share < self.hardly:
            return (
                f"I/O hardly matters here: {part} ({format_share(time.share)}) at most could be won{together}; "
                f"the slowest process is {who}."
            )
        mean = time.mean_s / time.runtime_s
        uneven = ""
        if time.traces <= 1 and mean < 0.8 * time.share:
            uneven = f", on average a process spends {format_share(mean)}"
        return (
            f"I/O matters: {part} ({format_share(time.share)}) could be won at most{together}; "
            f"slowest is {who}{uneven}."
        )

    @staticmethod
    def _evidence(profile: Profile) -> list[Evidence]:
        found = [
            Evidence("workflow.runtime_s", profile.workflow.runtime_s),
            Evidence("workflow.io_time_share", profile.workflow.io_time_share),
            Evidence("workflow.io.busy_s.total", profile.workflow.io.busy_s.total),
        ]
        slow = [
            (seconds(app.balance.slowest_io_time_s), f"apps[{index}].balance.slowest_io_time_s")
            for index, app in enumerate(profile.apps)
            if app.balance is not None
        ]
        # The few apps that weigh most: a workflow may have hundreds.
        return found + [Evidence(where, value) for value, where in sorted(slow, reverse=True)[:3]]
