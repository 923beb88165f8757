"""A simulation over time: the jobs' bytes per second, or how busy the stages on their paths are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from vani.errors import InputError
from vani.render.plots.drawing import Drawing, Row
from vani.render.plots.encoding import SHARE, chart, name, number, size_axis, time_axis
from vani.units import counted, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.plan.schema import SimulatePlan

_MOST_LINES: Final = 7
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
        raise InputError(
            "this simulation moves no data", where="--plot", todo="simulate a scenario with data"
        )
    times = [(moment.begin_s, moment.end_s) for moment in plan.timeline]
    variant = plan.outcomes[-1].name
    end = times[-1][1]
    if what == "rates":
        most = max(lines, key=lambda line: max(line[1]))
        described = (
            f"Of {counted(len(lines), 'job')} in {variant}, {name(most[0])} reaches {format_rate(max(most[1]))}; the "
            f"last ends after {format_seconds(end)}."
        )
        return Drawing(
            "simulated-rates",
            "Rates of jobs",
            "Bytes per second of each job, all its processes together. Look for jobs that slow each other down.",
            described,
            _spec(lines, times, size_axis("bytes per second of a job", per_second=True)),
            _table(lines, times, "bytes/s"),
        )
    mean = {
        kind: sum(v * (b - a) for v, (a, b) in zip(values, times, strict=True)) / end
        for kind, values in lines
    }
    busiest = max(mean, key=lambda kind: mean[kind])
    return Drawing(
        "simulated-stages",
        "How busy stages are",
        "Busy share of the busiest member of each stage. A stage that stays at 100 % limits the jobs.",
        f"In {variant}, the busiest is {busiest}: {format_share(min(1.0, mean[busiest]))} of {format_seconds(end)}.",
        _spec(
            lines, times, {"title": "busy share of the busiest member", "labelExpr": SHARE, "tickCount": 5}
        ),
        _table(lines, times, "share"),
    )


_Lines = Sequence[tuple[str, Sequence[float]]]


def _rates(plan: SimulatePlan) -> list[tuple[str, list[float]]]:
    jobs = plan.outcomes[-1].jobs if plan.outcomes else []
    lines = [(job.name, [moment.rates[n] for moment in plan.timeline]) for n, job in enumerate(jobs)]
    if len(lines) <= _MOST_LINES:
        return lines
    lines.sort(key=lambda line: -max(line[1], default=0.0))
    shown, rest = lines[: _MOST_LINES - 1], lines[_MOST_LINES - 1 :]
    together = [sum(values) for values in zip(*(values for _, values in rest), strict=True)]
    return [*shown, (f"{len(rest):,} others", together)]


def _busy(plan: SimulatePlan) -> list[tuple[str, list[float]]]:
    kinds = list(dict.fromkeys(kind for moment in plan.timeline for kind in moment.busy))
    return [
        (kind.replace("_", " "), [min(1.0, moment.busy.get(kind, 0.0)) for moment in plan.timeline])
        for kind in kinds
    ]


def _spec(lines: _Lines, times: Sequence[tuple[float, float]], axis: dict[str, Any]) -> dict[str, Any]:
    values = []
    for label, amounts in lines:
        for (begin, _), amount in zip(times, amounts, strict=True):
            values.append({"s": number(begin), "what": name(label), "value": number(amount)})
        values.append({"s": number(times[-1][1]), "what": name(label), "value": number(amounts[-1])})
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


def _table(
    lines: _Lines, times: Sequence[tuple[float, float]], unit: str
) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    head = ("from (s)", "to (s)", *(f"{name(label)} ({unit})" for label, _ in lines))
    rows = tuple(
        (number(begin), number(end), *(number(values[n]) for _, values in lines))
        for n, (begin, end) in enumerate(times)
    )
    return head, rows
