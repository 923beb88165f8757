"""Plans of kind `simulate` as text and as a plot: what would happen to jobs that share a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import SimulatedJob, SimulatedVariant, SimulatePlan

# Plans of kind `simulate`: what would happen to jobs that share a machine.

_BOUNDS: Final = 2
_WORTH_A_WORD: Final = 0.01
_STAGES: Final = {
    "node": "compute nodes",
    "io_node": "I/O nodes",
    "whole": "whole file system",
    "server": "servers",
    "target": "targets",
    "metadata": "metadata",
    "burst_buffer": "burst buffers",
}


def simulate_body(plan: SimulatePlan) -> list[str]:
    """The end of each job, and what limits it."""
    lines: list[str] = []
    if plan.outcomes:
        lines += [_headline(plan)]
        if len(plan.outcomes) > 1:
            lines += ["", *_compared(plan.outcomes)]
        for outcome in plan.outcomes[-1:]:
            lines += ["", *_jobs(outcome)]
            # If nothing ever moved, no stage was used.
            lines += ["", *_stages(outcome)] if outcome.by_stage else []
    return lines


def simulate_missing(plan: SimulatePlan) -> list[str]:
    """Jobs that never end, do not fit or are unknown, as parts of a sentence."""
    parts = []
    if plan.unplaced:
        jobs = {left.name for left in plan.unplaced}
        parts.append(f"{counted(len(jobs), 'job')} never {'ends' if len(jobs) == 1 else 'end'}")
    if plan.over_capacity:
        parts.append("targets would exceed their capacity")
    if plan.no_data:
        parts.append(f"{counted(len(plan.no_data), 'figure')} missing")
    return parts


def _headline(plan: SimulatePlan) -> str:
    first, last = plan.outcomes[0], plan.outcomes[-1]
    text = f"{last.name}: {counted(len(last.jobs), 'job')} {_end(last)}"
    expected = plan.expected
    if expected is None or expected.speedup is None:
        return f"{text}."
    times = f"{expected.speedup:.2f} times"
    if expected.low is not None and expected.high is not None:
        low, high = f"{expected.low:.2f}", f"{expected.high:.2f}"
        times += f" ({low} to {high})" if low != high else ""
    return f"{text}: {times} as fast as {first.name} ({format_seconds(first.makespan_s)})."


def _end(outcome: SimulatedVariant) -> str:
    end = "never end" if len(outcome.jobs) > 1 else "never ends"
    if outcome.makespan_s is not None:
        end = f"{'end' if len(outcome.jobs) > 1 else 'ends'} after {format_seconds(outcome.makespan_s)}"
    return end + _range(outcome)


def _range(outcome: SimulatedVariant) -> str:
    if outcome.runs < 2 or outcome.low_s is None:
        return ""
    low, high = (
        format_seconds(outcome.low_s),
        "never" if outcome.high_s is None else format_seconds(outcome.high_s),
    )
    return (
        f" (with each of {outcome.runs:,} seeds)"
        if low == high
        else f" ({low} to {high} over {outcome.runs:,} seeds)"
    )


def _compared(outcomes: Sequence[SimulatedVariant]) -> list[str]:
    rows = [
        (
            one_line(outcome.name),
            ("never" if outcome.makespan_s is None else format_seconds(outcome.makespan_s)) + _range(outcome),
            _rate(outcome.read),
            _rate(outcome.write),
            "" if outcome.ost_cost is None else f"{outcome.ost_cost:.2f}",
            outcome.placement.policy + "".join(f" + {kind}" for kind in outcome.plans),
        )
        for outcome in outcomes
    ]
    return table(("variant", "end", "read", "write", "OST Cost", "placement"), rows)


def _rate(rate: float | None) -> str:
    return "-" if rate is None else format_rate(rate)


def _jobs(outcome: SimulatedVariant) -> list[str]:
    slower = any(job.slowdown is not None for job in outcome.jobs)
    head = (
        "job",
        "begins",
        "ends",
        "moves",
        "read",
        "write",
        *(["slowdown"] if slower else []),
        "limited by",
    )
    return table(head, [_job(job, slower=slower) for job in outcome.jobs])


def _job(job: SimulatedJob, *, slower: bool) -> tuple[str, ...]:
    bound = ", ".join(
        f"{name.replace('_', ' ')} {format_share(share)}"
        for name, share in list(job.bound.items())[:_BOUNDS]
        if share >= _WORTH_A_WORD
    )
    return (
        one_line(job.name),
        format_seconds(job.begin_s),
        "never" if job.end_s is None else format_seconds(job.end_s),
        format_bytes(job.bytes),
        _rate(job.read),
        _rate(job.write),
        *(["-" if job.slowdown is None else f"{job.slowdown:.2f}"] if slower else []),
        bound,
    )


def _stages(outcome: SimulatedVariant) -> list[str]:
    rows = [
        (
            _STAGES.get(stage.kind, stage.kind),
            f"{stage.used:,} of {stage.members:,}",
            format_share(min(1.0, stage.mean)),
            format_share(min(1.0, stage.most)),
            f"{stage.busiest:,}",
        )
        for stage in outcome.by_stage
    ]
    return table(("stage", "used", "busy", "busiest", "which"), rows)
