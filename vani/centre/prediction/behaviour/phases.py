"""Phases of a run in a time series, and which runs have the same phases.

A wavelet transform (Haar) finds roughly where something changes, and the series itself shows the exact place,
because an approximation at level L resolves an edge only to 2^L samples. Figures are compared in logarithms, so
that a change by a tenth is the same for large and small values. The transform is cleared of anything that noise
alone would cause; an edge is then searched in the series where the rest changes. Edges that noise explains are
removed, and missed edges are added.

Phases of all runs in a category are clustered by their figures per second (bytes read, written, and any others that
are known), as runs are clustered by their totals. Runs with the same sequence of phases behave alike. As in the
paper, the length of a phase does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import click
import numpy as np

from vani.centre.columns import Floats, Ints
from vani.centre.prediction.behaviour.clustering import FACTOR, behaviour_ids
from vani.cli.options import FILE
from vani.cli.plot import heat_map
from vani.cli.profile import profile
from vani.errors import InputError, one_line
from vani.readers.darshan import is_darshan
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import Records, read_records
from vani.render.table import table
from vani.schema.settings import PathLike
from vani.units import counted, format_bytes, format_seconds

_IDLE: Final = 0.01
"""Share of a figure's maximum below which it counts as zero."""
_LOW: Final = (0.2, 0.1, 0.05, 0.02)
"""Shares of the maximum below which a figure may be only noise."""
_FEW: Final = 8
_NOT_RELATIVE: Final = 0.4
"""Noise that is a larger share of its mean is not relative noise."""
_REACH: Final = 4.0
"""Number of standard deviations that noise around 0 reaches."""
_LEAST_NOISE: Final = 0.02
"""Minimum standard deviation in logarithms: smaller differences are never a phase."""
_DEVIATION: Final = 0.6745
"""Median absolute deviation of a normal distribution, in standard deviations."""
_DEEPEST: Final = 8
_ROUNDS: Final = 6



@dataclass(frozen=True)
class Phase:
    """A part of a run in which the figures stay at one level.

    Attributes
    ----------
    begin, end
        Index of its first sample, and of the first sample after it.
    means
        Mean of each figure per sample; 0 if it is within the noise.
    """

    begin: int
    end: int
    means: tuple[float, ...]


def phases(series: Floats) -> list[Phase]:
    """Find the phases of a run, without idle times before the first and after the last.

    Parameters
    ----------
    series
        Finite and non-negative, shape (samples, figures); samples cover equal times.

    Returns
    -------
    Phases in order of time; empty if the run has no activity.

    Raises
    ------
    InputError
        PyWavelets is not installed.
    """
    if not series.size or not series.any():
        return []
    floors = _floors(series)
    busy = np.flatnonzero((series > floors).any(axis=1))
    first, last = int(busy[0]), int(busy[-1]) + 1
    part = series[first:last]
    used = part.max(axis=0) > 0
    levels = np.log1p(part[:, used] / floors[used])
    noise = _noise(levels)
    edges = _settled(_Sums(levels, noise), _candidates(levels, noise))
    places = [0, *edges.tolist(), len(part)]
    sums = np.concatenate([np.zeros((1, part.shape[1])), np.cumsum(part, axis=0)])
    stretches = []
    for begin, end in pairwise(places):
        means = (sums[end] - sums[begin]) / (end - begin)
        stretches.append(Phase(first + begin, first + end, tuple(np.where(means > floors, means, 0.0).tolist())))
    return stretches


def _floors(series: Floats) -> Floats:
    """Values that count as zero: a share of the maximum, or the reach of noise around 0, shape (figures,)."""
    most = series.max(axis=0)
    floors: Floats = np.maximum(_IDLE * most, np.finfo(float).tiny)
    for number, column in enumerate(series.T):
        moved = np.abs(np.diff(column))
        for share in _LOW:
            low = column < share * most[number]
            steps = moved[low[1:] & low[:-1]]
            steps = steps[steps > 0]
            if len(steps) < _FEW:
                break
            noise = float(np.median(steps)) / _DEVIATION / np.sqrt(2)
            if noise > float(column[low].mean()) * _NOT_RELATIVE:
                floors[number] = max(floors[number], _REACH * noise)
                break
    return floors


def _noise(levels: Floats) -> Floats:
    """Standard deviation of each figure between successive samples, shape (figures,)."""
    deviations = np.full(levels.shape[1], _LEAST_NOISE)
    for number, steps in enumerate(np.abs(np.diff(levels, axis=0)).T):
        moves = steps > 0
        # Noise moves a figure at every sample; occasional moves are edges.
        noisy = moves.copy()
        noisy[1:] &= moves[:-1]
        if noisy.sum() > moves.sum() / 2:
            deviations[number] = max(_LEAST_NOISE, float(np.median(steps[noisy])) / _DEVIATION / np.sqrt(2))
    return deviations


