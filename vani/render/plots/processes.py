"""Imbalance: I/O time and bytes of each process relative to its app's mean, naming the worst process."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from vani.render.plots import encoding
from vani.render.plots.drawing import Drawing, Row, plot
from vani.schema.profile import App, Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_bytes, format_number, format_seconds, format_share

_TIME, _BYTES = "I/O time", "bytes"
_MAX_POINTS = 512
_MAX_APPS = 30
_ALIKE = 0.05
"""Ratios to the mean within this distance all count as 1.0."""
_MAX_TABLE_ROWS = 200


@dataclass(frozen=True)
class _Process:
    """One process of the workload, or the one with most of a block."""

    number: int
    who: str
    io_s: float
    bytes: int
    io_ratio: float
    """I/O time over the mean of its app."""
    bytes_ratio: float


@plot(
    "processes",
    "Balance of processes",
    "I/O time and bytes of each process against the mean",
    position=60,
    uses="calls",
)
def processes(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    """I/O time and bytes of each process relative to the mean, or of the processes of each app."""
    if not any(app.balance for app in profile.apps):
        return "no process does I/O"
    if profile.workflow.processes == 1:
        return "the workload is one process: no processes to compare"
    if heat is not None and len(heat.app_of_trace) == 1 and any(heat.processes.io_s):
        return _each_process(heat)
    if profile.workflow.io.time_s.total is None:
        return encoding.NO_TIMES
    return _each_app(profile)


def _each_process(heat: HeatMap) -> Drawing:
    io_s = heat.processes.io_s
    moved = [r + w for r, w in zip(heat.processes.bytes_read, heat.processes.bytes_written, strict=True)]
    mean_s, mean_bytes = sum(io_s) / len(io_s), sum(moved) / len(moved)
    every = [
        _Process(i, f"rank {i}", s, b, s / mean_s, b / mean_bytes if mean_bytes else 0.0)
        for i, (s, b) in enumerate(zip(io_s, moved, strict=True))
    ]
    block = -(-len(every) // _MAX_POINTS)
    measures = [_TIME, *([_BYTES] if mean_bytes else [])]
    values: list[dict[str, Any]] = [
        {
            "process": worst.number,
            "measure": measure,
            "ratio": encoding.number(_ratio_of(measure)(worst)),
            "amount": _amount(worst, measure),
        }
        for measure in measures
        for first in range(0, len(every), block)
        for worst in [max(every[first : first + block], key=_ratio_of(measure))]
    ]
    # max returns the first of equal ones.
    worsts = {measure: max(every, key=_ratio_of(measure)) for measure in measures}
    most = max(1.0, *(v["ratio"] for v in values))
    names = [
        f"most {measure}: rank {p.number}, {_amount(p, measure)}, {_times_the_mean(_ratio_of(measure)(p))}"
        for measure, p in worsts.items()
    ]
    x = encoding.quantity(
        "process",
        scale={"domain": [-0.5, len(every) - 0.5], "nice": False},
        axis={"title": "rank", "grid": False, "tickMinStep": 1, "format": "d"},
    )
    y = encoding.quantity(
        "ratio",
        scale={"domain": [0, encoding.number(most * 1.18)], "nice": False},
        axis={"title": "times the mean of all ranks", "tickCount": 5},
    )
    by = encoding.category("measure", scale={"domain": measures}, legend={"title": None, "symbolOpacity": 1})
    few = len(every) <= 64
    spec = encoding.chart(
        values,
        220,
        title={"text": names, "fontSize": 11, "fontWeight": "normal", "offset": 10},
        layer=[
            {
                "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.45, "interpolate": "step"},
                "encoding": {"x": x, "y": y, "color": by},
            },
            {
                "mark": {"type": "point", "filled": True, "opacity": 0.9, "size": 45 if few else 16},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": by,
                    "shape": {**by, "legend": None},
                    "tooltip": [
                        encoding.quantity("process", title="rank"),
                        encoding.category("measure"),
                        encoding.category("amount"),
                        encoding.quantity("ratio", title="times the mean", format=".3~g"),
                    ],
                },
            },
            encoding.mean_line({"y": 1}, {"y": {**y, "field": "y"}}),
        ],
    )
    blocks = f" Each point represents {block} ranks and shows the one with most." if block > 1 else ""
    number = encoding.number
    rows = [(p.number, number(p.io_s), p.bytes, number(p.io_ratio), number(p.bytes_ratio)) for p in every]
    return Drawing(
        caption="I/O time and bytes of each rank against the mean of all (dashed). Points far above 1 are ranks that "
        f"the others wait for; where all are at 1 the I/O is balanced.{blocks}",
        description=f"{counted(len(every), 'rank')}; the mean is {format_seconds(mean_s)} and "
        f"{format_bytes(mean_bytes)}. The {'; the '.join(names)}.",
        spec=spec,
        table=(
            ("rank", "I/O time (s)", "bytes", "I/O time / mean", "bytes / mean"),
            tuple(sorted(sorted(rows, key=lambda r: (-r[1], r[0]))[:_MAX_TABLE_ROWS])),
        ),
        sentence=_balanced(every, mean_s, mean_bytes),
    )


def _balanced(every: list[_Process], mean_s: float, mean_bytes: float) -> str:
    """A sentence if all processes do the same; otherwise empty."""
    ratios = [p.io_ratio for p in every] + ([p.bytes_ratio for p in every] if mean_bytes else [])
    if any(abs(ratio - 1) > _ALIKE for ratio in ratios):
        return ""
    moved = f" and moves {format_bytes(mean_bytes)}" if mean_bytes else ""
    return (
        f"Each of the {counted(len(every), 'rank')} spends {format_seconds(mean_s)} in I/O{moved}, none more than "
        f"{format_share(_ALIKE)} above or below the mean."
    )


def _times_the_mean(ratio: float) -> str:
    return "like the mean" if ratio < 1.05 else f"{format_number(ratio)} times the mean"


def _ratio_of(measure: str) -> Callable[[_Process], float]:
    return attrgetter("io_ratio" if measure == _TIME else "bytes_ratio")


def _amount(process: _Process, measure: str) -> str:
    return format_seconds(process.io_s) if measure == _TIME else format_bytes(process.bytes)


def _each_app(profile: Profile) -> Drawing | str:
    """Mean, median and slowest process of each app."""
    apps = sorted(
        (a for a in profile.apps if a.balance is not None and a.io.time_s.total),
        key=lambda a: (-_times_of(a)[2], a.name),
    )
    if not apps:
        return "no time was spent in I/O"
    shown = apps[:_MAX_APPS]
    marks = ("median", "mean", "slowest")
    values: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    rows: list[Row] = []
    for i, app in enumerate(shown):
        amounts = _times_of(app)
        values += [
            {
                "app": i,
                "mark": mark,
                "seconds": encoding.number(amount),
                "who": _rank_of(app) if mark == "slowest" else "",
            }
            for mark, amount in zip(marks, amounts, strict=True)
        ]
        said = f"{_rank_of(app)}, {_times_the_mean(_times(app))}" if app.processes > 1 else "one process"
        texts.append({"app": i, "seconds": encoding.number(amounts[2]), "text": said})
        rows.append(_row(app))
    params, y = encoding.numbered("app", [encoding.name(app.name, 24) for app in shown])
    x = encoding.quantity(
        "seconds",
        scale=encoding.up_to(max(t["seconds"] for t in texts), 15 + 6 * max(len(t["text"]) for t in texts)),
        axis=encoding.seconds_axis("I/O time of a process"),
    )
    by = encoding.category("mark", scale={"domain": list(marks)}, legend={"title": None})
    points = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
        "encoding": {
            "x": x,
            "y": y,
            "color": by,
            "shape": by,
            "tooltip": [encoding.category("mark"), encoding.quantity("seconds", format=",.4~g"),
                encoding.category("who")],
        },
    }
    said_by = encoding.text(texts, {"x": x, "y": y}, "text", dx=9)
    others = len(apps) - len(shown)
    verb = "is" if others == 1 else "are"
    left_out = f" {counted(others, 'app')} with less {verb} left out." if others > 0 else ""
    worst = max(shown, key=_times)
    return Drawing(
        caption="I/O time of the slowest process of each app against mean and median. Where the slowest is far to the "
        f"right of the mean, the others wait for it.{left_out}",
        description=f"{counted(len(apps), 'app')} with I/O. The least balanced is {encoding.name(worst.name, 24)}: "
        f"{_rank_of(worst)} spends {format_number(_times(worst))} times the mean in I/O.",
        spec=encoding.chart(values, 26 * len(shown) + 10, params=params, layer=[points, said_by]),
        table=(
            (
                "app", "processes", "slowest rank", "slowest (s)", "mean (s)", "median (s)", "busiest rank",
                "its bytes", "mean bytes",
            ),
            tuple(rows),
        ),
        sentence=_equal_processes(apps),
    )


def _equal_processes(apps: list[App]) -> str:
    """A sentence if no app has a process slower than the others; otherwise empty."""
    if any(_times(app) > 1 + _ALIKE for app in apps):
        return ""
    times = ", ".join(f"{encoding.name(app.name, 24)} {format_seconds(_times_of(app)[1])}" for app in apps[:5])
    return (
        f"In {counted(len(apps), 'app')} no process spends more than {format_share(_ALIKE)} above the mean of its app "
        f"in I/O: {times}{' and others' if len(apps) > 5 else ''}."
    )


def _rank_of(app: App) -> str:
    # Each trace of an app has its own ranks, so a rank alone does not identify a process.
    if app.balance is None or app.balance.slowest_rank is None or app.instances > 1:
        return f"one of {app.processes:,}"
    return f"rank {app.balance.slowest_rank}"


def _times_of(app: App) -> tuple[float, float, float]:
    """Median, mean and maximum I/O time of its processes."""
    b = app.balance
    if b is None:
        return (0.0, 0.0, 0.0)
    return (b.median_io_time_s or 0.0, b.mean_io_time_s or 0.0, b.slowest_io_time_s or 0.0)


def _times(app: App) -> float:
    _, mean, slowest = _times_of(app)
    return slowest / mean if mean else 1.0


def _row(app: App) -> Row:
    b = app.balance
    if b is None:
        return (encoding.name(app.name, 40), app.processes)
    median, mean, slowest = _times_of(app)
    times = (b.slowest_rank, encoding.number(slowest), encoding.number(mean), encoding.number(median))
    return (encoding.name(app.name, 40), app.processes, *times, b.busiest_rank, b.busiest_bytes,
        encoding.number(b.mean_bytes))
