"""The first picture of a page: what processes do over time, with a colour for each kind of call.

It consists of SVG elements written here, so that it appears where scripts do not run, and on paper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from vani.render.plots.drawing import theme
from vani.render.plots.time_maps import coarse, row_label
from vani.render.report.tables import clip
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_seconds, format_share

_KINDS: Final = {"read": "reading", "write": "writing", "sync": "flushing", "metadata": "metadata"}
_OF_PHASES: Final = {"read": "reading", "write": "writing", "metadata": "metadata", "mixed": "reading and writing"}
_ORDER: Final = ("read", "write", "metadata", "mixed", "sync")
"""The order of colours in every plot."""
COLOURS: Final = dict(zip(_ORDER, theme(dark=False)["range"]["category"], strict=False))

_ROWS, _BINS, _APPS = 24, 120, 12
_WIDE: Final = 300
"""Width in units of a picture without bins."""
_SPANS: Final = 1000
"""Maximum number of drawn repetitions of a phase."""
_LEVELS: Final = (0.5, 0.1, 0.0)
"""Minimum share of time that a cell's processes spend in calls, by level, full colour first."""


_PALER: Final = "The colour is the kind of call that takes most time; paler: less of the time; empty: no I/O."
_FEWER: Final = "The colour is the direction of most bytes; paler: fewer bytes; empty: none."


@dataclass(frozen=True)
class Part:
    """All areas of one kind and level, as a single path."""

    kind: str
    level: int
    """0 is full colour; higher levels are paler."""
    colour: str
    path: str


@dataclass(frozen=True)
class FirstPicture:
    """A picture whose rows are processes or apps, and whose width is time."""

    title: str
    description: str
    note: str
    """Meaning of rows and shades."""
    columns: int
    rows: int
    parts: tuple[Part, ...]
    labels: tuple[tuple[float, str], ...]
    """Position of a row, 0..1 from the top, and its name."""
    ticks: tuple[str, ...]
    legend: tuple[tuple[str, str, str], ...]
    """Kind, its colour, and its name with its share of the I/O time."""


def first_picture(profile: Profile, heat: HeatMap | str) -> FirstPicture | None:
    """A map of processes over time; or of apps by their phases; None if neither is known."""
    return _of_processes(profile, heat) or _of_phases(profile)


def _of_processes(profile: Profile, heat: HeatMap | str) -> FirstPicture | None:
    if isinstance(heat, str):
        return None
    heat = coarse(heat, _ROWS, _BINS)
    seconds, moved = heat.seconds, {"read": heat.read, "write": heat.written}
    tables = moved if seconds is None else {kind: getattr(seconds, kind) for kind in _KINDS}
    most = max((max(row, default=0) for table in moved.values() for row in table), default=0)
    cells: list[tuple[str, int, int, int, int]] = []
    for place, row in enumerate(heat.rows):
        for start in range(heat.bins):
            amounts = {kind: table[place][start] for kind, table in tables.items()}
            whole = sum(amounts.values())
            if whole:
                kind = max(amounts, key=lambda kind: amounts[kind])
                share = whole / (most if seconds is None else heat.bin_s * row.processes)
                level = next(i for i, least in enumerate(_LEVELS) if share >= least)
                cells.append((kind, level, place, start, start + 1))
    if not cells:
        return None
    several = len(set(heat.app_of_trace)) > 1
    labels = [clip(row.app, 20) if several else row_label(heat, row) for row in heat.rows]
    processes = sum(row.processes for row in heat.rows)
    return _picture(
        "What processes do over time",
        f"{counted(processes, 'process')} over {format_seconds(heat.bins * heat.bin_s)}",
        " ".join(filter(None, (_PALER if seconds is not None else _FEWER, heat.note))),
        heat.bins, len(heat.rows), cells, labels, heat.bins * heat.bin_s, _legend(profile, {c[0] for c in cells}),
    )  # fmt: skip