def _candidates(levels: Floats, noise: Floats) -> Ints:
    """Indices at which the series changes after its wavelet transform is cleared of noise."""
    try:
        import pywt  # noqa: PLC0415 - an extra, loaded where it is used
    except ImportError as error:
        what = "phases of runs need PyWavelets, which is not installed"
        raise InputError(what, todo="pip install 'vani-io[centre]'") from error
    samples = len(levels)
    deepest = min(_DEEPEST, int(np.log2(samples))) if samples > 1 else 0
    if not deepest:
        return np.zeros(0, np.int64)
    least = noise * np.sqrt(2 * np.log(samples))
    changes = np.zeros(samples - 1, np.bool_)
    for number, column in enumerate(levels.T):
        approximation, *details = pywt.wavedec(column, "haar", mode="symmetric", level=deepest)
        thresholded = [np.where(np.abs(detail) > least[number], detail, 0.0) for detail in details]
        cleared = pywt.waverec([approximation, *thresholded], "haar", mode="symmetric")[:samples]
        changes |= np.abs(np.diff(cleared)) > noise[number] / 2
    candidates: Ints = np.flatnonzero(changes) + 1
    return candidates


class _Sums:
    """Prefix sums that show in constant time how well an edge divides a stretch of samples.

    The noise is computed from the steps within the stretch, but is never below that of the whole run: in
    logarithms, a figure can be much noisier where little happens.
    """

    def __init__(self, levels: Floats, noise: Floats) -> None:
        none = np.zeros((1, levels.shape[1]))
        self.samples = len(levels)
        self.price = 3.0 * np.log(max(2, self.samples)) + 3.0 * levels.shape[1]
        self._levels = np.concatenate([none, np.cumsum(levels, axis=0)])
        self._steps = np.diff(levels, axis=0) ** 2
        self._squares = np.concatenate([none, np.cumsum(self._steps, axis=0)])
        self._noise = noise**2

    def differences(self, begin: int, places: Ints, end: int) -> Floats:
        """Difference between the means on both sides, shape (places, figures)."""
        of, left, right = self._levels, (places - begin)[:, None], (end - places)[:, None]
        differences: Floats = (of[places] - of[begin]) / left - (of[end] - of[places]) / right
        return differences

    def gain(self, begin: int, places: Ints, end: int) -> Floats:
        """Reduction of the squared residuals, in squares of the noise, shape (places,)."""
        left, right = (places - begin)[:, None], (end - places)[:, None]
        steps = self._squares[end - 1] - self._squares[begin] - self._steps[places - 1]
        noise = np.maximum(steps / (2 * max(1, end - begin - 2)), self._noise)
        weights = left * right / (left + right)
        gains: Floats = (weights * self.differences(begin, places, end) ** 2 / noise).sum(axis=1)
        return gains

    def worth(self, begin: int, place: int, end: int) -> float:
        """The gain of one edge; 0 if the levels on both sides belong to one behaviour."""
        edge = np.array([place])
        if not (np.abs(self.differences(begin, edge, end)) > np.log(FACTOR)).any():
            return 0.0
        return float(self.gain(begin, edge, end)[0])


def _settled(sums: _Sums, edges: Ints) -> Ints:
    """Move edges to where they fit best, and add or remove edges, until nothing changes."""
    for _ in range(_ROUNDS):
        before = edges
        edges = _without_noise(sums, _moved(sums, edges))
        edges = _with_passed_over(sums, _moved(sums, edges))
        if np.array_equal(before, edges):
            break
    return edges


def _moved(sums: _Sums, edges: Ints) -> Ints:
    places = [0, *edges.tolist(), sums.samples]
    for number in range(1, len(places) - 1):
        begin, end = places[number - 1], places[number + 1]
        among = np.arange(begin + 1, end)
        places[number] = int(among[np.argmax(sums.gain(begin, among, end))])
    return np.array(places[1:-1], np.int64)


def _without_noise(sums: _Sums, edges: Ints) -> Ints:
    places = [0, *edges.tolist(), sums.samples]
    worths = [sums.worth(*places[number : number + 3]) for number in range(len(places) - 2)]
    while worths and min(worths) < sums.price:
        weakest = int(np.argmin(worths))
        del places[weakest + 1], worths[weakest]
        for near in (weakest - 1, weakest):
            if 0 <= near < len(worths):
                worths[near] = sums.worth(*places[near : near + 3])
    return np.array(places[1:-1], np.int64)


