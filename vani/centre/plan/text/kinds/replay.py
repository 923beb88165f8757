"""Plans of kind `replay`: how a queue of jobs progresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from vani.centre.plan.schema import JobPeriod, QueuedJob, QueueOutcome, ReplayPlan

_PERIODS: Final = 5


def body(plan: ReplayPlan) -> list[str]:
    """The time of each job, its numbers of I/O nodes, and its speed."""
    head = ("job", "I/O nodes, share of its time", "nodes", "waits", "begins", "ends", "bandwidth")
    return [
        _headline(plan),
        "",
        *table(head, [_row(job) for job in plan.jobs], left=2),
        "",
        _work(plan),
        *_side_by_side(plan.compared),
    ]


def missing(plan: ReplayPlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
    parts = []
    if plan.after.over:
        parts.append(f"{plan.after.over:,} of {counted(plan.after.io_nodes or 0, 'I/O node')} not there")
    if plan.no_data:
        parts.append(f"figures of {counted(len(plan.no_data), 'job')} estimated")
    return parts


def _headline(plan: ReplayPlan) -> str:
    before, after = plan.before, plan.after
    text = (
        f"{after.policy}: {counted(len(plan.jobs), 'job')} on {counted(plan.nodes, 'node')} with "
        f"{counted(plan.forward.io_nodes, 'I/O node')} take {format_seconds(after.makespan_s)}, "
        f"{format_rate(after.bandwidth)} in sum"
    )
    if plan.expected is None or plan.expected.speedup is None or before.policy == after.policy:
        return f"{text}."
    over = f"; it assigns {before.over:,} more than there are" if before.over else ""
    return (
        f"{text}: {plan.expected.speedup:.2f} times as much as {before.policy} ({format_rate(before.bandwidth)} in "
        f"{format_seconds(before.makespan_s)}{over})."
    )


def _row(job: QueuedJob) -> tuple[str, ...]:
    return (
        one_line(job.name),
        _numbers(job.periods),
        f"{job.nodes:,}",
        format_seconds(job.start_s - job.submit_s),
        format_seconds(job.start_s),
        format_seconds(job.end_s),
        format_rate(job.bandwidth),
    )


def _numbers(periods: Sequence[JobPeriod]) -> str:
    """The successive numbers of a job, or the only one."""
    whole = sum(period.seconds for period in periods)
    parts = [(name, sum(period.seconds for period in some)) for name, some in groupby(periods, key=_number)]
    if len(parts) == 1:
        return parts[0][0]
    shown = [f"{name} ({100 * seconds / whole:.1f} %)" for name, seconds in parts[:_PERIODS]]
    more = [f"{len(parts) - _PERIODS:,} more"] if len(parts) > _PERIODS else []
    return ", ".join([*shown, *more])


def _number(period: JobPeriod) -> str:
    return "shared" if period.shared else f"{period.io_nodes:,}" if period.io_nodes else "direct"


def _work(plan: ReplayPlan) -> str:
    after = plan.after
    seen = f"seen every {format_seconds(plan.poll_s)}" if plan.poll_s else "seen at once"
    return (
        f"Shared again {counted(after.solved or 0, 'time')}, {seen}; numbers of running jobs changed "
        f"{counted(after.changes or 0, 'time')}."
    )


def _side_by_side(compared: Sequence[QueueOutcome]) -> Iterable[str]:
    if not compared:
        return
    yield ""
    rows = [
        (
            outcome.policy,
            format_rate(outcome.bandwidth),
            format_seconds(outcome.makespan_s),
            format_seconds(outcome.waited_s),
            "unknown"
            if outcome.io_nodes is None
            else f"{outcome.io_nodes:,}" + (f" ({outcome.over:,} too many)" if outcome.over else ""),
            "unknown" if outcome.changes is None else f"{outcome.changes:,}",
        )
        for outcome in compared
    ]
    yield from table(("policy", "bandwidth", "makespan", "mean wait", "most I/O nodes", "changes"), rows)
    for outcome in compared:
        if outcome.reason is not None:
            yield f"{outcome.policy} cannot run this queue: {one_line(outcome.reason)}."
