"""Data, flushing and metadata: shares of reads, writes, flushes and all other calls, by number and by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import SHARE, call_kinds, chart, colour, name, number
from vani.schema.profile import IOStats, Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_seconds, format_share

KIND, TITLE = "ops", "Data, flushing and metadata operations"
_MOST_APPS = 6
_NUMBER, _TIME = "by number", "by time"


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del heat
    kinds = call_kinds(profile.workflow.io)
    entities = [("workload", profile.workflow.io)]
    if len(profile.apps) > 1:
        apps = sorted(
            profile.apps, key=lambda a: (-sum(_seconds(a.io, kinds)), -sum(_counts(a.io, kinds)), a.name)
        )
        entities += [(name(app.name, 24), app.io) for app in apps[:_MOST_APPS]]
    rows = [
        (f"{label}, {measure}", measure, amounts)
        for label, io in entities
        for measure, amounts in ((_NUMBER, _counts(io, kinds)), (_TIME, _seconds(io, kinds)))
        if any(amounts)
    ]
    if not rows:
        return "there is no file-system call"
    io = profile.workflow.io
    counts, seconds = _counts(io, kinds), _seconds(io, kinds)
    timed = any(seconds)
    values: list[dict[str, Any]] = []
    for i, (_, measure, amounts) in enumerate(rows):
        begin, whole = 0.0, sum(amounts)
        for kind, amount in zip(kinds, amounts, strict=True):
            if amount:
                share = amount / whole
                text = format_seconds(amount) if measure == _TIME else counted(int(amount), "call")
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
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="Shares of reads, writes"
        + (", flushing (sync: fsync and its kin)" if "sync" in kinds else "")
        + f" and metadata calls (open, close, stat, seek{'' if 'sync' in kinds else ', sync'}, ...), "
        "by how many calls there are "
        + (
            "and by how long they take. The two often disagree; what costs is time."
            if timed
            else "alone: the profile has no times."
        ),
        description=f"The workload's {sum(counts):,} file-system calls are {_composition(kinds, counts)}"
        + (
            f"; their time, {format_seconds(sum(seconds))} summed over processes, is {_composition(kinds, seconds)}."
            if timed
            else "."
        ),
        spec=spec,
        table=(
            ("entity", *kinds, "unit"),
            tuple(
                (label, *(number(a) for a in amounts), "s" if measure == _TIME else "calls")
                for label, measure, amounts in rows
            ),
        ),
        sentence=f"All {sum(counts):,} file-system calls are {_composition(kinds, counts).removeprefix('100 % ')}."
        if len({v["kind"] for v in values}) == 1
        else "",
    )


def _counts(io: IOStats, kinds: Sequence[str]) -> tuple[float, ...]:
    return tuple(getattr(io.ops, kind) or 0 for kind in kinds)


def _seconds(io: IOStats, kinds: Sequence[str]) -> tuple[float, ...]:
    """Seconds by kind; all 0 in a profile without times."""
    return tuple(getattr(io.time_s, kind) or 0.0 for kind in kinds)


def _composition(kinds: Sequence[str], amounts: Sequence[float]) -> str:
    """`6.6 % data, 88 % flushing and 5.7 % metadata`."""
    by_kind = dict(zip(kinds, amounts, strict=True))
    parts = {
        "data": by_kind["read"] + by_kind["write"],
        "flushing": by_kind.get("sync", 0.0),
        "metadata": by_kind["metadata"],
    }
    said = [f"{format_share(part / sum(amounts))} {what}" for what, part in parts.items() if part]
    if not said:
        return "of no known kind"
    return " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))


PLOT = Plot(
    KIND,
    TITLE,
    "share of reads, writes, flushes and metadata calls, by number and by time",
    _draw,
    position=35,
)
