"""Maps of time and processes: a grid of coloured cells for each kind of amount, bytes or seconds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from vani.render.plots import encoding
from vani.render.plots.drawing import Drawing, Row, plot
from vani.schema.profile import Profile
from vani.schema.timeline import Call, HeatMap, HeatRow, KindSeconds
from vani.units import counted, format_bytes, format_seconds

# Up to this number, each cell is written with its exact value. Beyond it, each takes one letter for its
# position on the colour scale, so that 512 processes fit into a page.
_MAX_EXACT: Final = 6000
# ASCII without quotes, backslash and HTML's special characters; a space means an empty cell.
_LETTERS: Final = "".join(chr(c) for c in range(33, 127) if chr(c) not in "\"'\\<>&`")
_TALLEST, _LOWEST, _ROW, _HEADING = 260, 60, 15, 24
_LEAST_PX: Final = 2
"""Height that keeps the only active row of 512 visible."""
_MAX_LABELS: Final = 20
_COARSE_ROWS, _COARSE_BINS = 48, 80
# Maximum number of one-letter cells of a full map; beyond it, neighbouring bins are merged.
_MAX_LETTERS: Final = 140_000
_AROUND: Final = 38
"""Characters around those of a row."""

Field = tuple[str, list[list[Any]]]
"""Title of a grid, and amounts of shape (rows, bins)."""
Cell = tuple[int, int, int, Any]
"""Grid, row, bin, amount."""


@dataclass(frozen=True)
class Amount:
    """The quantity that colours the cells."""

    name: str
    label: str
    """Vega expression that formats `datum.value` on an axis."""
    digits: str
    """D3 format of a single amount."""


def fitting(heat: HeatMap, fields: int) -> HeatMap:
    """The heat map with neighbouring bins merged if this number of grids has too many cells for a page."""
    a_row = _MAX_LETTERS // max(1, fields * len(heat.rows)) - _AROUND
    return _joined(heat, -(-heat.bins // max(1, a_row)))


def cells_of(fields: Sequence[Field]) -> list[Cell]:
    """Cells that are not empty."""
    return [
        (place, row, bin_, amount)
        for place, (_, values) in enumerate(fields)
        for row, amounts in enumerate(values)
        for bin_, amount in enumerate(amounts)
        if amount
    ]


def rows_in_words(heat: HeatMap) -> tuple[str, str]:
    """The name of a row, `process` or `4 processes`, and `each process` or `each row of up to 4 processes`."""
    largest = max((row.processes for row in heat.rows), default=1)
    each = "process" if largest == 1 else f"{largest} processes"
    return each, "each process" if largest == 1 else f"each row of up to {each}"


def coarse(heat: HeatMap, rows: int = _COARSE_ROWS, bins: int = _COARSE_BINS) -> HeatMap:
    """The heat map with at most this many rows and bins; unchanged if it has no more."""
    per_row, per_bin = -(-len(heat.rows) // rows), -(-heat.bins // bins)
    if per_row == per_bin == 1:
        return heat
    return _joined(_fewer_rows(heat, per_row), per_bin)


def _fewer_rows(heat: HeatMap, factor: int) -> HeatMap:
    """The heat map with `factor` neighbouring rows merged into one."""
    if factor == 1:
        return heat
    starts = range(0, len(heat.rows), factor)

    def together(rows: list[list[Any]]) -> list[list[Any]]:
        return [[sum(column) for column in zip(*rows[i : i + factor], strict=True)] for i in starts]

    return _changed(heat, together, rows=[_one_row(heat.rows[i : i + factor]) for i in starts])


def _one_row(rows: Sequence[HeatRow]) -> HeatRow:
    first, last = rows[0], rows[-1]
    ranks = (first.ranks[0], last.ranks[1]) if first.trace == last.trace and first.ranks and last.ranks else None
    return first.model_copy(update={"processes": sum(row.processes for row in rows), "ranks": ranks})


def _joined(heat: HeatMap, factor: int) -> HeatMap:
    """The heat map with `factor` neighbouring bins merged into one."""
    if factor == 1:
        return heat
    starts = range(0, heat.bins, factor)

    def shorter(rows: list[list[Any]]) -> list[list[Any]]:
        return [[sum(row[i : i + factor]) for i in starts] for row in rows]

    return _changed(heat, shorter, bin_s=heat.bin_s * factor, bins=len(starts))


def _changed(heat: HeatMap, change: Callable[[list[list[Any]]], list[list[Any]]], **more: Any) -> HeatMap:
    """The heat map with all its grids, of shape (rows, bins), changed in the same way."""
    grids = {name: change(getattr(heat, name)) for name in ("read", "written", "busy_s")}
    kinds = heat.seconds
    if kinds is not None:
        kinds = kinds.model_copy(update={kind: change(getattr(kinds, kind)) for kind in KindSeconds.model_fields})
    return heat.model_copy(update={**more, **grids, "seconds": kinds})


def row_label(heat: HeatMap, row: HeatRow) -> str:
    """Name of the processes of a row."""
    app = f"{encoding.name(row.app, 24)} " if len(heat.app_of_trace) > 1 else ""
    if row.ranks is None:
        return f"{app}processes {row.first_process} to {row.first_process + row.processes - 1}"
    first, last = row.ranks
    return f"{app}rank {first}" if first == last else f"{app}ranks {first} to {last}"


def map_of(heat: HeatMap, titles: Sequence[str], cells: Sequence[Cell], amount: Amount) -> dict[str, Any]:
    """Specification of a map with one grid of cells per title."""
    each, _ = rows_in_words(heat)
    processes = sum(row.processes for row in heat.rows)
    field_px = min(_TALLEST, max(_LOWEST, _ROW * len(heat.rows)))
    heading = _HEADING * processes / field_px
    step = processes + heading
    ticks, labels = _labels(heat, [i * step + heading for i in range(len(titles))])
    amounts = [c[3] for c in cells]
    low, high = float(min(amounts)), float(max(amounts))
    if low == high:
        # A logarithmic scale needs two different ends.
        low, high = low / 2, high * 2
    is_exact = len(cells) <= _MAX_EXACT
    rows = ((f, r, t, v if isinstance(v, int) else encoding.number(v)) for f, r, t, v in cells)
    data, transform = (encoding.csv("frtv", rows), []) if is_exact else _lettered(heat, cells, low, high)
    about = "''" if is_exact else "'about '"
    least = _LEAST_PX * processes / field_px
    tops = [min(row.first_process, encoding.number(processes - least)) for row in heat.rows]
    ends = [
        max(row.first_process + row.processes, encoding.number(top + least))
        for row, top in zip(heat.rows, tops, strict=True)
    ]
    params = [
        {"name": "row_top", "value": tops},
        {"name": "row_end", "value": ends},
        {"name": "row_name", "value": [row_label(heat, row) for row in heat.rows]},
        {"name": "field_name", "value": list(titles)},
        {"name": "tick_place", "value": [encoding.number(t) for t in ticks]},
        {"name": "tick_name", "value": labels},
    ]
    offset = f"{encoding.number(heading)} + datum.f * {encoding.number(step)}"
    transform += [
        {"calculate": f"datum.t * {heat.bin_s!r}", "as": "from"},
        {"calculate": f"(datum.t + 1) * {heat.bin_s!r}", "as": "to"},
        {"calculate": f"{offset} + row_top[datum.r]", "as": "top"},
        {"calculate": f"{offset} + row_end[datum.r]", "as": "end"},
        {"calculate": "row_name[datum.r]", "as": "who"},
        {"calculate": "field_name[datum.f]", "as": "what"},
        {"calculate": f"{about} + format(datum.v, '{amount.digits}')", "as": "amount"},
        {"calculate": "format(datum.from, ',.6~g') + ' s'", "as": "when"},
    ]
    axis = {
        "title": None,
        "values": [encoding.number(t) for t in ticks],
        "labelExpr": "tick_name[indexof(tick_place, datum.value)]",
        "grid": False,
        "ticks": False,
        "domain": False,
        "labelOverlap": "greedy",
    }
    scale = {"domain": [0, encoding.number(step * len(titles))], "reverse": True, "nice": False}
    y = encoding.quantity("top", scale=scale, axis=axis)
    legend = {
        "title": f"{amount.name} per {each} and {format_seconds(heat.bin_s)}",
        "type": "gradient",
        "values": encoding.log_marks(low, high, most=4),
        "labelExpr": amount.label,
        "gradientLength": 200,
        "offset": 0,
    }
    cell_layer: dict[str, Any] = {
        "params": encoding.zoom(),
        "transform": transform,
        "mark": {"type": "rect", "clip": True, "aria": False},
        "encoding": {
            "x": encoding.from_start(heat.bins * heat.bin_s, grid=False),
            "x2": {"field": "to"},
            "y": y,
            "y2": {"field": "end"},
            "color": encoding.quantity("v", scale={"type": "log", "domain": [low, high], "nice": False}, legend=legend),
            "tooltip": [
                {"field": "who", "title": "who", "type": "nominal"},
                {"field": "when", "title": "from", "type": "nominal"},
                {"field": "amount", "title": amount.name, "type": "nominal"},
                {"field": "what", "title": "kind", "type": "nominal"},
            ],
        },
    }
    if is_exact:
        # Otherwise the background would shine through between neighbours.
        cell_layer["mark"] |= {"stroke": {"expr": "scale('color', datum.v)"}, "strokeWidth": 0.5}
    frames = [
        {"top": encoding.number(i * step + heading), "end": encoding.number((i + 1) * step), "title": title}
        for i, title in enumerate(titles)
    ]
    spec = encoding.chart([], round((field_px + _HEADING) * len(titles)), params=params)
    spec["data"] = data
    return {**spec, "layer": [cell_layer, *encoding.framed(frames, y)]}


def _labels(heat: HeatMap, offsets: list[float]) -> tuple[list[float], list[str]]:
    """Positions and texts of labels: every row if there is room, otherwise starts of traces or round numbers."""
    several = len(heat.first_process) > 1
    rows = heat.rows
    if len(rows) <= _MAX_LABELS:
        places = [row.first_process + row.processes / 2 for row in rows]
        texts = [row_label(heat, row) for row in rows]
    elif several:
        # One label for successive traces of an app, in their middle.
        total = sum(row.processes for row in rows)
        ends = [*heat.first_process[1:], total]
        runs: list[list[Any]] = []
        for app, first, end in zip(heat.app_of_trace, heat.first_process, ends, strict=True):
            if runs and runs[-1][0] == app:
                runs[-1][2] = end
            else:
                runs.append([app, first, end])
        places = [(first + end) / 2 for _, first, end in runs]
        texts = [encoding.name(app, 24) for app, _, _ in runs]
        if len(runs) > _MAX_LABELS:
            widest = sorted(sorted(range(len(runs)), key=lambda i: runs[i][1] - runs[i][2])[:_MAX_LABELS])
            places, texts = [places[i] for i in widest], [texts[i] for i in widest]
    else:
        total = sum(row.processes for row in rows)
        unit = 10 ** math.floor(math.log10(total / 8))
        step = next(unit * f for f in (1, 2, 5, 10) if total / (unit * f) <= 10)
        places = [i + 0.5 for i in range(0, total, step)]
        texts = [f"rank {i}" for i in range(0, total, step)]
    return list(chain.from_iterable([p + o for p in places] for o in offsets)), texts * len(offsets)


def _lettered(
    heat: HeatMap, cells: Sequence[Cell], low: float, high: float
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Cells as letters, with a line of text per row of the map; each letter is a step on the logarithmic scale."""
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


