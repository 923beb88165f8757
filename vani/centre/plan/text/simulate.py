"""Plans of kind `simulate` as text and as a plot: what would happen to jobs that share a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from vani.errors import InputError, one_line
from vani.render.plots.drawing import Drawing, Row
from vani.render.plots.encoding import SHARE, chart, name, number, size_axis, time_axis
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
    if not plan.outcomes:
        return []
    lines, last = [_headline(plan)], plan.outcomes[-1]
    lines += ["", *_compared(plan.outcomes)] if len(plan.outcomes) > 1 else []
    lines += ["", *_jobs(last)]
    # If nothing ever moved, no stage was used.
    return [*lines, "", *_stages(last)] if last.by_stage else lines


def simulate_missing(plan: SimulatePlan) -> list[str]:
    """Jobs that never end, do not fit or are unknown, as parts of a sentence."""
    jobs = {left.name for left in plan.unplaced}
    omitted = (
        (jobs, f"{counted(len(jobs), 'job')} never {'ends' if len(jobs) == 1 else 'end'}"),
        (plan.over_capacity, "targets would exceed their capacity"),
        (plan.no_data, f"{counted(len(plan.no_data), 'figure')} missing"),
    )
    return [text for some, text in omitted if some]


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
    end = "end" if len(outcome.jobs) > 1 else "ends"
    when = f"never {end}" if outcome.makespan_s is None else f"{end} after {format_seconds(outcome.makespan_s)}"
    return when + _range(outcome)


def _time(seconds: float | None) -> str:
    return "never" if seconds is None else format_seconds(seconds)


def _range(outcome: SimulatedVariant) -> str:
    if outcome.runs < 2 or outcome.low_s is None:
        return ""
    low, high = _time(outcome.low_s), _time(outcome.high_s)
    seeds = f"{outcome.runs:,} seeds"
    return f" (with each of {seeds})" if low == high else f" ({low} to {high} over {seeds})"


def _compared(outcomes: Sequence[SimulatedVariant]) -> list[str]:
    rows = [
        (
            one_line(outcome.name),
            _time(outcome.makespan_s) + _range(outcome),
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
    head = ("job", "begins", "ends", "moves", "read", "write", *(["slowdown"] if slower else []), "limited by")
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
        _time(job.end_s),
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


# A simulation over time: the jobs' bytes per second, or how busy the stages on their paths are.

_MAX_LINES: Final = 7
"""Maximum number of lines, one per colour of the theme; further jobs share a line."""


def drawn(plan: SimulatePlan, what: Literal["rates", "stages"]) -> Drawing:
    """Draw the last variant.

    Raises
    ------
    InputError
        Nothing moved.
    """
    lines = _rates(plan) if what == "rates" else _busy(plan)
    if not any(any(values) for _, values in lines):
        raise InputError("this simulation moves no data", where="--plot", todo="simulate a scenario with data")
    times = [(moment.begin_s, moment.end_s) for moment in plan.timeline]
    variant = plan.outcomes[-1].name
    end = times[-1][1]
    if what == "rates":
        most = max(lines, key=lambda line: max(line[1]))
        return Drawing(
            "Bytes per second of each job, all its processes together. Look for jobs that slow each other down.",
            f"Of {counted(len(lines), 'job')} in {variant}, {name(most[0])} reaches {format_rate(max(most[1]))}; the "
            f"last ends after {format_seconds(end)}.",
            _spec(lines, times, size_axis("bytes per second of a job", per_second=True)),
            _table(lines, times, "bytes/s"),
            title="Rates of jobs",
            kind="simulated-rates",
        )
    mean = {kind: sum(v * (b - a) for v, (a, b) in zip(values, times, strict=True)) / end for kind, values in lines}
    busiest = max(mean, key=mean.__getitem__)
    axis = {"title": "busy share of the busiest member", "labelExpr": SHARE, "tickCount": 5}
    return Drawing(
        "Busy share of the busiest member of each stage. A stage that stays at 100 % limits the jobs.",
        f"In {variant}, the busiest is {busiest}: {format_share(min(1.0, mean[busiest]))} of {format_seconds(end)}.",
        _spec(lines, times, axis),
        _table(lines, times, "share"),
        title="How busy stages are",
        kind="simulated-stages",
    )


_Lines = Sequence[tuple[str, Sequence[float]]]


def _rates(plan: SimulatePlan) -> list[tuple[str, list[float]]]:
    jobs = plan.outcomes[-1].jobs if plan.outcomes else []
    lines = [(job.name, [moment.rates[n] for moment in plan.timeline]) for n, job in enumerate(jobs)]
    if len(lines) <= _MAX_LINES:
        return lines
    lines.sort(key=lambda line: -max(line[1], default=0.0))
    shown, rest = lines[: _MAX_LINES - 1], lines[_MAX_LINES - 1 :]
    together = [sum(values) for values in zip(*(values for _, values in rest), strict=True)]
    return [*shown, (f"{len(rest):,} others", together)]


def _busy(plan: SimulatePlan) -> list[tuple[str, list[float]]]:
    kinds = list(dict.fromkeys(kind for moment in plan.timeline for kind in moment.busy))
    return [
        (kind.replace("_", " "), [min(1.0, moment.busy.get(kind, 0.0)) for moment in plan.timeline])
        for kind in kinds
    ]


def _spec(lines: _Lines, times: Sequence[tuple[float, float]], axis: dict[str, Any]) -> dict[str, Any]:
    moments = [*(begin for begin, _ in times), times[-1][1]]
    values = [
        {"s": number(moment), "what": name(label), "value": number(amount)}
        for label, amounts in lines
        for moment, amount in zip(moments, [*amounts, amounts[-1]], strict=True)
    ]
    return chart(
        values,
        220,
        mark={"type": "line", "interpolate": "step-after", "aria": False},
        encoding={
            "x": {
                "field": "s",
                "type": "quantitative",
                "scale": {"domain": [0, number(times[-1][1])], "nice": False},
                "axis": time_axis(grid=False),
            },
            "y": {"field": "value", "type": "quantitative", "axis": axis, "scale": {"zero": True}},
            "color": {
                "field": "what",
                "type": "nominal",
                "sort": [name(label) for label, _ in lines],
                "legend": {"title": None, "symbolType": "stroke"},
            },
        },
    )


def _table(lines: _Lines, times: Sequence[tuple[float, float]], unit: str) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    head = ("from (s)", "to (s)", *(f"{name(label)} ({unit})" for label, _ in lines))
    rows = tuple(
        (number(begin), number(end), *(number(values[n]) for _, values in lines))
        for n, (begin, end) in enumerate(times)
    )
    return head, rows
