"""Heat map of bytes over time and processes, with separate fields for reads and writes."""

from __future__ import annotations

from typing import Final

from vani.render.plots.drawing import Drawing, Plot, Row
from vani.render.plots.encoding import BYTES, number
from vani.render.plots.process_grid import Amount, cells_of, fitting, map_of, row_label, rows_in_words
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import format_bytes, format_seconds

KIND, TITLE = "heat-map", "Bytes over time and processes"

_TABLE_ROWS: Final = 200
_BYTES: Final = Amount("bytes", BYTES, ",.0f")


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del profile
    if heat is None:
        return "it needs the decoded calls"
    heat = fitting(heat, 2)
    fields = [
        (title, values)
        for title, values in (("read", heat.read), ("written", heat.written))
        if any(map(any, values))
    ]
    if not fields:
        return "no byte was read or written"
    cells = cells_of(fields)
    most = max(cell[3] for cell in cells)
    busiest = max(cells, key=lambda c: (c[3], -c[1], -c[2]))
    _, whose = rows_in_words(heat)
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
        f"{row_label(heat, heat.rows[busiest[1]])} at {format_seconds(busiest[2] * heat.bin_s)}. "
        f"Rows without any: {quiet}.",
        spec=map_of(heat, [title for title, _ in fields], cells, _BYTES),
        table=(
            ("rows", "first process", "processes", "read (bytes)", "written (bytes)", "in calls (s)"),
            _table(heat),
        ),
    )


def _table(heat: HeatMap) -> tuple[Row, ...]:
    rows: list[Row] = [
        (
            row_label(heat, row),
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
    largest = sorted(sorted(range(len(rows)), key=lambda i: -rows[i][3] - rows[i][4])[:_TABLE_ROWS])
    return tuple(rows[i] for i in largest)


PLOT = Plot(
    KIND,
    TITLE,
    "bytes read and written by each process over time",
    _draw,
    position=10,
    needs_calls=True,
)
