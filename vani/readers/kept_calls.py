"""The calls that a log of counts kept: each read and write (DXT), or else what each process moved in each bin of time.

Both take the form of calls, so all code for the calls of traces works on them. A bin of a heat map becomes one call
per direction, which takes the whole bin and names no file.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from vani.calls import CALLS, DXT, FILES, HEAT_MAP, FileClass, Kind, Layer
from vani.columns import Ints, small_table, to_arrow
from vani.counts import Heat, RunCounts, Segments
from vani.readers.delivery import note_calls
from vani.readers.functions import function_table
from vani.readers.trace_reader import BATCH_ROWS, KeepsCounts, Limit, Piece, TraceReader

_FUNCTIONS: Final = ("read", "write", "fread", "fwrite")
_LIMITS: Final = {
    DXT: (Limit("io.ops.metadata", "DXT keeps reads and writes of POSIX, and neither other calls nor stdio"),),
    HEAT_MAP: (Limit("io.ops", "a heat map has the bytes of each process over time, and no calls"),),
}


class KeptCalls:
    """See `vani.readers.trace_reader.TraceReader`."""

    def __init__(self, log: TraceReader, counts: RunCounts) -> None:
        self.path, self.tool, self.format, self.app = log.path, log.tool, log.format, log.app
        self.ranks, self.start_unix_s, self.problems = log.ranks, log.start_unix_s, log.problems
        self._log, self._span_ns = log, counts.span_ns
        self._paths, self._classes = list(counts.paths), counts.file_class.tolist()
        columns = _of_segments(counts.segments) if counts.segments is not None else None
        self.layout = HEAT_MAP if columns is None else DXT
        if columns is None:
            assert counts.heat is not None
            self._paths, self._classes = ["/"], [int(FileClass.DATASET)]
            columns = _of_bins(counts.heat)
        order = np.lexsort((columns["start_ns"], columns["rank"]))
        self._columns = {name: column[order] for name, column in columns.items()}
        self.limits = _LIMITS[self.layout]

    def digest(self) -> str:
        """See `TraceReader.digest`."""
        return f"{self._log.digest()}-{self.layout.replace(' ', '-')}"

    def changed(self) -> bool:
        """See `TraceReader.changed`."""
        return self._log.changed()

    def calls_per_rank(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """See `TraceReader.calls_per_rank`."""
        return np.bincount(self._columns["rank"], minlength=self.ranks)

    def functions(self) -> pa.Table:
        """See `TraceReader.functions`."""
        return function_table(_FUNCTIONS)

    def files(self) -> pa.Table:
        """See `TraceReader.files`; of a heat map, one name for all files."""
        return small_table([range(len(self._paths)), self._paths, self._classes], FILES)

    def facts(self) -> Sequence[tuple[str, Sequence[str], int]]:
        """See `TraceReader.facts`."""
        return ()

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""
        piece.span_ns = max(piece.span_ns, self._span_ns)
        first, last = np.searchsorted(self._columns["rank"], (ranks.start, ranks.stop)).tolist()
        for begin in range(first, last, BATCH_ROWS):
            rows = slice(begin, min(begin + BATCH_ROWS, last))
            columns = {name: column[rows] for name, column in self._columns.items()}
            count = np.append(0, np.bincount(columns["func"], minlength=len(_FUNCTIONS)))
            note_calls(piece, _FUNCTIONS, count, int(columns["start_ns"].min()), self._span_ns)
            piece.bytes += float(columns["bytes"].sum(dtype=np.float64))
            piece.time_ns += float(columns["duration_ns"].sum(dtype=np.float64))
            yield _batch(columns)
        piece.ranks_read += len(ranks)


def kept_calls(log: TraceReader) -> KeptCalls | None:
    """The calls of a log of counts; None if it kept neither calls nor a heat map.

    Calls that DXT dropped, or that are too many to be read one by one, count as not kept.
    """
    counts = log.counts() if isinstance(log, KeepsCounts) else None
    if counts is None:
        return None
    if counts.segments is not None and (not len(counts.segments.rank) or "segments" in counts.dropped):
        counts = RunCounts(**{**vars(counts), "segments": None})
    return None if counts.segments is None and counts.heat is None else KeptCalls(log, counts)


def _of_segments(segments: Segments) -> dict[str, Ints]:
    return {
        "rank": segments.rank,
        "layer": np.full(len(segments.rank), Layer.POSIX, np.int64),
        "kind": np.where(segments.kind == 0, Kind.READ, Kind.WRITE),
        "func": segments.kind,
        "file": segments.file,
        "offset": segments.offset,
        "bytes": segments.size,
        "start_ns": segments.start_ns,
        "duration_ns": segments.end_ns - segments.start_ns,
    }


def _of_bins(heat: Heat) -> dict[str, Ints]:
    sides = []
    for kind, moved in ((Kind.READ, heat.read), (Kind.WRITE, heat.written)):
        at = np.flatnonzero(moved)
        sides.append(
            {
                "rank": heat.rank[at],
                "layer": heat.layer[at],
                "kind": np.full(len(at), kind, np.int64),
                "func": 2 * heat.layer[at] + int(kind),
                "file": np.zeros(len(at), np.int64),
                "offset": np.zeros(len(at), np.int64),
                "bytes": moved[at],
                "start_ns": heat.stretch[at] * heat.width_ns,
                "duration_ns": np.full(len(at), heat.width_ns, np.int64),
            }
        )
    return {name: np.concatenate([side[name] for side in sides]) for name in sides[0]}


def _batch(columns: dict[str, Ints]) -> pa.RecordBatch:
    nothing = np.zeros(len(columns["rank"]), np.int64)
    columns |= {"via": columns["layer"], "within": 1 << columns["layer"]}
    arrays = [to_arrow(columns.get(field.name, nothing).astype(f"int{field.type.bit_width}")) for field in CALLS]
    return pa.RecordBatch.from_arrays(arrays, schema=CALLS)