# --- the two maps -----------------------------------------------------------------------------------

_MAX_TABLE_ROWS: Final = 200
_TITLES: Final = {"read": "reading", "write": "writing", "sync": "flushing", "metadata": "metadata"}


@plot(
    "heat-map",
    "Bytes over time and processes",
    "bytes read and written by each process over time",
    position=10,
    needs="bins",
)
def heat_map(profile: Profile, heat: HeatMap) -> Drawing | str:
    """Bytes over time and processes, with separate fields for reads and writes."""
    del profile
    heat = fitting(heat, 2)
    both = (("read", heat.read), ("written", heat.written))
    fields = [(title, values) for title, values in both if any(map(any, values))]
    if not fields:
        return "no byte was read or written"
    spec, said = _drawn(heat, fields, Amount("bytes", encoding.BYTES, ",.0f"), format_bytes, (1, 2))
    _, whose = rows_in_words(heat)
    quiet = sum(1 for row in range(len(heat.rows)) if not any(heat.read[row]) and not any(heat.written[row]))
    rows: list[Row] = [
        (
            row_label(heat, row), row.first_process, row.processes, sum(heat.read[i]), sum(heat.written[i]),
            encoding.number(sum(heat.busy_s[i])),
        )
        for i, row in enumerate(heat.rows)
    ]  # fmt: skip
    return Drawing(
        caption=f"Bytes that {whose} moved in each {format_seconds(heat.bin_s)}, on a scale of powers of ten; empty "
        "places moved none. Look for rows that are filled alone (one process does the work of all), for columns (all "
        "at once) and for empty time between.",
        description=f"Heat map of {said} Rows without any: {quiet}.",
        spec=spec,
        table=(
            ("rows", "first process", "processes", "read (bytes)", "written (bytes)", "in calls (s)"),
            _largest(rows, lambda row: row[3] + row[4]),
        ),
    )


