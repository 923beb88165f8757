"""MAT001: whether I/O is a large enough part of the run to matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict, figures
from vani.models.io_time import HARDLY, IOTime, io_time
from vani.schema.damage import damage, overhead_of
from vani.units import format_seconds, format_share

if TYPE_CHECKING:
    import vani.schema.profile as schema
    from vani.schema.profile import Profile
    from vani.schema.system import System

# Library time is reported separately if it exceeds the time of file-system calls by this share of the run.
_SEPARATE_SHARE = 0.01


class IOShare(Rule):
    """Whether I/O matters in this run, and how many seconds faster I/O could save at most.

    Looks at
        The time of the slowest process in I/O calls, those of libraries with all that happens inside them; its time
        in file-system calls alone; and the time in which any process is in a file-system call. Each as a share of
        the run. For several traces, which wait for each other, the time in which any process does I/O.
    Why
        No change of storage saves more than the time that the run spends there. If that is next to nothing, every other
        recommendation is useless even if it is true. File-system calls alone do not show it: a collective write first
        exchanges data and waits inside MPI-IO, and then few processes call the file system.
    Recommends
        Continue or stop here: the verdict of the profile, and the seconds that bound every other recommendation and all
        of them together. The estimate is the time of the slowest process in I/O calls, since most parallel programs
        wait for it; the range reaches from its file-system calls alone (what libraries do inside stays) to the time in
        which any process is in one (a hard bound of what storage can save). Below `hardly` storage is not the run's
        bottleneck, and all other recommendations are lowered to `info`. If the trace lost processes or calls, or proves
        activity that it does not record (`unseen`), the verdict is open instead, and no bound is given. A run below a
        second, or with less than a tenth of a second of I/O, is too short to judge: its time is mostly start-up, and
        every recommendation counts as half as certain. If the tracer makes calls longer (strace), no seconds are
        promised; "hardly" is then even more certain.
    Stays silent when
        The profile was made without reading time stamps, and has no times.
    Source
        Vani paper, table I (I/O share of six workloads: 11 % to 75 %). 5 %: removing it all makes a run 1.05
        times as fast, while repetitions of one write differ by more than 1.3 in 10 % (Cetus) to 50 % (Titan)
        of the samples of Xie et al., section IV-D.
    Example
        CM1 on 1,280 processes runs for 668 s, and its slowest process spends 4.1 s (0.6 %) in I/O: storage
        is not what this run waits for. IOR with collective MPI-IO spends 0.8 % of its run in file-system calls
        and 77 % in calls of MPI-IO: it matters.
    """

    id = "MAT001"
    sources = ("Vani paper, table I", "Xie et al., section IV-D")
    # See Source: a gain this small is within the noise of repeated runs.
    hardly = HARDLY

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - time needs no machine
        # Listing rules loads no documents.
        from vani.models.verdict import unseen_bound, verdict_of  # noqa: PLC0415

        time, verdict = io_time(profile), verdict_of(profile)
        current: dict[str, Value] = {
            "matters": verdict.matters,
            "io_share_calls": verdict.share_calls,
            "io_share_slowest_process": verdict.share_slowest,
            "io_share_any_process": verdict.share,
        }
        # If calls were not recorded, no time limits the saving.
        is_bounded = verdict.matters != "open" and not verdict.is_lower_bound
        return [
            Finding(
                target=Target("job"),
                reason=self._reason(verdict, time, profile, unseen_bound(profile)),
                confidence=self._confidence(time) if is_bounded else 0.5,
                touched_s=time.calls_s,
                recommended={},
                current=current,
                evidence=_evidence(profile, time),
                gain=_bound(time) if is_bounded else None,
                acts_on="libraries",
            )
        ]

    def is_hardly(self, time: IOTime, profile: Profile) -> bool:
        """True if I/O hardly matters. A damaged trace, or one with unrecorded activity, cannot show that."""
        from vani.models.verdict import could_matter  # noqa: PLC0415

        little = time.of_run(time.calls_most_s) < self.hardly
        return little and damage(profile) is None and not could_matter(profile)

    def _confidence(self, time: IOTime) -> float:
        if time.calls_most_s > time.calls_s:
            # The value between both ends is unknown.
            return 0.5
        if time.share < self.hardly:
            return 0.9
        # The estimate assumes who waits for whom, and in libraries, processes also wait for those that compute.
        if _is_in_libraries(time):
            return 0.5
        return 0.9 if time.calls_s >= 0.9 * time.busy_s else 0.7

    def _reason(self, verdict: schema.Verdict, time: IOTime, profile: Profile, unseen: str) -> str:
        """The verdict, as in every text, and the bound on all recommendations together."""
        if verdict.matters in ("open", "too_short") or verdict.is_lower_bound or not time.calls_s:
            todo = f" {_capital(verdict.remedy)}." if verdict.remedy and verdict.matters != "no" else ""
            return verdict.sentence + todo
        overhead = overhead_of(profile)
        if overhead is not None and time.share >= self.hardly:
            tool, much = overhead
            return f"{verdict.sentence} {tool} adds {much} to each call, so no gain in seconds is given below."
        return f"{verdict.sentence} At most {_most(time)}{unseen}."


def _most(time: IOTime) -> str:
    """Words for the seconds that could be saved, and for those in I/O calls that storage settings do not reduce."""
    run = format_seconds(time.runtime_s)
    if not _is_in_libraries(time):
        share = format_share(time.share)
        share += "" if share == format_share(time.of_run(time.calls_s - time.lookups_s)) else ", look-ups included"
        return f"{format_seconds(time.calls_s)} of {run} ({share}) could be saved"
    names = time.libraries or ("I/O libraries",)
    text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"{format_seconds(time.slowest_s)} of {run} ({format_share(time.of_run(time.slowest_s))}) could be saved by "
        f"settings of storage; {format_seconds(time.calls_s - time.slowest_s)} more "
        f"({format_share(time.of_run(time.calls_s - time.slowest_s))}) are spent inside {text}, outside the file system"
    )


def _bound(time: IOTime) -> Gain:
    return Gain(
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
        + "; low: without its file-system calls, what libraries do inside stays; high: without all time in which any "
        "process is in one",
    )


def _is_in_libraries(time: IOTime) -> bool:
    return time.calls_s - time.slowest_s >= _SEPARATE_SHARE * time.runtime_s


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _evidence(profile: Profile, time: IOTime) -> list[Evidence]:
    workflow = profile.workflow
    return [
        *figures(
            workflow, "workflow", "runtime_s", "io_time_share", "io_time_share_slowest", "io.busy_s.total"
        ),
        *(Evidence(part.where, part.time_s) for part in (time.slowest, time.caller) if part is not None),
        *(
            figure
            for layer, spent in (workflow.library_time_s or {}).items()
            for figure in figures(spent, f"workflow.library_time_s.{layer}", "total", "outside_file_system")
        ),
    ]
