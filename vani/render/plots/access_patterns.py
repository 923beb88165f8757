"""Access patterns: where reads and writes start relative to the end of the previous one (paper, tables V and VII)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import SHARE, chart, name, number, tail
from vani.render.report.datasets import file_groups
from vani.schema.profile import IOStats, Profile
from vani.schema.saved_profile import IOSummary
from vani.schema.timeline import HeatMap
from vani.units import format_share

KIND, TITLE = "access-patterns", "Access patterns"
_PATTERNS = ("consecutive", "sequential", "strided", "random")
_MEANINGS = {
    "consecutive": "each begins where the one before ended, by process and file",
    "sequential": "each begins further on than the one before ended, by process and file",
    "strided": "each begins at a steady distance from the one before, by process and file",
    "random": "they go back and forth, by process and file",
}
_ALL = 0.9995
"""Shares above this are shown as all."""
_MOST_APPS, _MOST_FILES = 10, 8


@dataclass(frozen=True)
class _Row:
    label: str
    operations: int
    shares: dict[str, float]


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del heat
    rows = [row for row in _rows(profile) if row.operations]
    if not rows:
        io = profile.workflow.io
        why = profile.provenance.get("io.access_pattern", "the profile does not say where accesses begin")
        return why if io.ops.read + io.ops.write else "no data was read or written"
    only = [pattern for pattern in _PATTERNS if all(row.shares[pattern] >= _ALL for row in rows)]
    values = []
    for i, row in enumerate(rows):
        begin = 0.0
        for pattern in _PATTERNS:
            share = row.shares[pattern]
            if share:
                values.append(
                    {
                        "row": i,
                        "pattern": pattern,
                        "share": number(share),
                        "from": number(begin),
                        "to": number(min(1.0, begin + share)),
                        "operations": row.operations,
                    }
                )
                begin += share
    # Names are above the bars, since next to them they would leave no room on a narrow page.
    y = {"field": "row", "type": "ordinal", "scale": {"domain": list(range(len(rows)))}, "axis": None}
    x = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"title": "share of reads and writes", "labelExpr": SHARE, "tickCount": 5},
    }
    named = [{"calculate": "row_name[datum.row]", "as": "name"}]
    spec = chart(
        values,
        34 * len(rows) + 10,
        params=[{"name": "row_name", "value": [row.label for row in rows]}],
        layer=[
            {
                "transform": named,
                "mark": {"type": "bar", "height": {"band": 0.42}, "yOffset": 8, "style": "outlined-thin"},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "from"},
                    "x2": {"field": "to"},
                    "color": {
                        "field": "pattern",
                        "type": "ordinal",
                        "sort": list(_PATTERNS),
                        "scale": {"domain": list(_PATTERNS)},
                        "legend": {"title": None, "symbolType": "square"},
                    },
                    "tooltip": [
                        {"field": "name", "type": "nominal"},
                        {"field": "pattern", "type": "nominal"},
                        {"field": "share", "type": "quantitative", "format": ".3~%"},
                        {
                            "field": "operations",
                            "type": "quantitative",
                            "format": ",",
                            "title": "reads and writes",
                        },
                    ],
                },
            },
            {
                "data": {"values": [{"row": i} for i in range(len(rows))]},
                "transform": named,
                "mark": {"type": "text", "style": "ink", "align": "left", "dx": 2, "dy": -8, "limit": 300},
                "encoding": {"y": y, "x": {**x, "datum": 0}, "text": {"field": "name"}},
            },
        ],
    )
    said = "; ".join(
        f"{row.label}: " + ", ".join(f"{format_share(row.shares[p])} {p}" for p in _PATTERNS if row.shares[p])
        for row in rows[:10]
    )
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="Where reads and writes begin, by process and file: where the one before ended "
        "(consecutive), further on "
        "(sequential), at steady distances (strided) or anywhere (random). File systems read ahead and "
        "join requests only "
        "while accesses move forward.",
        description=f"{said}.",
        spec=spec,
        table=(
            ("entity", *_PATTERNS, "reads and writes"),
            tuple((row.label, *(number(row.shares[p]) for p in _PATTERNS), row.operations) for row in rows),
        ),
        sentence=f"All {rows[0].operations:,} reads and writes are {only[0]}: {_MEANINGS[only[0]]}."
        if only
        else "",
    )


def _rows(profile: Profile) -> Iterator[_Row]:
    """The workload, its apps, and the files (or datasets of many files) with most reads and writes."""
    yield _row("workload", [profile.workflow.io])
    if len(profile.apps) > 1:
        apps = [_row(f"app {name(app.name, 24)}", [app.io]) for app in profile.apps]
        yield from sorted(apps, key=lambda r: (-r.operations, r.label))[:_MOST_APPS]
    groups = [
        _row(
            tail(g.name, 40) + (f" ({len(g.files):,} files)" if len(g.files) > 1 else ""),
            [f.io for f in g.files],
        )
        for g in file_groups(profile.files)
    ]
    yield from sorted(groups, key=lambda r: (-r.operations, r.label))[:_MOST_FILES]


def _row(label: str, stats: Sequence[IOStats | IOSummary]) -> _Row:
    """Shares of several entities combined, weighted by their reads and writes."""
    shares = dict.fromkeys(_PATTERNS, 0.0)
    operations = 0
    for io in stats:
        if io.access_pattern is None:
            continue
        weight = io.ops.read + io.ops.write
        operations += weight
        for pattern in _PATTERNS:
            shares[pattern] += getattr(io.access_pattern, pattern) * weight
    return _Row(label, operations, {p: s / operations for p, s in shares.items()} if operations else shares)


PLOT = Plot(KIND, TITLE, "share of consecutive, sequential, strided and random accesses", _draw, position=110)