@plot(
    "io-time",
    "I/O time over time and processes",
    "seconds of each process in reads, writes, flushes and metadata calls over time",
    position=15,
    needs="data",
)
def io_time(profile: Profile, heat: HeatMap) -> Drawing | str:
    """Seconds in reads, writes, flushes and metadata calls, each in its own field."""
    del profile
    if heat.seconds is None:
        return "it needs the decoded calls"
    heat = fitting(heat, len(_TITLES))
    fields = [
        (title, values) for kind, title in _TITLES.items() if any(map(any, values := getattr(heat.seconds, kind)))
    ]
    if not fields:
        return "no time was spent in I/O"
    spec, said = _drawn(heat, fields, Amount("seconds", encoding.SECONDS, ".4~g"), format_seconds, (0, 1, 2))
    _, whose = rows_in_words(heat)
    rows = [
        (row_label(heat, row), *(encoding.number(sum(values[i])) for _, values in fields)) for i,
        row in enumerate(heat.rows)
    ]
    return Drawing(
        caption=f"Seconds that {whose} spent in calls of each kind in each {format_seconds(heat.bin_s)}, on a scale of "
        "powers of ten. Compare with the bytes: time without any is metadata, flushing or waiting; rows filled long "
        "after the others keep them waiting.",
        description=f"Map of {said}",
        spec=spec,
        table=(("rows", *(f"{title} (s)" for title, _ in fields)), _largest(rows, lambda row: sum(row[1:]))),
    )


