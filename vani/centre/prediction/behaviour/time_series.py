"""Bytes moved over time by a run, from the calls in Darshan's DXT or from its heat map; traces show more.

A history stores only sums, so a series is read again from the log or the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from vani.centre.prediction.behaviour.runs import Floats
from vani.errors import InputError
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import Records, read_records

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
        raise InputError(
            "has only totals, without times of transfers",
            where=path,
            todo="record with DXT_ENABLE_IO_TRACE=1, or with Darshan 3.4 or later, which keeps heat maps",
        )
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
    moved = np.stack(sides, axis=1)
    return Series(step, moved, records.start_s, "DXT")


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
    moved = np.stack(
        [np.maximum(table[side][of_heat], 0).sum(axis=0, dtype=np.float64) for side in ("read", "write")],
        axis=1,
    )
    return Series(float(widths[0]), moved, records.start_s, "heat map")