def _with_passed_over(sums: _Sums, edges: Ints) -> Ints:
    all_edges = edges.tolist()
    todo = list(pairwise([0, *all_edges, sums.samples]))
    while todo:
        begin, end = todo.pop()
        if end - begin < 2:
            continue
        among = np.arange(begin + 1, end)
        place = int(among[np.argmax(sums.gain(begin, among, end))])
        if sums.worth(begin, place, end) >= sums.price:
            all_edges.append(place)
            todo += [(begin, place), (place, end)]
    return np.array(sorted(all_edges), np.int64)


def phase_ids(runs: Sequence[Sequence[Phase]], step_s: Sequence[float]) -> tuple[list[list[int]], list[int]]:
    """Number a category's phases, and its runs by their phase sequences, both from 0 in order of appearance.

    Parameters
    ----------
    runs
        The phases of each run, in order of submission.
    step_s
        Seconds between two samples, for each run.

    Returns
    -------
    For each run the ids of its phases (equal neighbours are both listed), and the id of its behaviour.
    """
    means = [np.array(phase.means) / step for run, step in zip(runs, step_s, strict=True) for phase in run]
    table = np.array(means) if means else np.zeros((0, 1))
    ids = behaviour_ids(np.zeros(len(table), np.int64), table).tolist()
    of_runs: list[list[int]] = []
    known: dict[tuple[int, ...], int] = {}
    behaviours = []
    for run in runs:
        own_ids, ids = ids[: len(run)], ids[len(run) :]
        of_runs.append(own_ids)
        # A phase that was divided by chance still counts as one.
        sequence = tuple(phase for place, phase in enumerate(own_ids) if not place or phase != own_ids[place - 1])
        behaviours.append(known.setdefault(sequence, len(known)))
    return of_runs, behaviours


# Bytes moved over time by a run, from the calls in Darshan's DXT or from its heat map; traces show more.
#
# A history stores only sums, so a series is read again from the log or the trace.

SAMPLES: Final = 1000
"""Number of samples of a run with known calls."""
_LEAST_STEP_S: Final = 1e-3
_OF_HEAT: Final = ("heatmap:POSIX", "heatmap:STDIO")


@dataclass(frozen=True)
class Series:
    """Bytes read and written per sample, shape (samples, 2); `source` names their origin."""

    step_s: float
    moved: Floats
    submitted: float | None
    source: str


def darshan_series(path: Path) -> Series:
    """The series of a Darshan log.

    Raises
    ------
    InputError
        The log has neither DXT nor a heat map, or cannot be read.
    """
    records = read_records(open_log(path))
    series = _of_calls(records) or _of_heat(records)
    if series is None:
        todo = "record with DXT_ENABLE_IO_TRACE=1, or with Darshan 3.4 or later, which keeps heat maps"
        raise InputError("has only totals, without times of transfers", where=path, todo=todo)
    return series