def _drawn(
    heat: HeatMap, fields: Sequence[Field], amount: Amount, shown: Callable[[float], str], order: Sequence[int]
) -> tuple[dict[str, Any], str]:
    """The map of these fields, and in words; `order` of a cell's parts decides between equal amounts."""
    cells = cells_of(fields)
    most = max(cells, key=lambda cell: (cell[3], *(-cell[place] for place in order)))
    _, whose = rows_in_words(heat)
    totals = ", ".join(f"{shown(sum(map(sum, values)))} {title}" for title, values in fields)
    said = (
        f"{len(heat.rows)} rows, one for {whose.replace('each row of ', '')}, over {heat.bins} bins of "
        f"{format_seconds(heat.bin_s)}: {totals}. Most in one bin: {shown(most[3])} {fields[most[0]][0]} by "
        f"{row_label(heat, heat.rows[most[1]])} at {format_seconds(most[2] * heat.bin_s)}."
    )
    return map_of(heat, [title for title, _ in fields], cells, amount), said


def _largest(rows: Sequence[Row], amount: Callable[[Row], float]) -> tuple[Row, ...]:
    """The rows with the largest amounts, in order of processes."""
    largest = sorted(range(len(rows)), key=lambda i: -amount(rows[i]))[:_MAX_TABLE_ROWS]
    return tuple(rows[i] for i in sorted(largest))


