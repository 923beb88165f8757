"""I/O time by file, or by dataset of related files (10,000 files `out_00000`, ... are one dataset)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import (
    NO_TIMES,
    call_kinds,
    chart,
    colour,
    name,
    number,
    seconds_axis,
    tail,
    up_to,
)
from vani.render.report.datasets import FileGroup, file_groups
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_bytes, format_seconds, format_share

KIND, TITLE = "files", "I/O time by file"
_MOST = 15
_REST = "all other listed files"
_TABLE_ROWS = 200


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del heat
    if not profile.files:
        return "the profile lists no file"
    if all(f.io.time_s.total is None for f in profile.files):
        return NO_TIMES
    kinds = call_kinds(profile.workflow.io)
    costs = [(g, by_kind) for g in file_groups(profile.files) if any(by_kind := _seconds(g, kinds))]
    if not costs:
        return "no time was spent in I/O on files"
    groups = [g for g, _ in costs]
    rows = [(_label(g), by_kind) for g, by_kind in costs[:_MOST]]
    if rest := costs[_MOST:]:
        many = sum(len(g.files) for g, _ in rest)
        rows.append(
            (
                f"{_REST} ({many:,})",
                [sum(column) for column in zip(*(by_kind for _, by_kind in rest), strict=True)],
            )
        )
    values: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    for i, (_, seconds) in enumerate(rows):
        begin = 0.0
        for kind, amount in zip(kinds, seconds, strict=True):
            if amount:
                values.append(
                    {
                        "row": i,
                        "kind": kind,
                        "seconds": number(amount),
                        "from": number(begin),
                        "to": number(begin + amount),
                    }
                )
                begin += amount
        ends.append({"row": i, "to": number(begin), "text": format_seconds(begin)})
    # Names are above the bars, since next to them they would leave no room on a narrow page.
    y = {"field": "row", "type": "ordinal", "scale": {"domain": list(range(len(rows)))}, "axis": None}
    x = {
        "type": "quantitative",
        "scale": up_to(max(e["to"] for e in ends), 60),
        "axis": seconds_axis("seconds in calls, summed over processes"),
    }
    spec = chart(
        values,
        36 * len(rows) + 10,
        params=[{"name": "row_name", "value": [label for label, _ in rows]}],
        layer=[
            {
                "transform": [{"calculate": "row_name[datum.row]", "as": "name"}],
                "mark": {"type": "bar", "height": {"band": 0.38}, "yOffset": 8},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "from"},
                    "x2": {"field": "to"},
                    "color": colour(None, [v["kind"] for v in values]),
                    "tooltip": [
                        {"field": "name", "type": "nominal"},
                        {"field": "kind", "type": "nominal"},
                        {"field": "seconds", "type": "quantitative", "format": ",.6~g"},
                    ],
                },
            },
            {
                "data": {"values": ends},
                "mark": {"type": "text", "style": "ink", "align": "left", "dx": 5, "dy": 8},
                "encoding": {"y": y, "x": {**x, "field": "to"}, "text": {"field": "text"}},
            },
            {
                "data": {"values": ends},
                "transform": [{"calculate": "row_name[datum.row]", "as": "name"}],
                "mark": {"type": "text", "style": "ink", "align": "left", "dx": 2, "dy": -8, "limit": 300},
                "encoding": {"y": y, "x": {**x, "datum": 0}, "text": {"field": "name"}},
            },
        ],
    )
    listed, all_files = len(profile.files), profile.dataset.files
    cut = (
        f" The profile lists {listed:,} of {all_files:,} files, those with most I/O time."
        if all_files is not None and listed < all_files
        else ""
    )
    total = sum(sum(by_kind) for _, by_kind in costs)
    first, of_first = costs[0]
    first_s = sum(of_first)
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="Seconds in calls on each file, summed over processes; files that differ only in numbers "
        "are one row with "
        f"their number behind. A few long bars mean that only these files are worth tuning.{cut}",
        description=f"{counted(len(profile.files), 'file')} in {counted(len(groups), 'group')}. Most time, "
        f"{format_seconds(first_s)} or {format_share(first_s / total)} of that on all of them, goes to "
        f"{_label(first)}, which moves {format_bytes(_bytes(first))}.",
        spec=spec,
        table=(
            ("files", "number of files", *(f"{kind} (s)" for kind in kinds), "bytes"),
            tuple(
                (name(g.name, 80), len(g.files), *(number(s) for s in by_kind), _bytes(g))
                for g, by_kind in costs[:_TABLE_ROWS]
            ),
        ),
    )


def _label(group: FileGroup) -> str:
    many = f" ({len(group.files):,} files)" if len(group.files) > 1 else ""
    return tail(group.name, 40) + many


def _seconds(group: FileGroup, kinds: Sequence[str]) -> list[float]:
    times = [file.io.time_s for file in group.files]
    return [sum(seconds for seconds in map(attrgetter(kind), times) if seconds) for kind in kinds]


def _bytes(group: FileGroup) -> int:
    return sum((f.io.bytes.read or 0) + (f.io.bytes.written or 0) for f in group.files)


PLOT = Plot(
    KIND,
    TITLE,
    "seconds in reads, writes, flushes and metadata calls of each file or dataset",
    _draw,
    position=90,
)
