"""Encodings shared by all plots: axes with units, colours of kinds, and short, safe names."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from vani.render.report.tables import clip

# The same kind has the same colour in every plot; `theme` lists colours in this order.
KINDS = ("read", "write", "metadata", "mixed", "sync")

CALL_KINDS = ("read", "write", "sync", "metadata")
"""Kinds of calls that a profile distinguishes, with flushing (`sync`) after writing."""

# A space between number and unit, as in all texts.
_SCALED = "replace(format(datum.value, '.3~s'), regexp('([^0-9]?)$'), ' $1')"
BYTES = f"{_SCALED} + 'B'"
SECONDS = (
    "datum.value == 0 ? '0 s' : abs(datum.value) >= 1 "
    f"? format(datum.value, ',.4~r') + ' s' : {_SCALED} + 's'"
)
SHARE = "format(100 * datum.value, '.3~r') + ' %'"
"""Labels of axes: 1.5 MB, 0 s, 30 s, 250 ms, 40 %."""

SIZE_BINS = (
    "0-1K", "1K-4K", "4K-16K", "16K-64K", "64K-256K", "256K-1M", "1M-4M", "4M-16M", "16M-64M", "64M-256M",
    "256M-1G", "1G-4G", "4G+", "unknown",
)  # fmt: skip
"""The profile's histogram bins, in order."""

NO_TIMES = "the profile has no times: it was made with --quick; make it again without"

_LONGEST_NAME = 36


def quantity(field: str, **more: Any) -> dict[str, Any]:
    """An encoding of numbers."""
    return {"field": field, "type": "quantitative", **more}


def category(field: str, **more: Any) -> dict[str, Any]:
    """An encoding of names."""
    return {"field": field, "type": "nominal", **more}


def ordered(field: str, **more: Any) -> dict[str, Any]:
    """An encoding of names or numbers that have an order."""
    return {"field": field, "type": "ordinal", **more}


def numbered(field: str, names: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Parameters and axis for rows that values name by number, so that a long name is written once."""
    label = f"{field}_name[datum.value]"
    axis = {"title": None, "labelExpr": label, "ticks": False, "domain": False}
    y = ordered(field, scale={"domain": list(range(len(names)))}, axis=axis)
    return [{"name": f"{field}_name", "value": list(names)}], y


ROW_NAME = {"calculate": "row_name[datum.row]", "as": "name"}
"""Transformation that looks the name of a row up."""


def text(
    values: Sequence[dict[str, Any]], at: dict[str, Any], field: str, *, transform: Any = None, **mark: Any
) -> dict[str, Any]:
    """A layer of texts at positions, by default left-aligned."""
    return {
        "data": {"values": list(values)},
        **({} if transform is None else {"transform": transform}),
        "mark": {"type": "text", "style": "ink", "align": "left", **mark},
        "encoding": {**at, "text": {"field": field}},
    }


def stacked(
    rows: Iterable[Sequence[float]], kinds: Sequence[str] = CALL_KINDS, measure: str = "seconds", *, kind: str = "kind"
) -> list[dict[str, Any]]:
    """Values of one bar per row: each kind with an amount, and where its part of the bar begins and ends."""
    values: list[dict[str, Any]] = []
    for row, amounts in enumerate(rows):
        begin = 0.0
        for name_, amount in zip(kinds, amounts, strict=True):
            if amount:
                part = {"row": row, kind: name_, measure: number(amount)}
                values.append(part | span(begin, begin + amount))
                begin += amount
    return values


def bars(
    values: Sequence[dict[str, Any]], y: dict[str, Any], x: dict[str, Any], *tooltip: dict[str, Any], **mark: Any
) -> dict[str, Any]:
    """A layer of horizontal bars from values of `stacked`, coloured by kind of call."""
    return {
        "mark": {"type": "bar", "height": {"band": 0.72}, **mark},
        "encoding": {
            "y": y,
            "x": {**x, "field": "from"},
            "x2": {"field": "to"},
            "color": colour(None, (value.get("kind", "") for value in values)),
            "tooltip": list(tooltip),
        },
    }


def mean_line(value: dict[str, float], at: dict[str, Any]) -> dict[str, Any]:
    """A layer with a dashed line at a value."""
    mark = {"type": "rule", "style": "mean", "strokeDash": [4, 3]}
    return {"data": {"values": [value]}, "mark": mark, "encoding": at}


def logarithmic(value: int, most: int) -> float:
    """Position 0..1 on a logarithmic scale whose 0 is a millionth of the maximum."""
    return max(0.0, 1 + math.log10(value / most) / 6) if value and most else 0.0


def chart(values: Sequence[dict[str, Any]], height: int, **rest: Any) -> dict[str, Any]:
    """A specification with inline data that fills the available width."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding", "resize": True},
        "data": {"values": list(values)},
        **rest,
    }


def name(text: str, longest: int = _LONGEST_NAME) -> str:
    """A name from a trace as a label: a single line without control characters, shortened in the middle."""
    return clip(text, longest) or "(no name)"


