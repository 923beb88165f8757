"""Data and metadata: shares of reads, writes and all other calls, by number and by time, which often disagree."""

from __future__ import annotations

from typing import Any

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import KINDS, SHARE, chart, colour, name, number
from vani.schema.profile import IOStats, Profile
from vani.schema.timeline import HeatMap
from vani.units import format_seconds, format_share

__all__ = ["PLOT"]

KIND, TITLE = "ops", "Data and metadata operations"
_MOST_APPS = 6
_NUMBER, _TIME = "by number", "by time"


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del heat
    entities = [("workload", profile.workflow.io)]
    if len(profile.apps) > 1:
        apps = sorted(profile.apps, key=lambda a: (-sum(_seconds(a.io)), -sum(_counts(a.io)), a.name))
        entities += [(name(app.name, 24), app.io) for app in apps[:_MOST_APPS]]
    rows = [
        (f"{label}, {measure}", measure, amounts)
        for label, io in entities
        for measure, amounts in ((_NUMBER, _counts(io)), (_TIME, _seconds(io)))
        if any(amounts)
    ]
    if not rows:
        return "there is no file-system call"
    io = profile.workflow.io
    timed = any(_seconds(io))
    values: list[dict[str, Any]] = []
    for i, (_, measure, amounts) in enumerate(rows):
        begin, whole = 0.0, sum(amounts)
        for kind, amount in zip(KINDS[:3], amounts, strict=True):
            if amount:
                share = amount / whole
                text = format_seconds(amount) if measure == _TIME else f"{amount:,} calls"
                values.append(
                    {
                        "row": i,
                        "kind": kind,
                        "amount": number(amount),
                        "text": text,
                        "share": number(share),
                        "from": number(begin),
                        "to": number(min(1.0, begin + share)),
                    }
                )
                begin += share
    y = {
        "field": "row",
        "type": "ordinal",
        "scale": {"domain": list(range(len(rows)))},
        "axis": {"title": None, "labelExpr": "row_name[datum.value]", "ticks": False, "domain": False},
    }
    spec = chart(
        values,
        26 * len(rows) + 10,
        params=[{"name": "row_name", "value": [label for label, _, _ in rows]}],
        transform=[{"calculate": "row_name[datum.row]", "as": "name"}],
        mark={"type": "bar", "height": {"band": 0.72}},
        encoding={
            "y": y,
            "x": {
                "field": "from",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "axis": {
                    "title": "share of calls" + (", of their time" if timed else ""),
                    "labelExpr": SHARE,
                    "tickCount": 5,
                },
            },
            "x2": {"field": "to"},
            "color": colour(None, [v["kind"] for v in values]),
            "tooltip": [
                {"field": "name", "type": "nominal"},
                {"field": "kind", "type": "nominal"},
                {"field": "text", "type": "nominal", "title": "amount"},
                {"field": "share", "type": "quantitative", "format": ".3~%"},
            ],
        },
    )
    by_time = (
        f"of their time, {format_seconds(sum(_seconds(io)))} summed over processes, {_metadata(_seconds(io))}"
    )
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="Shares of reads, writes and metadata calls (open, close, stat, seek, sync, ...), by how "
        "many calls there are "
        + (
            "and by how long they take. The two often disagree; what costs is time."
            if timed
            else "alone: the profile holds no times."
        ),
        description=f"Of the workload's {sum(_counts(io)):,} file-system calls {_metadata(_counts(io))} "
        f"are metadata calls" + (f"; {by_time}." if timed else "."),
        spec=spec,
        table=(
            ("entity", "read", "write", "metadata", "unit"),
            tuple(
                (label, *(number(a) for a in amounts), "s" if measure == _TIME else "calls")
                for label, measure, amounts in rows
            ),
        ),
    )


def _counts(io: IOStats) -> tuple[float, ...]:
    return (io.ops.read, io.ops.write, io.ops.metadata)


def _seconds(io: IOStats) -> tuple[float, ...]:
    """None of them in a profile without times."""
    return (io.time_s.read or 0.0, io.time_s.write or 0.0, io.time_s.metadata or 0.0)


def _metadata(amounts: tuple[float, ...]) -> str:
    return format_share(amounts[2] / sum(amounts) if sum(amounts) else 0.0)


PLOT = Plot(
    KIND, TITLE, "share of reads, writes and metadata calls, by number and by time", _draw, position=35
)
