"""Heat map: bytes over time and processes, read and written each in a field of its own."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

from vani.render.plots.drawing import Drawing, Plot, Row
from vani.render.plots.encoding import BYTES, chart, log_marks, name, number, time_axis
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap, HeatRow
from vani.units import format_bytes, format_seconds

__all__ = ["PLOT"]

KIND, TITLE = "heat-map", "Bytes over time and processes"

# Up to so many cells each is written with its exact number; more take one letter each, its place on the scale of
# colours, so that 512 processes fit into a page.
_EXACT = 6000
# ASCII without quotes, backslash and what HTML treats apart; the space stands for no bytes.
_LETTERS = "".join(chr(c) for c in range(33, 127) if chr(c) not in "\"'\\<>&`")
_TALLEST, _LOWEST, _ROW, _HEADING = 260, 60, 15, 24
_MOST_LABELS = 20
_TABLE_ROWS = 200
# Cells of one field: beyond that neighbouring bins are joined.
_MOST_CELLS = 40_000

Cell = tuple[int, int, int, int]
"""Field, row, bin, bytes."""


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del profile
    if heat is None:
        return "it needs the decoded calls"
    heat = _joined(heat, -(-len(heat.rows) * heat.bins // _MOST_CELLS))
    fields = [
        (title, values)
        for title, values in (("read", heat.read), ("written", heat.written))
        if any(map(any, values))
    ]
    if not fields:
        return "no byte was read or written"
    cells = [
        (place, row, bin_, amount)
        for place, (_, values) in enumerate(fields)
        for row, amounts in enumerate(values)
        for bin_, amount in enumerate(amounts)
        if amount
    ]
    most = max(cell[3] for cell in cells)
    busiest = max(cells, key=lambda c: (c[3], -c[1], -c[2]))
    largest = max((row.processes for row in heat.rows), default=1)
    each = "process" if largest == 1 else f"{largest} processes"
    whose = "each process" if largest == 1 else f"each row of up to {each}"
    length = format_seconds(heat.bin_s)
    quiet = sum(1 for row in range(len(heat.rows)) if not any(heat.read[row]) and not any(heat.written[row]))
    totals = ", ".join(f"{format_bytes(sum(map(sum, values)))} {title}" for title, values in fields)
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption=f"Bytes that {whose} moved in each {length}, on a scale of "
        "powers of ten; empty places moved none. Look for rows that are filled alone (one process "
        "does the work of all), for columns (all at once) and for empty time between.",
        description=f"Heat map of {len(heat.rows)} rows, one for {whose.replace('each row of ', '')}, "
        f"over {heat.bins} bins of {length}: "
        f"{totals}. Most in one bin: {format_bytes(most)} {fields[busiest[0]][0]} by "
        f"{_who(heat, heat.rows[busiest[1]])} at {format_seconds(busiest[2] * heat.bin_s)}. "
        f"Rows without any: {quiet}.",
        spec=_spec(heat, [title for title, _ in fields], cells, each),
        table=(
            ("rows", "first process", "processes", "read (bytes)", "written (bytes)", "in calls (s)"),
            _table(heat),
        ),
    )


def _joined(heat: HeatMap, factor: int) -> HeatMap:
    """The same with `factor` neighbouring bins in one."""
    if factor == 1:
        return heat
    starts = range(0, heat.bins, factor)

    def shorter(rows: list[list[Any]]) -> list[list[Any]]:
        return [[sum(row[i : i + factor]) for i in starts] for row in rows]

    return heat.model_copy(
        update={
            "bin_s": heat.bin_s * factor,
            "bins": len(starts),
            "read": shorter(heat.read),
            "written": shorter(heat.written),
            "busy_s": shorter(heat.busy_s),
        }
    )


def _who(heat: HeatMap, row: HeatRow) -> str:
    several = len(set(heat.app_of_trace)) > 1 or len(heat.app_of_trace) > 1
    app = f"{name(row.app, 24)} " if several else ""
    if row.ranks is None:
        return f"{app}processes {row.first_process} to {row.first_process + row.processes - 1}"
    first, last = row.ranks
    return f"{app}rank {first}" if first == last else f"{app}ranks {first} to {last}"


def _table(heat: HeatMap) -> tuple[Row, ...]:
    rows: list[Row] = [
        (
            _who(heat, row),
            row.first_process,
            row.processes,
            sum(heat.read[i]),
            sum(heat.written[i]),
            number(sum(heat.busy_s[i])),
        )
        for i, row in enumerate(heat.rows)
    ]
    if len(rows) <= _TABLE_ROWS:
        return tuple(rows)
    kept = sorted(sorted(range(len(rows)), key=lambda i: -rows[i][3] - rows[i][4])[:_TABLE_ROWS])
    return tuple(rows[i] for i in kept)


def _spec(heat: HeatMap, titles: list[str], cells: list[Cell], each: str) -> dict[str, Any]:
    processes = sum(row.processes for row in heat.rows)
    field_px = min(_TALLEST, max(_LOWEST, _ROW * len(heat.rows)))
    heading = _HEADING * processes / field_px
    step = processes + heading
    ticks, labels = _labels(heat, [i * step + heading for i in range(len(titles))])
    amounts = [c[3] for c in cells]
    low, high = float(min(amounts)), float(max(amounts))
    if low == high:
        # A scale of logarithms needs two ends.
        low, high = low / 2, high * 2
    exact = "''" if len(cells) <= _EXACT else "'about '"
    data, transform = _exact(cells) if len(cells) <= _EXACT else _lettered(heat, cells, low, high)
    tops = [row.first_process for row in heat.rows]
    params = [
        {"name": "row_top", "value": tops},
        {"name": "row_end", "value": [row.first_process + row.processes for row in heat.rows]},
        {"name": "row_name", "value": [_who(heat, row) for row in heat.rows]},
        {"name": "field_name", "value": titles},
        {"name": "tick_place", "value": [number(t) for t in ticks]},
        {"name": "tick_name", "value": labels},
    ]
    offset = f"{number(heading)} + datum.f * {number(step)}"
    transform += [
        {"calculate": f"datum.t * {heat.bin_s!r}", "as": "from"},
        {"calculate": f"(datum.t + 1) * {heat.bin_s!r}", "as": "to"},
        {"calculate": f"{offset} + row_top[datum.r]", "as": "top"},
        {"calculate": f"{offset} + row_end[datum.r]", "as": "end"},
        {"calculate": "row_name[datum.r]", "as": "who"},
        {"calculate": "field_name[datum.f]", "as": "what"},
        {"calculate": f"{exact} + format(datum.v, ',.0f')", "as": "amount"},
        {"calculate": "format(datum.from, ',.6~g') + ' s'", "as": "when"},
    ]
    y = {
        "field": "top",
        "type": "quantitative",
        "scale": {"domain": [0, number(step * len(titles))], "reverse": True, "nice": False},
        "axis": {
            "title": None,
            "values": [number(t) for t in ticks],
            "labelExpr": "tick_name[indexof(tick_place, datum.value)]",
            "grid": False,
            "ticks": False,
            "domain": False,
            "labelOverlap": "greedy",
        },
    }
    x = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": [0, heat.bins * heat.bin_s], "nice": False},
        "axis": time_axis(grid=False),
    }
    cell_layer: dict[str, Any] = {
        "transform": transform,
        "mark": {"type": "rect", "clip": True, "aria": False},
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "y": y,
            "y2": {"field": "end"},
            "color": {
                "field": "v",
                "type": "quantitative",
                "scale": {"type": "log", "domain": [low, high], "nice": False},
                "legend": {
                    "title": f"bytes per {each} and {format_seconds(heat.bin_s)}",
                    "type": "gradient",
                    "values": log_marks(low, high, most=4),
                    "labelExpr": BYTES,
                    "gradientLength": 200,
                    "offset": 0,
                },
            },
            "tooltip": [
                {"field": "who", "title": "who", "type": "nominal"},
                {"field": "when", "title": "from", "type": "nominal"},
                {"field": "amount", "title": "bytes", "type": "nominal"},
                {"field": "what", "title": "direction", "type": "nominal"},
            ],
        },
    }
    if len(cells) <= _EXACT:
        # Between neighbours the ground would shine through.
        cell_layer["mark"] |= {"stroke": {"expr": "scale('color', datum.v)"}, "strokeWidth": 0.5}
    frames = [
        {"top": number(i * step + heading), "end": number((i + 1) * step), "title": title}
        for i, title in enumerate(titles)
    ]
    frame_layer = {
        "data": {"values": frames},
        "mark": {"type": "rect", "fill": None, "style": "frame", "strokeWidth": 0.5, "aria": False},
        "encoding": {
            "x": {"datum": 0, "type": "quantitative"},
            "x2": {"datum": heat.bins * heat.bin_s},
            "y": y,
            "y2": {"field": "end"},
        },
    }
    title_layer = {
        "data": {"values": frames},
        "mark": {
            "type": "text",
            "style": "ink",
            "align": "left",
            "baseline": "bottom",
            "dy": -4,
            "fontWeight": "bold",
        },
        "encoding": {"x": {"datum": 0, "type": "quantitative"}, "y": y, "text": {"field": "title"}},
    }
    spec = chart([], round((field_px + _HEADING) * len(titles)), params=params)
    spec["data"] = data
    return {**spec, "layer": [cell_layer, frame_layer, title_layer]}


def _labels(heat: HeatMap, offsets: list[float]) -> tuple[list[float], list[str]]:
    """Places and texts of labels: each row where there is room, else the beginnings of traces or round numbers."""
    several = len(heat.first_process) > 1
    rows = heat.rows
    if len(rows) <= _MOST_LABELS:
        places = [row.first_process + row.processes / 2 for row in rows]
        texts = [_who(heat, row) for row in rows]
    elif several:
        # One label for a run of traces of one app, in its middle.
        total = sum(row.processes for row in rows)
        ends = [*heat.first_process[1:], total]
        runs: list[list[Any]] = []
        for app, first, end in zip(heat.app_of_trace, heat.first_process, ends, strict=True):
            if runs and runs[-1][0] == app:
                runs[-1][2] = end
            else:
                runs.append([app, first, end])
        places = [(first + end) / 2 for _, first, end in runs]
        texts = [name(app, 24) for app, _, _ in runs]
        if len(runs) > _MOST_LABELS:
            widest = sorted(sorted(range(len(runs)), key=lambda i: runs[i][1] - runs[i][2])[:_MOST_LABELS])
            places, texts = [places[i] for i in widest], [texts[i] for i in widest]
    else:
        total = sum(row.processes for row in rows)
        unit = 10 ** math.floor(math.log10(total / 8))
        step = next(unit * f for f in (1, 2, 5, 10) if total / (unit * f) <= 10)
        places = [i + 0.5 for i in range(0, total, step)]
        texts = [f"rank {i}" for i in range(0, total, step)]
    return list(chain.from_iterable([p + o for p in places] for o in offsets)), texts * len(offsets)


def _exact(cells: list[Cell]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Cells as comma-separated values: less than half of what JSON takes."""
    lines = ["f,r,t,v", *(f"{f},{r},{t},{v}" for f, r, t, v in cells)]
    kinds = dict.fromkeys("frtv", "number")
    return {"values": "\n".join(lines), "format": {"type": "csv", "parse": kinds}}, []


def _lettered(
    heat: HeatMap, cells: list[Cell], low: float, high: float
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Cells as letters, a row of the map a line of text; each letter is a step on the scale of logarithms."""
    steps = len(_LETTERS) - 1
    scale = steps / math.log(high / low)
    lines: dict[tuple[int, int], list[str]] = {}
    for field, row, bin_, amount in cells:
        line = lines.setdefault((field, row), [" "] * heat.bins)
        line[bin_] = _LETTERS[round(math.log(amount / low) * scale)]
    values = [{"f": f, "r": r, "c": "".join(line).rstrip()} for (f, r), line in lines.items()]
    return {"values": values}, [
        {"calculate": "sequence(0, length(datum.c))", "as": "t"},
        {"flatten": ["t"]},
        {"calculate": f"indexof('{_LETTERS}', substring(datum.c, datum.t, datum.t + 1))", "as": "k"},
        {"filter": "datum.k >= 0"},
        {"calculate": f"{low!r} * pow({high / low!r}, datum.k / {steps})", "as": "v"},
    ]


PLOT = Plot(
    KIND,
    TITLE,
    "bytes read and written by each process over time",
    _draw,
    position=10,
    needs_calls=True,
)