def tail(path: str, longest: int = _LONGEST_NAME) -> str:
    """A path as a label: its last two parts, or the last one, shortened in the middle if that is too long."""
    last_two = "/".join(path.split("/")[-2:]) if path.count("/") > 1 else path
    return name(last_two if len(last_two) <= longest else last_two.rpartition("/")[2], longest)


def csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Inline data as comma-separated values, less than half the size of JSON; values need no quotes."""
    rows = list(rows)
    kinds = {name: "number" for name, value in zip(columns, rows[0], strict=True) if not isinstance(value, str)}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    return {"values": "\n".join(lines), "format": {"type": "csv", "parse": kinds}}


def framed(frames: Sequence[dict[str, Any]], y: dict[str, Any]) -> list[dict[str, Any]]:
    """Layers with a frame from `top` to `end` and a `title` above it, for fields that are stacked on one axis."""
    data = {"values": list(frames)}
    box = {"type": "rect", "fill": None, "style": "frame", "strokeWidth": 0.5, "aria": False}
    above = {"baseline": "bottom", "dy": -4, "fontWeight": "bold"}
    sides = {"x": {"value": 0}, "x2": {"value": "width"}, "y": y, "y2": {"field": "end"}}
    return [
        {"data": data, "mark": box, "encoding": sides},
        text(frames, {"x": {"value": 0}, "y": y}, "title", **above),
    ]


def number(value: float) -> float:
    """A float with seven digits, enough for any plot and no longer than needed."""
    return float(f"{value:.7g}")


def span(begin: float, end: float) -> dict[str, float]:
    """The fields of a bar that begins and ends there."""
    return {"from": number(begin), "to": number(end)}


def colour(title: str | None, kinds: Iterable[str] = KINDS, field: str = "kind") -> dict[str, Any]:
    """Colour by kind of call; the legend lists the kinds that occur."""
    occurring = set(kinds)
    shown = [k for k in (*CALL_KINDS, "mixed") if k in occurring]
    legend = {"title": title, "values": shown, "symbolType": "square"}
    return category(field, scale={"domain": list(KINDS)}, legend=legend)


def time_axis(title: str = "time since the start", grid: bool = True) -> dict[str, Any]:
    """Axis of seconds since the start of the workload."""
    return {"title": title, "labelExpr": SECONDS, "grid": grid, "labelFlush": True, "tickCount": 8}


def from_start(end_s: float, *, grid: bool = True) -> dict[str, Any]:
    """Horizontal position of the field `from`, on an axis of the whole run."""
    return quantity("from", scale={"domain": [0, end_s], "nice": False}, axis=time_axis(grid=grid))


def zoom() -> list[dict[str, Any]]:
    """Zoom in time by dragging, or with the wheel and Shift; a double click shows everything again."""
    select = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"}
    return [{"name": "zoom", "select": select, "bind": "scales"}]


def seconds_axis(title: str) -> dict[str, Any]:
    """Axis of durations."""
    return {"title": title, "labelExpr": SECONDS, "tickCount": 6}


def size_axis(title: str, per_second: bool = False) -> dict[str, Any]:
    """Axis of bytes, or of bytes per second."""
    return {"title": title, "labelExpr": BYTES + (" + '/s'" if per_second else ""), "tickCount": 5}


def share_axis(title: str) -> dict[str, Any]:
    """Axis of shares, in percent."""
    return {"title": title, "labelExpr": SHARE, "tickCount": 5}


def binned(field: str, bins: Sequence[str], title: str, **axis: Any) -> dict[str, Any]:
    """Horizontal position in bins, with room for bars side by side in each."""
    scale = {"domain": bins, "paddingInner": 0.25}
    return ordered(field, sort=bins, scale=scale, axis={"title": title, **axis})


def up_to(most: float, text_px: int) -> dict[str, Any]:
    """Scale of a horizontal axis from 0 that leaves room for a text after the longest bar on any width."""
    end = f"{number(most)!r} * width / max(width - {text_px}, 0.4 * width)"
    return {"domainMin": 0, "domainMax": {"expr": end}, "nice": False}


def size_labels(bins: Sequence[str]) -> dict[str, Any]:
    """How an axis labels histogram bins: horizontally if there is room, otherwise vertically."""
    return {"labelAngle": {"expr": f"width < {28 * len(bins)} ? -90 : width < {62 * len(bins)} ? -35 : 0"}}


def log_marks(low: float, high: float, most: int = 6) -> list[float]:
    """Three to `most` round values between the ends of a logarithmic scale, if there are enough."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        marks = [10.0**e * f for e in range(first, last + 1) for f in factors if low <= 10.0**e * f <= high]
        if len(marks) >= 3:
            break
    return marks[:: -(-len(marks) // most) or 1] or [low, high]


def by_size(histogram: Iterable[str]) -> list[str]:
    """Bins of a histogram in order of size, from the first to the last that occur, without gaps."""
    occurring = set(histogram)
    known = [i for i, b in enumerate(SIZE_BINS[:-1]) if b in occurring]
    between = list(SIZE_BINS[known[0] : known[-1] + 1]) if known else []
    return between + sorted(occurring - set(SIZE_BINS[:-1]))
