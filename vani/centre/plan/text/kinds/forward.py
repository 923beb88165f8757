"""Plans of kind `forward`: the number of I/O nodes of each job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_rate, format_share

if TYPE_CHECKING:
    from vani.centre.plan.schema import Allotment, ForwardPlan, Outcome

_POOLS: Final = 12


def body(plan: ForwardPlan) -> list[str]:
    """Lines with the I/O nodes of each job, and the gain."""
    return [
        _headline(plan),
        "",
        *table(("job", "nodes", "I/O nodes", "bandwidth", "of its best"), [_row(job) for job in plan.jobs]),
        *_worth(plan),
        *_side_by_side(plan.compared),
    ]


def missing(plan: ForwardPlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
    parts = []
    if plan.unplaced:
        parts.append(f"{counted(len(plan.unplaced), 'job')} unplaced")
    if plan.over_capacity:
        parts.append(f"{plan.after.over:,} of {counted(plan.after.io_nodes, 'I/O node')} not there")
    if plan.no_data:
        jobs = {left.name for left in plan.no_data}
        parts.append(f"figures of {counted(len(jobs), 'job')} missing or estimated")
    return parts


def _headline(plan: ForwardPlan) -> str:
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


def _row(job: Allotment) -> tuple[str, ...]:
    number = "-" if job.io_nodes is None else "shared" if job.shared else "direct" if not job.io_nodes else ""
    number = number or f"{job.io_nodes:,}"
    if job.before is not None and job.before != job.io_nodes:
        number = f"{job.before:,} -> {number}"
    rate = "unknown" if job.bandwidth is None else format_rate(job.bandwidth)
    if job.low is not None and job.high is not None:
        rate += f" ({format_rate(job.low)} to {format_rate(job.high)})"
    share = "" if job.share is None else format_share(job.share)
    return one_line(job.name), f"{job.nodes:,}", number, rate, share


def _worth(plan: ForwardPlan) -> Iterable[str]:
    if plan.one_more is not None and plan.after.no_figure < len(plan.jobs):
        yield ""
        yield f"One more I/O node would add {format_rate(plan.one_more)}."
    near = [pool for pool in plan.pools if pool.io_nodes > plan.forward.io_nodes][:_POOLS]
    if near:
        steps = ", ".join(f"{pool.io_nodes:,}: {format_rate(pool.bandwidth)}" for pool in near)
        yield f"Larger pools that increase bandwidth: {steps}."


def _side_by_side(compared: Sequence[Outcome]) -> Iterable[str]:
    if not compared:
        return
    yield ""
    rows = [
        (
            outcome.policy,
            f"{outcome.io_nodes:,}" + (f" ({outcome.over:,} too many)" if outcome.over else ""),
            format_rate(outcome.bandwidth),
            "" if outcome.least_share is None else format_share(outcome.least_share),
            f"{outcome.no_figure:,}",
        )
        for outcome in compared
    ]
    yield from table(("policy", "I/O nodes", "bandwidth", "least share", "no figure"), rows)
