"""MAT001: is I/O a part of the run that is worth anyone's time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict
from vani.models.io_time import HARDLY, IOTime, io_time
from vani.schema.damage import damage
from vani.schema.inflated import inflated_by
from vani.units import format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

# Library time is reported separately if it exceeds that of file-system calls by this share of the run.
_TOLD_APART = 0.01


class IOShare(Rule):
    """Whether I/O matters in this run, and how many seconds faster I/O could win at most.

    Looks at
        The time of the slowest process in I/O calls, those of libraries with all that happens inside them; its time
        in file-system calls alone; and the time in which any process is in a file-system call. Each as a share of
        the run. Of several traces, which wait for each other, the time in which any process does I/O.
    Why
        Nothing that is done to storage wins more than the time that the run spends there. Where that is next
        to nothing, every other recommendation is true and useless. File-system calls alone do not show it: a
        collective write is exchange and waiting inside MPI-IO first, and few processes then call the file system.
    Recommends
        To go on or to stop here: the verdict, and the seconds that bound every other recommendation and all of them
        together. The estimate is the time of the slowest process in I/O calls, since most parallel programs wait for
        it; the range reaches from its file-system calls alone (what libraries do inside stays) to the time in which
        any process is in one (a hard bound of what storage can win). Below `hardly` the verdict is "hardly", and all
        other recommendations are lowered to `info`; not so of a trace that lost processes or calls. A run below
        `least_run_s`, or with less than `least_io_s` of I/O, is too short to judge: what it spends is that of its
        start, and every recommendation is taken for half as sure.
        Of a trace whose tracer makes calls longer (strace), no seconds are promised; "hardly" holds all the more.
    Stays silent when
        The profile was made without reading time stamps, so that it has no times.
    Source
        Vani paper, table I (I/O share of six workloads: 11 % to 75 %). 5 %: removing it all makes a run 1.05
        times as fast, while repetitions of one write differ by more than 1.3 in 10 % (Cetus) to 50 % (Titan)
        of the samples of Xie et al., section IV-D.
    Example
        CM1 on 1,280 processes runs for 668 s, of which its slowest process spends 4.1 s (0.6 %) in I/O: "I/O
        hardly matters here". IOR with collective MPI-IO spends 0.8 % of its run in file-system calls and 77 % in
        calls of MPI-IO: "I/O matters".
    """

    id = "MAT001"
    name = "io-share"
    family = "matter"
    sources = ("Vani paper, table I", "Xie et al., section IV-D")
    # See Source: a gain this small is within the noise of repeated runs.
    hardly = HARDLY
    # Starting MPI and opening libraries takes some tenths of a second (general knowledge), whatever the run is for.
    least_run_s = 1.0
    # Ours: less is some caches that are cold and a directory that is looked up for the first time.
    least_io_s = 0.1

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - time needs no machine
        time = io_time(profile)
        current: dict[str, Value] = {
            "io_share_calls": time.share,
            "io_share_slowest_process": time.of_run(time.slowest.time_s if time.slowest else time.slowest_s),
            "io_share_any_process": time.of_run(time.busy_s),
        }
        return [
            Finding(
                target=Target("job"),
                reason=self._sentence(time, profile),
                confidence=self._confidence(time),
                touched_s=time.calls_s,
                recommended={},
                current=current,
                evidence=_evidence(profile, time),
                gain=Gain(
                    metric="runtime_s",
                    before_s=time.runtime_s,
                    after_s=time.runtime_s - time.calls_s,
                    best_s=time.runtime_s - max(time.calls_most_s, time.busy_s),
                    worst_s=time.runtime_s - min(time.calls_s, time.slowest_s),
                    method="upper bound: the run without "
                    + (
                        "the time in which any process is in an I/O call"
                        if time.traces > 1
                        else "the time of its slowest process in I/O calls"
                    )
                    + "; low: without its file-system calls, what libraries do inside stays; high: without all time "
                    "in which any process is in one",
                ),
                acts_on="libraries",
            )
        ]

    def is_short(self, time: IOTime) -> bool:
        """True if the run is too short to judge; a long run with next to no I/O is judged."""
        if not time.calls_s:
            return False
        return time.runtime_s < self.least_run_s or (
            time.calls_s < self.least_io_s and time.share >= self.hardly
        )

    def is_hardly(self, time: IOTime, profile: Profile) -> bool:
        """True if I/O hardly matters, which the rest of a damaged trace cannot show."""
        return time.of_run(time.calls_most_s) < self.hardly and damage(profile) is None

    def _confidence(self, time: IOTime) -> float:
        if time.calls_most_s > time.calls_s:
            # Nobody knows where between both ends it is.
            return 0.5
        if time.share < self.hardly:
            return 0.9
        # The estimate rests on who waits for whom, and inside libraries processes wait for those that compute.
        if _is_in_libraries(time):
            return 0.5
        return 0.9 if time.calls_s >= 0.9 * time.busy_s else 0.7

    def _sentence(self, time: IOTime, profile: Profile) -> str:
        is_damaged = damage(profile) is not None
        if not time.calls_s:
            if is_damaged:
                return (
                    "What is left of the trace has no I/O call that takes time: what it lost may have some."
                )
            return "I/O does not matter here: the run has no I/O call that takes time."
        subject = (
            f"{format_seconds(time.calls_s)} of {format_seconds(time.runtime_s)} ({format_share(time.share)})"
        )
        words = _Words(time, alone=profile.workflow.processes == 1)
        if self.is_short(time):
            return (
                f"Too short to judge: {words.who} spends {subject} {words.where}{words.of_these}. Trace a run of at "
                f"least {format_seconds(self.least_run_s)}, with {format_seconds(self.least_io_s)} of I/O."
            )
        inflated = inflated_by(profile)
        if inflated is not None and time.share >= self.hardly:
            tool, much = inflated
            return (
                f"I/O may matter: as {tool} saw it, it takes {subject}, but {tool} adds {much} to each call. Counts "
                "and bytes are exact, seconds are not: none are promised below. A trace of Recorder tells them."
            )
        if time.share >= self.hardly:
            return f"I/O matters: at most {subject} could be won, {words.source}"
        if is_damaged:
            return (
                f"What is left of the trace shows little I/O: at most {subject} could be won, {words.source} What it "
                "lost may have spent more."
            )
        if time.of_run(time.calls_most_s) >= self.hardly:
            return (
                f"I/O may matter: it takes {format_seconds(time.calls_s)} to {format_seconds(time.calls_most_s)} of "
                f"{format_seconds(time.runtime_s)} ({format_share(time.share)} to "
                f"{format_share(time.of_run(time.calls_most_s))}); counts do not tell more, a trace of its calls does."
            )
        if time.traces > 1:
            return (
                f"I/O hardly matters here: {words.who} is {words.where} for {subject}{words.slowest}: storage is not "
                "what this workflow waits for."
            )
        return f"I/O hardly matters here: at most {subject} could be won, {words.source}"


class _Words:
    """The process whose time the bound is, the calls that take it, and the other shares of the run."""

    def __init__(self, time: IOTime, *, alone: bool) -> None:
        self._time = time
        self._several, self._alone = time.traces > 1, alone
        self._in_libraries = _is_in_libraries(time)
        names = time.libraries or ("I/O libraries",)
        self._names = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

    @property
    def who(self) -> str:
        if self._several:
            return "some process"
        if self._alone:
            return "the program"
        part = self._time.caller or self._time.slowest
        return "the slowest process" + ("" if part is None else f" (rank {part.rank})")

    @property
    def where(self) -> str:
        return f"in calls of {self._names}" if self._in_libraries else "in I/O"

    @property
    def of_these(self) -> str:
        if not self._in_libraries:
            return ""
        return f", {format_seconds(self._time.slowest_s)} of it in file-system calls"

    @property
    def slowest(self) -> str:
        part = self._time.caller if self._in_libraries else self._time.slowest
        if part is None:
            return ""
        return f", the slowest (rank {part.rank} of {part.app}) for {self._of_run(part.time_s)}"

    @property
    def source(self) -> str:
        """A sentence's end, and with libraries a sentence more."""
        busy = format_share(self._time.of_run(self._time.busy_s))
        if self._several:
            text = f"the time that some process is {self.where}{self.slowest}."
            if self._in_libraries:
                text += f" Some process is in a file-system call for {self._of_run(self._time.busy_s)}."
            return text
        text = f"the time that {self.who} spends {self.where}"
        if self._in_libraries:
            return (
                f"{text}. In file-system calls the slowest spends {self._of_run(self._time.slowest_s)}, and some "
                f"process is in one for {busy} of the run; the rest is exchange and waiting inside {self._names}."
            )
        return f"{text}." if self._alone else f"{text}; some process does I/O in {busy} of the run."

    def _of_run(self, time_s: float) -> str:
        return f"{format_seconds(time_s)} ({format_share(self._time.of_run(time_s))})"


def _is_in_libraries(time: IOTime) -> bool:
    return time.calls_s - time.slowest_s >= _TOLD_APART * time.runtime_s


def _evidence(profile: Profile, time: IOTime) -> list[Evidence]:
    workflow = profile.workflow
    evidence = [
        Evidence("workflow.runtime_s", workflow.runtime_s),
        Evidence("workflow.io_time_share", workflow.io_time_share),
        Evidence("workflow.io_time_share_slowest", workflow.io_time_share_slowest),
        Evidence("workflow.io.busy_s.total", workflow.io.busy_s.total),
    ]
    evidence += [
        Evidence(part.where, part.time_s) for part in (time.slowest, time.caller) if part is not None
    ]
    evidence += [
        Evidence(f"workflow.library_time_s.{layer}.{key}", getattr(spent, key))
        for layer, spent in (workflow.library_time_s or {}).items()
        for key in ("total", "outside_file_system")
    ]
    return evidence
