"""I/O time over time and processes: seconds in reads, writes, flushes and metadata calls, each in its own field."""

from __future__ import annotations

from typing import Final

from vani.render.plots.drawing import Drawing, Plot, Row
from vani.render.plots.encoding import SECONDS, number
from vani.render.plots.process_grid import Amount, Field, cells_of, fitting, map_of, row_label, rows_in_words
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import format_seconds

KIND, TITLE = "io-time", "I/O time over time and processes"

_TITLES: Final = {"read": "reading", "write": "writing", "sync": "flushing", "metadata": "metadata"}
_TABLE_ROWS: Final = 200
_SECONDS: Final = Amount("seconds", SECONDS, ".4~g")


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del profile
    if heat is None or heat.seconds is None:
        return "it needs the decoded calls"
    heat = fitting(heat, len(_TITLES))
    fields: list[Field] = [
        (title, values)
        for kind, title in _TITLES.items()
        if any(map(any, values := getattr(heat.seconds, kind)))
    ]
    if not fields:
        return "no time was spent in I/O"
    cells = cells_of(fields)
    most = max(cells, key=lambda c: (c[3], -c[0], -c[1], -c[2]))
    _, whose = rows_in_words(heat)
    length = format_seconds(heat.bin_s)
    totals = ", ".join(f"{format_seconds(sum(map(sum, values)))} {title}" for title, values in fields)
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption=f"Seconds that {whose} spent in calls of each kind in each {length}, on a scale of powers of "
        "ten. Compare with the bytes: time without any is metadata, flushing or waiting; rows filled long after "
        "the others keep them waiting.",
        description=f"Map of {len(heat.rows)} rows, one for {whose.replace('each row of ', '')}, over {heat.bins} bins "
        f"of {length}: {totals}. Most in one bin: {format_seconds(most[3])} {fields[most[0]][0]} by "
        f"{row_label(heat, heat.rows[most[1]])} at {format_seconds(most[2] * heat.bin_s)}.",
        spec=map_of(heat, [title for title, _ in fields], cells, _SECONDS),
        table=(
            ("rows", *(f"{title} (s)" for title, _ in fields)),
            _table(heat, fields),
        ),
    )


def _table(heat: HeatMap, fields: list[Field]) -> tuple[Row, ...]:
    """The rows with most time, in order of processes."""
    sums = [[sum(values[i]) for _, values in fields] for i in range(len(heat.rows))]
    longest = sorted(sorted(range(len(sums)), key=lambda i: (-sum(sums[i]), i))[:_TABLE_ROWS])
    return tuple((row_label(heat, heat.rows[i]), *map(number, sums[i])) for i in longest)


PLOT = Plot(
    KIND,
    TITLE,
    "seconds of each process in reads, writes, flushes and metadata calls over time",
    _draw,
    position=15,
    needs_calls=True,
)
