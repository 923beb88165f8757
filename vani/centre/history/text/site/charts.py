"""Charts of a history as Vega-Lite specifications; a table below each contains the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
_HOUR: Final = 3600.0
_WIDE: Final[dict[str, Any]] = {"$schema": _SCHEMA, "width": "container", "height": 200}


def trend_chart(units: Sequence[tuple[str, float, float]], by: str) -> dict[str, Any]:
    """Chart core-hours of waiting and in I/O per month or day.

    Parameters
    ----------
    units
        Name (an ISO 8601 day or month), waiting and time in I/O in seconds.
    by
        `month` or `day`.
    """
    values = [
        {"at": name, "cost": cost, "hours": seconds / _HOUR}
        for name, waiting, in_io in units
        for cost, seconds in (("waiting", waiting), ("in I/O", in_io))
    ]
    return {
        **_WIDE,
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": (
                {"field": "at", "type": "ordinal", "title": by, "axis": {"labelAngle": 0, "labelOverlap": True}}
                if by == "month"
                else {
                    "field": "at", "type": "temporal", "title": by, "scale": {"type": "utc"},
                    "axis": {"format": "%d %b", "labelOverlap": True},
                }
            ),
            "y": {"field": "hours", "type": "quantitative", "title": "core-hours", "axis": {"format": "~s"}},
            "color": {"field": "cost", "type": "nominal", "title": None, "legend": {"orient": "top"}},
            "strokeDash": {"field": "cost", "type": "nominal", "title": None},
            "tooltip": [
                {"field": "at", "type": "nominal", "title": by},
                {"field": "cost", "type": "nominal", "title": "cost"},
                {"field": "hours", "type": "quantitative", "title": "core-hours", "format": ".3s"},
            ],
        },
    }  # fmt: skip


def runs_chart(runs: Sequence[tuple[float, float, str, int]]) -> dict[str, Any]:
    """Chart the waiting of processes in each run over time.

    Parameters
    ----------
    runs
        Start (seconds since 1970), waiting in core-seconds, user and number of processes of each run.
    """
    values = [
        {"at": at * 1000, "hours": waiting / _HOUR, "user": user, "processes": processes}
        for at, waiting, user, processes in runs
        if waiting > 0
    ]
    return {
        **_WIDE,
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "opacity": 0.8, "size": 30},
        "encoding": {
            "x": {"field": "at", "type": "temporal", "title": "began", "scale": {"type": "utc"}},
            "y": {
                "field": "hours", "type": "quantitative", "title": "core-hours waiting", "scale": {"type": "log"},
                "axis": {"format": "~s", "tickCount": 4},
            },
            "tooltip": [
                {"field": "at", "type": "temporal", "title": "began (UTC)", "format": "%Y-%m-%d %H:%M"},
                {"field": "hours", "type": "quantitative", "title": "core-hours", "format": ".3s"},
                {"field": "user", "type": "nominal"},
                {"field": "processes", "type": "quantitative"},
            ],
        },
    }  # fmt: skip


def targets_chart(targets: Sequence[tuple[str, float, bool]]) -> dict[str, Any]:
    """Chart the time that files lost on each storage target, given its name, seconds, and whether it is slow."""
    return {
        **_WIDE,
        "height": {"step": 18},
        "data": {
            "values": [
                {"target": name, "hours": lost / _HOUR, "state": "slow" if slow else "usual"}
                for name, lost, slow in targets
            ]
        },
        "mark": "bar",
        "encoding": {
            "y": {"field": "target", "type": "nominal", "title": None, "sort": None},
            "x": {"field": "hours", "type": "quantitative", "title": "hours lost"},
            "color": {
                "field": "state", "type": "nominal", "title": None, "sort": ["usual", "slow"],
                "legend": {"orient": "top"},
            },
            "tooltip": [
                {"field": "target", "type": "nominal"},
                {"field": "hours", "type": "quantitative", "title": "hours lost", "format": ".3s"},
                {"field": "state", "type": "nominal"},
            ],
        },
    }  # fmt: skip