def _of_phases(profile: Profile) -> FirstPicture | None:
    runtime = profile.workflow.runtime_s
    if not profile.phases or not runtime:
        return None
    apps = list(dict.fromkeys(phase.app for phase in profile.phases))[:_APPS]
    colours: list[list[str]] = [[""] * _WIDE for _ in apps]
    rows = dict(zip(apps, colours, strict=True))
    for phase in profile.phases:
        if phase.app not in rows:
            continue
        for start, end in phase.spans[:_SPANS]:
            left = min(_WIDE - 1, int(start / runtime * _WIDE))
            right = min(_WIDE, max(left + 1, round(end / runtime * _WIDE)))
            rows[phase.app][left:right] = [phase.kind] * (right - left)
    cells = [
        (kind, 0, place, at, at + 1) for place, row in enumerate(colours) for at, kind in enumerate(row) if kind
    ]
    kinds = {phase.kind for phase in profile.phases}
    return _picture(
        "Phases of I/O over time",
        f"{counted(len(apps), 'app')} over {format_seconds(runtime)}",
        "The colour is the kind of most calls of a phase; empty: no I/O.",
        _WIDE, len(apps), cells, [clip(app, 20) for app in apps], runtime,
        tuple((kind, COLOURS[kind], _OF_PHASES[kind]) for kind in _ORDER if kind in kinds),
    )  # fmt: skip


def _picture(
    title: str,
    what: str,
    note: str,
    columns: int,
    rows: int,
    cells: Sequence[tuple[str, int, int, int, int]],
    labels: Sequence[str],
    end_s: float,
    legend: tuple[tuple[str, str, str], ...],
) -> FirstPicture:
    """Assemble a picture from cells of (kind, level, row, left, right)."""
    areas: dict[tuple[str, int], list[str]] = {}
    for kind, level, row, left, right in _joined(cells):
        areas.setdefault((kind, level), []).append(f"M{left} {row}h{right - left}v1h{left - right}z")
    parts = tuple(Part(kind, level, COLOURS[kind], "".join(d)) for (kind, level), d in sorted(areas.items()))
    kinds = ", ".join(words for _, _, words in legend)
    return FirstPicture(
        title=title,
        description=f"{title}: {what}; {kinds}.",
        note=note,
        columns=columns,
        rows=rows,
        parts=parts,
        labels=tuple(_placed(labels)),
        ticks=tuple(format_seconds(end_s * part) for part in (0.0, 0.5, 1.0)),
        legend=legend,
    )


def _joined(cells: Iterable[tuple[str, int, int, int, int]]) -> list[tuple[str, int, int, int, int]]:
    """The cells with neighbours of one colour merged."""
    joined: list[tuple[str, int, int, int, int]] = []
    for cell in cells:
        if joined and joined[-1][:3] == cell[:3] and joined[-1][4] == cell[3]:
            joined[-1] = (*joined[-1][:4], cell[4])
        else:
            joined.append(cell)
    return joined


_MAX_LABELS: Final = 8


def _placed(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Names of rows at their middle: one for neighbours with the same name; of many, only the first and the last."""
    runs: list[tuple[int, int, str]] = []
    for place, label in enumerate(labels):
        if runs and runs[-1][2] == label:
            runs[-1] = (runs[-1][0], place + 1, label)
        else:
            runs.append((place, place + 1, label))
    if len(runs) > _MAX_LABELS:
        runs = [runs[0], runs[-1]]
    return [((first + end) / 2 / len(labels), label) for first, end, label in runs]


def _legend(profile: Profile, kinds: set[str]) -> tuple[tuple[str, str, str], ...]:
    times = {kind: getattr(profile.workflow.io.time_s, kind) or 0.0 for kind in _KINDS}
    whole = sum(times.values())
    return tuple(
        (kind, COLOURS[kind], f"{name} {format_share(times[kind] / whole)}" if whole else name)
        for kind, name in _KINDS.items()
        if kind in kinds or (times[kind] and whole)
    )
