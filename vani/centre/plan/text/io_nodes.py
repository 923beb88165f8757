"""Plans of I/O nodes as text: kinds `forward` and `replay`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.plan.schema import plans

# Plans of kind `forward`: the number of I/O nodes of each job.

_POOLS: Final = 12


def forward_body(plan: plans.ForwardPlan) -> list[str]:
    """Lines with the I/O nodes of each job, and the gain."""
    return [
        _forward_headline(plan),
        "",
        *table(("job", "nodes", "I/O nodes", "bandwidth", "of its best"), [_forward_row(job) for job in plan.jobs]),
        *_worth(plan),
        *_outcomes(plan.compared),
    ]


def forward_missing(plan: plans.ForwardPlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
    jobs = {left.name for left in plan.no_data}
    omitted = (
        (plan.unplaced, f"{counted(len(plan.unplaced), 'job')} unplaced"),
        (plan.over_capacity, f"{plan.after.over:,} of {counted(plan.after.io_nodes, 'I/O node')} not there"),
        (plan.no_data, f"figures of {counted(len(jobs), 'job')} missing or estimated"),
    )
    return [text for some, text in omitted if some]


def _forward_headline(plan: plans.ForwardPlan) -> str:
    before, after = plan.before, plan.after
    known = len(plan.jobs) - after.no_figure
    text = (
        f"{plan.forward.policy}: {after.io_nodes:,} of {counted(plan.forward.io_nodes, 'I/O node')} for "
        f"{counted(len(plan.jobs), 'job')}"
    )
    if not known:
        return f"{text}; no bandwidth is known."
    text += f", {format_rate(after.bandwidth)}"
    if after.no_figure:
        text += f" for the {known:,} with a bandwidth"
    expected = plan.expected
    if expected is None or expected.speedup is None or before.policy == after.policy:
        return f"{text}."
    times = f"{expected.speedup:.2f} times"
    if expected.low is not None and expected.high is not None:
        times += f" ({expected.low:.2f} to {expected.high:.2f})"
    over = f", which assigns {before.over:,} more than there are" if before.over else ""
    return f"{text}: {times} as much as {before.policy} ({format_rate(before.bandwidth)}){over}."


def _forward_row(job: plans.Allotment) -> tuple[str, ...]:
    number = "-" if job.io_nodes is None else "shared" if job.shared else "direct" if not job.io_nodes else ""
    number = number or f"{job.io_nodes:,}"
    if job.before is not None and job.before != job.io_nodes:
        number = f"{job.before:,} -> {number}"
    rate = "unknown" if job.bandwidth is None else format_rate(job.bandwidth)
    if job.low is not None and job.high is not None:
        rate += f" ({format_rate(job.low)} to {format_rate(job.high)})"
    share = "" if job.share is None else format_share(job.share)
    return one_line(job.name), f"{job.nodes:,}", number, rate, share


def _assigned(outcome: plans.Outcome | plans.QueueOutcome) -> str:
    if outcome.io_nodes is None:
        return "unknown"
    return f"{outcome.io_nodes:,}" + (f" ({outcome.over:,} too many)" if outcome.over else "")


def _worth(plan: plans.ForwardPlan) -> Iterable[str]:
    if plan.one_more is not None and plan.after.no_figure < len(plan.jobs):
        yield ""
        yield f"One more I/O node would add {format_rate(plan.one_more)}."
    near = [pool for pool in plan.pools if pool.io_nodes > plan.forward.io_nodes][:_POOLS]
    if near:
        steps = ", ".join(f"{pool.io_nodes:,}: {format_rate(pool.bandwidth)}" for pool in near)
        yield f"Larger pools that increase bandwidth: {steps}."


def _outcomes(compared: Sequence[plans.Outcome]) -> Iterable[str]:
    if not compared:
        return
    yield ""
    rows = [
        (
            outcome.policy, _assigned(outcome), format_rate(outcome.bandwidth),
            "" if outcome.least_share is None else format_share(outcome.least_share),
            f"{outcome.no_figure:,}",
        )
        for outcome in compared
    ]
    yield from table(("policy", "I/O nodes", "bandwidth", "least share", "no figure"), rows)


# Plans of kind `replay`: how a queue of jobs progresses.

_PERIODS: Final = 5


def replay_body(plan: plans.ReplayPlan) -> list[str]:
    """The time of each job, its numbers of I/O nodes, and its speed."""
    head = ("job", "I/O nodes, share of its time", "nodes", "waits", "begins", "ends", "bandwidth")
    return [
        _replay_headline(plan),
        "",
        *table(head, [_replay_row(job) for job in plan.jobs], left=2),
        "",
        _work(plan),
        *_queue_outcomes(plan.compared),
    ]


def replay_missing(plan: plans.ReplayPlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
    omitted = (
        (plan.after.over, f"{plan.after.over or 0:,} of {counted(plan.after.io_nodes or 0, 'I/O node')} not there"),
        (plan.no_data, f"figures of {counted(len(plan.no_data), 'job')} estimated"),
    )
    return [text for some, text in omitted if some]


def _replay_headline(plan: plans.ReplayPlan) -> str:
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


def _replay_row(job: plans.QueuedJob) -> tuple[str, ...]:
    times = map(format_seconds, (job.start_s - job.submit_s, job.start_s, job.end_s))
    return one_line(job.name), _numbers(job.periods), f"{job.nodes:,}", *times, format_rate(job.bandwidth)


def _numbers(periods: Sequence[plans.JobPeriod]) -> str:
    """The successive numbers of a job, or the only one."""
    whole = sum(period.seconds for period in periods)
    parts = [(name, sum(period.seconds for period in some)) for name, some in groupby(periods, key=_number)]
    if len(parts) == 1:
        return parts[0][0]
    shown = [f"{name} ({100 * seconds / whole:.1f} %)" for name, seconds in parts[:_PERIODS]]
    more = [f"{len(parts) - _PERIODS:,} more"] if len(parts) > _PERIODS else []
    return ", ".join([*shown, *more])


def _number(period: plans.JobPeriod) -> str:
    return "shared" if period.shared else f"{period.io_nodes:,}" if period.io_nodes else "direct"


def _work(plan: plans.ReplayPlan) -> str:
    after = plan.after
    seen = f"seen every {format_seconds(plan.poll_s)}" if plan.poll_s else "seen at once"
    return (
        f"Shared again {counted(after.solved or 0, 'time')}, {seen}; numbers of running jobs changed "
        f"{counted(after.changes or 0, 'time')}."
    )


def _queue_outcomes(compared: Sequence[plans.QueueOutcome]) -> Iterable[str]:
    if not compared:
        return
    yield ""
    rows = [
        (
            outcome.policy, format_rate(outcome.bandwidth), format_seconds(outcome.makespan_s),
            format_seconds(outcome.waited_s), _assigned(outcome),
            "unknown" if outcome.changes is None else f"{outcome.changes:,}",
        )
        for outcome in compared
    ]
    yield from table(("policy", "bandwidth", "makespan", "mean wait", "most I/O nodes", "changes"), rows)
    for outcome in compared:
        if outcome.reason is not None:
            yield f"{outcome.policy} cannot run this queue: {one_line(outcome.reason)}."
