"""POS006: one process spends far more time in I/O than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict, seconds
from vani.units import MiB, format_bytes, format_count, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile, RankBalance
    from vani.schema.system import System


class Imbalance(Rule):
    """The slowest process spends far more time in I/O than the average one, and the others wait for it.

    Looks at
        I/O time of each app's slowest process against the mean, at least `min_ratio` times as long and at least
        `min_share` of the app's run longer, and the bytes of its busiest process against the mean.
    Why
        Programs that compute in steps are as fast as their slowest process. I/O that is spread evenly takes the
        mean.
    Recommends
        Where the slowest process also moves the most bytes: to spread files or parts evenly over the processes.
        Where it does not: to look for what it alone waits for (a target, its node, a lock).
    Stays silent when
        An app has one process; processes are about even; the difference is small; one process alone does the
        writing (POS004).
    Source
        Xie et al., section II-C (skew of load decides the time of a write). Estimate: the mean over the processes
        of the profile.
    Example
        Rank 0 spends 91 ms in I/O, the mean is 20 ms, and it moves four times the bytes of the mean.
    """

    id = "POS006"
    name = "imbalance"
    family = "posix"
    needs = ("apps",)
    settles = ""
    sources = ("Xie et al., section II-C",)

    # Ours: up to twice the mean is common between repetitions (Xie et al., section IV-D: 1.3 in half of them).
    min_ratio = 2.0
    # Where severities begin: 1 % of the run.
    min_share = 0.01
    # From so many processes and bytes on, one process that writes alone is POS004's: its min_processes and min_bytes.
    funnel_processes = 4
    funnel_bytes = 1 * MiB  # see funnel_processes

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - holds on every machine
        findings: list[Finding] = []
        reasons: list[str] = []
        for number, app in enumerate(profile.apps):
            balance = app.balance
            if balance is None:
                reasons.append(f"apps[{number}].balance is not known: {app.name} has no I/O")
            elif app.processes < 2:
                reasons.append(f"{app.name} has one process")
            elif seconds(balance.slowest_io_time_s) < self.min_ratio * seconds(balance.mean_io_time_s):
                reasons.append(f"I/O time is spread evenly over the processes of {app.name}")
            elif _more_s(balance) < self.min_share * seconds(app.runtime_s):
                reasons.append(
                    f"the processes of {app.name} differ by less than {format_share(self.min_share)} of it"
                )
            elif self._is_funnel(app, balance):
                reasons.append(f"one process of {app.name} does all the writing: see POS004")
            else:
                findings.append(_finding(number, app, balance))
        if findings:
            return findings
        return self.nothing("; ".join(list(dict.fromkeys(reasons))[:3]) or "there is no app")

    def _is_funnel(self, app: App, balance: RankBalance) -> bool:
        alone = balance.writing_processes == 1 and balance.slowest_rank == balance.busiest_rank
        return (
            alone
            and app.processes >= self.funnel_processes
            and (app.io.bytes.written or 0) >= self.funnel_bytes
        )


def _more_s(balance: RankBalance) -> float:
    return seconds(balance.slowest_io_time_s) - seconds(balance.mean_io_time_s)


def _finding(number: int, app: App, balance: RankBalance) -> Finding:
    slowest, mean = seconds(balance.slowest_io_time_s), seconds(balance.mean_io_time_s)
    median = seconds(balance.median_io_time_s)
    more = balance.busiest_rank == balance.slowest_rank and balance.busiest_bytes > 1.5 * balance.mean_bytes
    times = f"{balance.busiest_bytes / balance.mean_bytes:.2g} times" if balance.mean_bytes else "more than"
    why = (
        f"It moves {format_bytes(balance.busiest_bytes)}, {times} the mean: its work should be shared out."
        if more
        else "It moves no more bytes than others: it waits for a target, a lock or its node."
    )
    where = f"apps[{number}].balance"
    current: dict[str, Value] = {"slowest_rank": balance.slowest_rank, "slowest_io_time_s": slowest}
    lines = (
        f"in the program: share out the files and parts that rank {balance.slowest_rank} of {app.name} moves"
        if more
        else f"see which files and calls rank {balance.slowest_rank} of {app.name} waits for, and on which node it runs"
    )
    return Finding(
        target=Target("app", None, app.name),
        reason=f"Rank {balance.slowest_rank} of {app.name} spends {format_seconds(slowest)} in I/O, the mean of "
        f"{format_count(app.processes)} processes is {format_seconds(mean)}, the median "
        f"{format_seconds(median)}. {why}",
        confidence=0.6 if more else 0.4,
        touched_s=slowest,
        recommended={"io_time_per_process_s": mean},
        current=current,
        evidence=[
            Evidence(f"{where}.slowest_rank", balance.slowest_rank),
            Evidence(f"{where}.slowest_io_time_s", slowest),
            Evidence(f"{where}.mean_io_time_s", mean),
            Evidence(f"{where}.median_io_time_s", median),
            Evidence(f"{where}.busiest_rank", balance.busiest_rank),
            Evidence(f"{where}.busiest_bytes", balance.busiest_bytes),
            Evidence(f"{where}.mean_bytes", balance.mean_bytes),
        ],
        gain=Gain(
            metric="io_time_slowest_process_s",
            before_s=slowest,
            after_s=min(slowest, mean),
            best_s=min(mean, median, slowest),
            worst_s=slowest,
            method="the mean over the processes; low: nobody waits for the slowest, high: the median",
        ),
        apply=comment(lines),
    )
