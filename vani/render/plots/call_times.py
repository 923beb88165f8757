"""Durations of calls: shares of all calls and of their time, by duration."""

from __future__ import annotations

import math
from typing import Any

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import SHARE, chart, colour, number
from vani.schema.profile import Profile
from vani.schema.timeline import CallTimes, HeatMap
from vani.units import counted, format_seconds, format_share

KIND, TITLE = "call-times", "How long calls take"

_NUMBER, _TIME = "share of calls", "share of their time"
_SHORTEST, _LONGEST = -6, 1
"""Powers of ten of seconds; shorter and longer calls are grouped."""


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del profile
    if heat is None or not heat.calls:
        return "it needs the decoded calls"
    total, seconds = sum(c.calls for c in heat.calls), sum(c.seconds for c in heat.calls)
    if not seconds:
        return "no time was spent in I/O"
    sums: dict[tuple[int, str], list[float]] = {}
    for call_class in heat.calls:
        both = sums.setdefault((_decade(call_class), call_class.kind), [0, 0.0])
        both[0] += call_class.calls
        both[1] += call_class.seconds
    decades = range(min(d for d, _ in sums), max(d for d, _ in sums) + 1)
    bins = [_label(decade) for decade in decades]
    values: list[dict[str, Any]] = [
        {
            "lasts": _label(decade),
            "kind": kind,
            "measure": measure,
            "share": number(amount / whole),
            "text": text,
        }
        for (decade, kind), (calls, time) in sorted(sums.items())
        for measure, amount, whole, text in (
            (_NUMBER, calls, total, counted(int(calls), "call")),
            (_TIME, time, seconds, format_seconds(time)),
        )
    ]
    slow = max(decades, key=lambda d: sum(time for (at, _), (_, time) in sums.items() if at == d))
    of_slow = [both for (at, _), both in sums.items() if at == slow]
    spec = chart(
        values,
        200,
        mark={"type": "bar"},
        encoding={
            "x": {
                "field": "lasts",
                "type": "ordinal",
                "sort": bins,
                "scale": {"domain": bins, "paddingInner": 0.25},
                "axis": {
                    "title": "a call takes",
                    "labelAngle": {"expr": f"width < {100 * len(bins)} ? -35 : 0"},
                },
            },
            "xOffset": {"field": "measure", "type": "nominal", "scale": {"domain": [_NUMBER, _TIME]}},
            "y": {
                "field": "share",
                "type": "quantitative",
                "axis": {"title": "share", "labelExpr": SHARE, "tickCount": 5},
            },
            "color": colour(None, (kind for _, kind in sums)),
            # Pale and full colours distinguish number from time without a second scale.
            "opacity": {
                "field": "measure",
                "type": "nominal",
                "scale": {"domain": [_NUMBER, _TIME], "range": [0.5, 1]},
                "legend": None,
            },
            "tooltip": [
                {"field": "lasts", "type": "ordinal", "title": "a call takes"},
                {"field": "kind", "type": "nominal"},
                {"field": "measure", "type": "nominal"},
                {"field": "text", "type": "nominal", "title": "amount"},
                {"field": "share", "type": "quantitative", "format": ".3~%"},
            ],
        },
    )
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="Calls by how long they take: share of all calls (pale, left) and of the time in them (right). Where "
        "the right bars are far to the right of the left ones, a few slow calls cost most of the time.",
        description=f"{counted(total, 'call')} take {format_seconds(seconds)}, added up. Most time is in calls of "
        f"{_label(slow)}: {format_share(sum(c for c, _ in of_slow) / total)} of the calls, "
        f"{format_share(sum(t for _, t in of_slow) / seconds)} of their time.",
        spec=spec,
        table=(
            ("a call takes", "kind", "calls", "seconds"),
            tuple(
                (_label(decade), kind, int(calls), number(time))
                for (decade, kind), (calls, time) in sorted(sums.items())
            ),
        ),
    )


def _decade(call_class: CallTimes) -> int:
    """Exponent of the power of ten (s) just above the duration of calls in this class."""
    if not call_class.least_s:
        return _SHORTEST
    # Classes start at 1, 2 or 5 times a power of ten; a factor of 1.0005 keeps floats on the right side.
    return min(max(math.floor(math.log10(call_class.least_s * 1.0005)) + 1, _SHORTEST), _LONGEST)


def _label(decade: int) -> str:
    if decade <= _SHORTEST:
        return f"less than {format_seconds(10.0**_SHORTEST)}"
    if decade >= _LONGEST:
        return f"{format_seconds(10.0 ** (_LONGEST - 1))} or more"
    return f"{format_seconds(10.0 ** (decade - 1))} to {format_seconds(10.0**decade)}"


PLOT = Plot(
    KIND,
    TITLE,
    "share of calls, and of the time in them, by how long they take",
    _draw,
    position=37,
    needs_calls=True,
)