def _of_calls(records: Records) -> Series | None:
    """The bytes of each call, spread over its duration."""
    table = records.calls
    if table is None or not len(table["offset"]):
        return None
    # A record stores its writes before its reads.
    counts = np.stack([table["writes"], table["reads"]], axis=1).ravel()
    if (counts < 0).any() or int(counts.sum()) != len(table["offset"]):
        return None
    written = np.repeat(np.tile([True, False], len(counts) // 2), counts)
    start, end, size = (np.asarray(table[name], np.float64) for name in ("start", "end", "length"))
    with np.errstate(invalid="ignore"):
        sound = (start >= 0) & (start <= end) & (end < 1e9) & (size >= 0)
    if not sound.any():
        return None
    span = max(float(end[sound].max()), records.end_s - records.start_s)
    step = max(span / SAMPLES, _LEAST_STEP_S)
    sides = [
        _spread(start[calls] / step, end[calls] / step, size[calls], span / step)
        for calls in (sound & ~written, sound & written)
    ]
    return Series(step, np.stack(sides, axis=1), records.start_s, "DXT")


def _spread(start: Floats, end: Floats, size: Floats, samples: float) -> Floats:
    """Bytes per sample of calls from `start` to `end` (in samples), as differences of cumulative bytes."""
    edges = np.arange(int(np.ceil(samples)) + 1, dtype=np.float64)
    until = np.zeros(len(edges))
    # If each call moves bytes at its rate from start to end, the bytes moved by an edge are rate times
    # elapsed time.
    rate = size / np.maximum(end - start, 1e-6)
    for moment, sign in ((start, 1.0), (np.maximum(end, start + 1e-6), -1.0)):
        order = np.argsort(moment, kind="stable")
        at, rates = moment[order], np.cumsum(rate[order])
        offsets = np.cumsum(rate[order] * at)
        number = np.searchsorted(at, edges, side="right")
        some = number > 0
        until[some] += sign * (edges[some] * rates[number[some] - 1] - offsets[number[some] - 1])
    whole = size.sum()
    until[-1] = whole
    moved_per_sample: Floats = np.maximum(np.diff(np.minimum(until, whole)), 0.0)
    return moved_per_sample


def _of_heat(records: Records) -> Series | None:
    """Bytes per bin, with the bin width common to all processes."""
    table = records.heat
    if table is None or "HEATMAP" in records.partial or not len(table["id"]):
        return None
    names = dict(zip(records.ids.tolist(), records.names, strict=True))
    of_heat = np.array([names.get(record) in _OF_HEAT for record in table["id"].tolist()], np.bool_)
    widths = np.unique(table["width"][of_heat])
    if len(widths) != 1 or not 0 < widths[0] < 1e9:
        return None
    sides = [np.maximum(table[side][of_heat], 0).sum(axis=0, dtype=np.float64) for side in ("read", "write")]
    return Series(float(widths[0]), np.stack(sides, axis=1), records.start_s, "heat map")


@dataclass(frozen=True)
class PhaseOfRun:
    """A phase: its id, start and length in seconds, and its bytes per second."""

    phase: int
    begin_s: float
    length_s: float
    read_per_s: float
    written_per_s: float


@dataclass(frozen=True)
class RunPhases:
    """A run: its path, the source and step of its time series, its behaviour and its phases."""

    path: str
    source: str
    behaviour: int
    step_s: float
    phases: tuple[PhaseOfRun, ...]


def run_phases(runs: Sequence[RunPhases]) -> str:
    """Write each run's behaviour and a row per phase."""
    lines: list[str] = []
    for run in runs:
        lines += [
            *([""] if lines else []),
            f"{one_line(run.path)}: behaviour {run.behaviour}, {counted(len(run.phases), 'phase')} "
            f"({run.source}, samples of {format_seconds(run.step_s)})",
        ]
        rows = [
            (
                str(phase.phase), format_seconds(phase.begin_s), format_seconds(phase.length_s),
                f"{format_bytes(phase.read_per_s)}/s", f"{format_bytes(phase.written_per_s)}/s",
            )
            for phase in run.phases
        ]
        lines += table(("phase", "begins at", "lasts", "read", "written"), rows) if rows else []
    return "\n".join([*lines, ""])


def history_phases(*paths: PathLike) -> list[RunPhases]:
    """Find the phases of runs of one category, and which runs behave alike.

    Parameters
    ----------
    paths
        Traces, or Darshan logs with DXT or a heat map.

    Returns
    -------
    list of RunPhases
        The oldest run first; runs with an unknown start come last.

    Raises
    ------
    InputError
        A path cannot be read or has no times, or PyWavelets is missing.
    """
    read = [(path, series_of(path)) for path in paths]
    read.sort(key=lambda entry: entry[1].submitted if entry[1].submitted is not None else float("inf"))
    phases_of_runs = [phases(series.moved) for _, series in read]
    ids, behaviours = phase_ids(phases_of_runs, [series.step_s for _, series in read])
    described = []
    for (path, series), own, of_phases, behaviour in zip(read, phases_of_runs, ids, behaviours, strict=True):
        step_s, rows = series.step_s, []
        for phase, name in zip(own, of_phases, strict=True):
            read_per_s, written_per_s = (mean / step_s for mean in phase.means)
            length_s = (phase.end - phase.begin) * step_s
            rows.append(PhaseOfRun(name, phase.begin * step_s, length_s, read_per_s, written_per_s))
        described.append(RunPhases(str(path), series.source, behaviour, step_s, tuple(rows)))
    return described


def series_of(path: PathLike) -> Series:
    """Bytes moved over time, from a trace, or from a Darshan log with DXT or a heat map.

    Raises
    ------
    InputError
        The file cannot be read, or has no times.
    """
    if Path(path).is_file() and is_darshan(Path(path)):
        return darshan_series(Path(path))
    run_profile = profile(path, files=1)
    laid_out = heat_map(run_profile)
    if isinstance(laid_out, str):
        raise InputError(laid_out, where=path)
    moved = np.stack([np.sum(laid_out.read, axis=0), np.sum(laid_out.written, axis=0)], axis=1)
    starts = [trace.start_unix_s for trace in run_profile.traces if trace.start_unix_s is not None]
    return Series(laid_out.bin_s, moved.astype(np.float64), min(starts, default=None), "calls")


@click.command("phases")
@click.argument("paths", type=FILE, nargs=-1, required=True, metavar="PATH ...")
def command(paths: tuple[Path, ...]) -> None:
    """Find the phases of runs in their time series, and show which runs have the same phases.

    PATHs are traces, and Darshan logs with DXT or a heat map, of one category: an application of a user with one number
    of processes. It needs `pip install 'vani-io[centre]'`.
    """
    click.echo(run_phases(history_phases(*paths)), nl=False)
