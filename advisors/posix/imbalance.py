"""POS006: one process spends far more time in I/O than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import data_files
from vani.advisors.movers import are_plain, gathers, is_funnel, may_gather, moves_collectively
from vani.advisors.placement import slow_targets
from vani.advisors.rule import Answer, Evidence, Finding, Gain, Rule, Target, Verdict, figures
from vani.models.run_time import seconds
from vani.units import MiB, format_bytes, format_count, format_number, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile, RankBalance
    from vani.schema.system import System


class Imbalance(Rule):
    """One process spends far more time in I/O than the average one, or moves far more bytes, and the others wait.

    Looks at
        I/O time of each app's slowest process against the mean, at least `min_ratio` times as long and at least
        `min_share` of the app's run longer; bytes of its busiest process against the mean, at least `min_ratio` times
        as many and at least `min_bytes` more, where I/O takes `min_share` of the run. Where files belong to one process
        each: the largest of them.
    Why
        Programs that compute in steps are as fast as their slowest process. I/O that is spread evenly takes the
        mean.
    Recommends
        If one process moves most bytes, spread files or parts evenly over the processes. If the slowest does not, look
        for what only it waits for (a target, its node, a lock).
    Stays silent when
        An app has one process; processes are about even; the difference is small; the slowest moves no more than the
        others and waits for less than `min_waiting_s` longer, as any process does now and then; one process alone
        does the writing (POS004), or aggregators do it in collective calls (MIO002); one process alone does all I/O, or
        reads an input small enough to broadcast (POS001); it waits for a slow storage target (LUS009).
    Source
        Xie et al., section II-C (skew of load decides the time of a write). Estimate: the mean over the processes
        of the profile.
    Example
        Rank 0 spends 91 ms in I/O, the mean is 20 ms, and it moves four times the bytes of the mean.
    """

    id = "POS006"
    settles = "balance"
    sources = ("Xie et al., section II-C",)

    # Our choice: up to twice the mean is common between repetitions (Xie et al., section IV-D: 1.3 in half of them).
    min_ratio = 2.0
    # 1 % of the run, the least for a severity.
    min_share = 0.01
    # Our choice: at the 300 MB/s of one process (OPRAEL) a twentieth of a second.
    min_bytes = 16 * MiB
    # As in POS001: an input of this size is read by one process and broadcast.
    broadcast_bytes = 64 * MiB
    # As for the severities in `vani.advisors.judge`: shorter waits are within the variation of runs.
    min_waiting_s = 1.0

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        answers = (self._judge(number, app, profile) for number, app in enumerate(profile.apps))
        return self.among(answers, "there is no app", most=3)

    def _judge(self, number: int, app: App, profile: Profile) -> Answer:
        if app.balance is None:
            return f"apps[{number}].balance is not known: {app.name} has no I/O"
        why = self._objection(app, app.balance, profile)
        return self._finding(number, app, app.balance, profile) if why is None else why

    def _objection(self, app: App, balance: RankBalance, profile: Profile) -> str | None:
        if app.processes < 2:
            return f"{app.name} has one process"
        if are_plain(app, profile):
            return f"the processes of {app.name} are no ranks of MPI"
        times = seconds(balance.slowest_io_time_s) >= self.min_ratio * seconds(balance.mean_io_time_s)
        least = self.min_share * seconds(app.runtime_s)
        if not times and not self._is_uneven(balance):
            return f"I/O time and bytes are spread evenly over the processes of {app.name}"
        if (_more_s(balance) if times else seconds(balance.slowest_io_time_s)) < least:
            return f"the processes of {app.name} differ by less than {format_share(self.min_share)} of it"
        if is_funnel(app, profile):
            return f"few processes of {app.name} do all the writing: see POS004"
        # In collective calls, the busiest process moves the bytes of the others.
        moves_most = 2 * balance.busiest_bytes >= (app.io.bytes.total or 0)
        if gathers(app, profile) and (balance.writing_processes < app.processes or moves_most):
            return f"aggregators write for the others in collective calls of {app.name}: see MIO002"
        if may_gather(app, profile) and (self._is_uneven(balance) or _moves_more(balance)):
            return f"all ranks of {app.name} open what few write, as aggregators of collective calls do, see MIO002"
        if moves_collectively(app, profile) and (self._is_uneven(balance) or _moves_more(balance)):
            return f"aggregators move the bytes of the others in collective calls of {app.name}: see MIO002"
        inputs = data_files(profile, lambda file: app.name in file.apps and file.readers == 1 and not file.writers)
        alone = sum(item.io.bytes.read or 0 for item in inputs)
        if 0 < balance.busiest_bytes - balance.mean_bytes <= alone <= self.broadcast_bytes:
            return f"one process of {app.name} reads what it can broadcast to the others: see POS001"
        if times and not _moves_more(balance):
            for slow in slow_targets(profile):
                if slow.own_s >= seconds(balance.slowest_io_time_s) / 2:
                    return f"{app.name} waits for OST {slow.use.target}: see LUS009"
        if not self._is_uneven(balance) and not _moves_more(balance) and _more_s(balance) < self.min_waiting_s:
            return (
                f"the slowest process of {app.name} moves no more bytes than others, and waits for less than "
                f"{format_seconds(self.min_waiting_s)} longer"
            )
        return None

    def _is_uneven(self, balance: RankBalance) -> bool:
        """True if bytes are uneven, except for a process that reads or writes for all others."""
        many = balance.reading_processes > 1 or balance.writing_processes > 1
        more = balance.busiest_bytes - balance.mean_bytes
        return many and more >= self.min_bytes and balance.busiest_bytes >= self.min_ratio * balance.mean_bytes

    def _finding(self, number: int, app: App, balance: RankBalance, profile: Profile) -> Finding:
        slowest, mean = seconds(balance.slowest_io_time_s), seconds(balance.mean_io_time_s)
        median = seconds(balance.median_io_time_s)
        late = slowest >= self.min_ratio * mean and _more_s(balance) >= self.min_share * seconds(app.runtime_s)
        rank = balance.slowest_rank if late else balance.busiest_rank
        more = _moves_more(balance) or not late
        each = balance.mean_bytes
        times = f"{format_number(balance.busiest_bytes / each, 2)} times" if each else "more than"
        moved = f"moves {format_bytes(balance.busiest_bytes)}, {times} the mean"
        if late:
            reason = (
                f"Rank {rank} of {app.name} spends {format_seconds(slowest)} in I/O, the mean of "
                f"{format_count(app.processes)} processes is {format_seconds(mean)}, the median "
                f"{format_seconds(median)}. "
            )
            reason += (
                f"It {moved}: its work should be shared out."
                if more
                else "It moves no more bytes than others: it waits for a target, a lock or its node."
            )
        else:
            reason = (
                f"Rank {rank} of {app.name} {moved} of {format_count(app.processes)} processes, though the slowest "
                f"takes {format_seconds(slowest)} and the mean {format_seconds(mean)}: its work should be shared out. "
                "The gain is not known: supply the time of a run in which all move as much."
            )
        text, largest = _private(app, profile) if more else ("", [])
        gain = Gain.at_best(
            "io_time_slowest_process_s",
            slowest,
            after=min(slowest, mean),
            best=min(mean, median, slowest),
            method="the mean over the processes; low: no process waits for the slowest, high: the median",
        )
        return Finding(
            target=Target("app", None, app.name),
            reason=reason + text,
            confidence=0.6 if more and late else 0.4,
            touched_s=slowest,
            recommended={"io_time_per_process_s": mean} if late else {"bytes_per_process": balance.mean_bytes},
            current={"slowest_rank": balance.slowest_rank, "slowest_io_time_s": slowest},
            evidence=figures(balance, f"apps[{number}].balance", *_FIGURES) + largest,
            gain=gain if late else None,
            apply=(
                f"in the program: share out the files and parts that rank {rank} of {app.name} moves"
                if more
                else f"see which files and calls rank {rank} of {app.name} waits for, and on which node it runs"
            ),
        )


_FIGURES = (
    "slowest_rank", "slowest_io_time_s", "mean_io_time_s", "median_io_time_s",
    "busiest_rank", "busiest_bytes", "mean_bytes",
)


def _more_s(balance: RankBalance) -> float:
    return seconds(balance.slowest_io_time_s) - seconds(balance.mean_io_time_s)


def _moves_more(balance: RankBalance) -> bool:
    return balance.busiest_rank == balance.slowest_rank and balance.busiest_bytes > 1.5 * balance.mean_bytes


def _private(app: App, profile: Profile) -> tuple[str, list[Evidence]]:
    """The largest of the files that one process each uses, if it is larger than their mean: words and evidence."""
    items = data_files(profile, lambda file: file.access == "file_per_process" and file.apps == [app.name])
    moved = [(item.io.bytes.total or 0, item) for item in items]
    most, item = max(moved, key=lambda pair: pair[0], default=(0, None))
    mean = sum(bytes_ for bytes_, _ in moved) / max(1, len(moved))
    if len(moved) < 2 or item is None or not most or most < 2 * mean:
        return "", []
    text = (
        f" Among {format_count(len(moved))} files of one process each, {item.path} has most: "
        f"{format_bytes(most)} are moved, {format_number(most / mean, 2)} times the mean."
    )
    return text, item.figures("io.bytes.total")