# --- offsets ----------------------------------------------------------------------------------------

_MAX_FILES: Final = 4
_STEP: Final = 1.4
"""Height of a file with the heading above it, in heights of a file."""


@plot(
    "offsets",
    "Offsets over time, by file",
    "which part of each file is read and written when",
    position=17,
    needs="data",
)
def offsets(profile: Profile, heat: HeatMap) -> Drawing | str:
    """Reads and writes of the files with most bytes: when they take place, and which part of the file they move."""
    placed = [call for call in heat.sampled if call.offset is not None and call.bytes]
    if not placed:
        return "no read or write has a known offset"
    moved: dict[str, int] = {}
    for call in placed:
        moved[call.path] = moved.get(call.path, 0) + (call.bytes or 0)
    shown = sorted(moved, key=lambda path: (-moved[path], path))[:_MAX_FILES]
    extent = {path: max(_end(call) for call in placed if call.path == path) for path in shown}
    rows = []
    for call in placed:
        if call.path in extent:
            bottom = shown.index(call.path) * _STEP + _STEP
            begin, end = ((call.offset or 0) / extent[call.path], _end(call) / extent[call.path])
            times = (call.start_s, call.start_s + call.duration_s)
            rows.append((*map(encoding.number, (*times, bottom - begin, bottom - end)), call.kind, call.rank))
    titles = [f"{encoding.tail(path)}, {format_bytes(extent[path])}" for path in shown]
    ends = [_STEP * (i + 1) for i in range(len(shown))]
    names = [{"top": end - 1, "end": end, "title": title} for end, title in zip(ends, titles, strict=True)]
    scale = {"domain": [0, _STEP * len(shown)], "reverse": True, "nice": False}
    y = encoding.quantity("top", scale=scale, axis=None)
    runtime = profile.workflow.runtime_s or heat.runtime_s
    calls = {
        "params": encoding.zoom(),
        "mark": {"type": "rect", "strokeWidth": 1.5, "clip": True, "aria": False},
        "encoding": {
            "x": encoding.from_start(encoding.number(runtime)),
            "x2": {"field": "to"},
            "y": y,
            "y2": {"field": "end"},
            "color": encoding.colour(None, (call.kind for call in placed)),
            "stroke": {**encoding.colour(None, ()), "legend": None},
            "tooltip": [encoding.category("kind"), encoding.quantity("rank"), encoding.quantity("from")],
        },
    }
    spec = encoding.chart([], round(110 * _STEP * len(shown)), layer=[calls, *encoding.framed(names, y)])
    spec["data"] = encoding.csv(("from", "to", "top", "end", "kind", "rank"), rows)
    total = sum(calls.calls for calls in heat.calls if calls.kind in ("read", "write"))
    part = "" if total <= len(heat.sampled) else f" {len(heat.sampled):,} of {total:,} are drawn, chosen at random."
    first = shown[0]
    return Drawing(
        caption="Each read and write: when it takes place, and which part of the file it moves, from the first byte "
        "(below) to the last. Lines that rise are sequential; bands side by side are processes with a part each; "
        f"scattered marks are random access.{part}",
        description=f"{counted(len(rows), 'read or write', 'reads or writes')} of {counted(len(shown), 'file')}. Most "
        f"bytes are in {encoding.tail(first)}, up to {format_bytes(extent[first])}.",
        spec=spec,
        table=(
            ("file", "rank", "kind", "from (s)", "offset", "bytes"),
            tuple(
                (encoding.name(c.path, 60), c.rank, c.kind, encoding.number(c.start_s), c.offset, c.bytes)
                for c in sorted(placed, key=lambda c: (c.start_s, c.rank))[:_MAX_TABLE_ROWS]
            ),
        ),
    )


def _end(call: Call) -> int:
    return (call.offset or 0) + (call.bytes or 0)
