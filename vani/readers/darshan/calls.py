"""Data calls from Darshan's extended tracing (DXT), the nodes that it names, and the heat map."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from vani.calls import MOST_SUM, Layer
from vani.counts import Beside, Heat, Segments
from vani.distinct import distinct
from vani.readers.darshan.records import Records

Ints = NDArray[np.int64]
_MOST_SECONDS = 1e9
_BESIDE: Mapping[str, Beside] = {"LUSTRE": "layouts", "DXT_POSIX": "segments", "HEATMAP": "heat"}
"""Modules without counters, and the facts that they provide."""
_COUNTED = {"heatmap:POSIX": int(Layer.POSIX), "heatmap:STDIO": int(Layer.STDIO)}


def segments_of(
    records: Records, files: Callable[[NDArray[np.uint64]], Ints], span_ns: int
) -> Segments | None:
    """POSIX calls that read or write, in time order within rank, file and direction; None without DXT.

    Impossible calls are skipped, so counters may count more calls than these.
    """
    table = records.calls
    if table is None:
        return None
    # A record's writes come before its reads.
    counts = np.stack([table["writes"], table["reads"]], axis=1).ravel()
    calls = len(table["offset"])
    if (counts < 0).any() or int(counts.sum()) != calls:
        counts = np.zeros(len(counts), np.int64)
        calls = 0
    file = np.repeat(np.repeat(files(table["id"]), 2), counts)
    rank = np.repeat(np.repeat(_ranks(records), 2), counts)
    kind = np.repeat(np.tile([1, 0], len(counts) // 2), counts)
    offset, size, start, end = (table[name][:calls] for name in ("offset", "length", "start", "end"))
    with np.errstate(invalid="ignore"):
        sound = (file >= 0) & (rank >= 0) & (rank < records.ranks) & (offset >= 0) & (size >= 0)
        sound &= (start >= 0) & (start <= end) & (end < _MOST_SECONDS)
    begin, stop = (np.minimum(np.round(t[sound] * 1e9).astype(np.int64), span_ns) for t in (start, end))
    return Segments(rank[sound], file[sound], kind[sound], offset[sound], size[sound], begin, stop)


def dropped_of(records: Records) -> frozenset[Beside]:
    """Facts in addition to the counts whose records are incomplete or too many."""
    dropped = frozenset(_BESIDE[name] for name in records.partial if name in _BESIDE)
    return dropped | {"many_segments"} if records.many_calls else dropped


def hosts_of(records: Records) -> tuple[str, ...] | None:
    """Distinct node names; None if DXT does not name the node of every process."""
    if records.calls is None or len(distinct(_ranks(records))) < records.ranks or not all(records.hosts):
        return None
    return tuple(dict.fromkeys(records.hosts))


def heat_of(records: Records) -> Heat | None:
    """Bytes that each process moved over time through POSIX and STDIO; None if the log lacks some processes."""
    table = records.heat
    if table is None or "HEATMAP" in records.partial or not len(table["id"]):
        return None
    names = dict(zip(records.ids.tolist(), records.names, strict=True))
    layers = np.array([_COUNTED.get(names.get(record_id, ""), -1) for record_id in table["id"].tolist()], np.int64)
    counted = layers >= 0
    widths = np.unique(table["width"][counted])
    # Processes merge bins when they run out of them, and finally agree on a number.
    if len(widths) != 1 or not 0 < widths[0] * table["read"].shape[1] < _MOST_SECONDS:
        return None
    ranks = table["rank"][counted] if records.ranks > 1 else np.zeros(int(counted.sum()), np.int64)
    read, written = (np.maximum(table[side][counted], 0) for side in ("read", "write"))
    if float(read.astype(np.float64).sum() + written.astype(np.float64).sum()) >= MOST_SUM:
        return None
    row, stretch = np.nonzero((read > 0) | (written > 0))
    if not ((ranks[row] >= 0) & (ranks[row] < records.ranks)).all():
        return None
    return Heat(
        round(float(widths[0]) * 1e9),
        layers[counted][row],
        ranks[row],
        stretch,
        read[row, stretch],
        written[row, stretch],
    )


def _ranks(records: Records) -> Ints:
    """Rank of each record; in a run of one process, records have no rank."""
    assert records.calls is not None
    ranks: Ints = records.calls["rank"]
    return ranks if records.ranks > 1 else np.zeros(len(ranks), np.int64)
