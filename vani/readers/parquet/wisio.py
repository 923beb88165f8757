"""Recorder traces that WisIO (also: dfanalyzer) converted to Parquet.

Column contents (from the converter and from a trace of 1,280 processes):

  and `tend` are float32 seconds, too coarse to order calls; `duration` is float32, too, but of a small number.
- `size` is the third argument of read and write calls (times the second for fread and fwrite), or the distance
  of a seek, without its whence. Elsewhere it is 0 or meaningless: it never counts bytes of readv, writev or vfprintf.
- Only POSIX and stdio calls have a file and a size. `file_name` of fcntl, chmod and rmdir is not a file name.
- `cat` and `io_cat` follow from the function's name; `acc_pat`, `hostname`, `app` and the hashes add nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import Flag, Layer
from vani.columns import Columns, Floats, Ints, Numbers, distinct
from vani.readers.delivery import Rows
from vani.readers.functions import Meaning, PositionRule, layer_of, meaning_of
from vani.readers.parquet import reader
from vani.readers.paths import PathTable
from vani.readers.scanned import users_of
from vani.readers.signatures import NO_VALUE, Signatures
from vani.readers.trace_reader import Limit, Piece

_NAMELESS = ("", "UNKNOWN", "???", "NULL", "%p")
_FILE_IS_ANOTHER_ARGUMENT = ("fcntl", "chmod", "rmdir")
_USUAL_TICK_S = 1e-7
_SYSTEM_ROOTS = ("dev", "proc", "sys")


_LIMITS = (
    Limit(
        "io.bytes",
        "bytes are what calls requested, short reads and failed calls look complete; readv, writev, preadv, "
        "pwritev and formatted output have no bytes",
    ),
    Limit(
        "io.footprint",
        "offsets follow from seeks, reads and writes; the whence of a seek is not stored, "
        "every one is taken as SEEK_SET; offsets of pread and pwrite are unknown",
    ),
    Limit(
        "io.past_end",
        "neither flags of open nor lengths of truncations are stored: the ends of files are unknown",
    ),
    Limit(
        "io.access_pattern",
        "files are named, not descriptors: two descriptors of one path in one process share a position",
    ),
    Limit("traces.start", "the start of the run is not stored"),
    Limit("workflow.processes", "a process without a call behind the last one that has some is not counted"),
)
_POSIX_ONLY = Limit("interfaces.layer", "the trace has calls of POSIX alone: MPI-IO and HDF5 are not in it")
_BARE_LIBRARIES = Limit("interfaces", "calls of libraries above POSIX have neither file nor bytes")


def spelled_whole(path: str) -> str:
    """Remove a working directory that was prepended to an absolute path (`/p/run//dev/null`).

    A double slash is not sufficient evidence, because programs write `dir//file`: the rest must also begin like a
    system path, or like the directory before it.
    """
    at = path.rfind("//")
    if at <= 0:
        return path
    tail = path[at + 1 :]
    root = tail.split("/", 2)[1]
    before = path[1:].split("/", 1)[0] if path.startswith("/") else ""
    return tail if root and (root in _SYSTEM_ROOTS or root == before) else path


class WisIOReader(reader.ParquetReader):
    """A directory of `part.*.parquet` files written by WisIO's converter."""

    tool = "wisio"
    _required: ClassVar = {
        "rank": pa.int64(),
        "func_id": pa.large_string(),
        "file_name": pa.large_string(),
        "size": pa.int64(),
        "tstart": pa.float64(),
        "tend": pa.float64(),
        "duration": pa.float64(),
        "tmid": pa.int64(),
    }
    _optional: ClassVar = {"index": pa.int64(), "proc": pa.int64(), "thread_id": pa.int64(), "level": pa.int64()}

    _tick_ns = _USUAL_TICK_S * 1e9
    _paths: PathTable
    _names: reader.FunctionNames

    def _tables(self) -> reader.KnownTables:
        names = self._names = reader.FunctionNames()
        paths = self._paths = PathTable()
        pairs = np.empty(0, np.int64)
        counter, left_out = reader.RankCounter(), Counter[str]()
        nested = False
        ticks = seconds = 0.0
        ratios: list[float] = []
        processes: set[int] = set()
        columns = ["rank", "func_id", "file_name", "tstart", "tend", "tmid", "level", "proc"]
        for _, batch in self._parts.batches(columns, left_out=left_out):
            rank = reader.integers(batch["rank"])
            counter.add(rank)
            func = reader.coded(batch["func_id"], names.number)
            file = reader.coded(batch["file_name"], self._file)
            file[np.isin(func, _mistaken(names))] = -1
            pairs = distinct(pairs, (rank << 32 | file)[file >= 0])
            nested = nested or bool("level" in batch and (reader.integers(batch["level"]) > 0).any())
            middle = (_seconds(batch["tstart"]) + _seconds(batch["tend"])) / 2
            tick = reader.integers(batch["tmid"]).astype(np.float64)
            plausible = np.isfinite(middle) & ~reader.too_long(middle)
            ticks += float(tick[plausible].sum())
            seconds += float(middle[plausible].sum())
            late = plausible & (tick > 0) & (middle > 0)
            if late.any():
                # The later half of the times has the smaller relative error.
                late &= tick >= np.median(tick[late])
                ratios.append(float(np.median(middle[late] / tick[late])))
            if "proc" in batch and len(processes) < 2:
                processes.update(pc.unique(batch["proc"]).to_pylist()[:2])
        calls, problems = self._calls_of(counter, left_out)
        if len(processes) > 1:
            problems.append("column proc has several values: processes of the same rank are taken as one")
        usual = float(np.median(ratios)) if ratios else 0.0
        if usual and not (ticks > 0 and abs(seconds / ticks / usual - 1) < 0.05):
            # A few wrong times dominate any sum.
            seconds, ticks = usual, 1.0
        self._tick_ns = _tick(seconds, ticks) * 1e9
        users = users_of(pairs, len(paths.paths))
        return reader.KnownTables(
            calls=calls, paths=paths.paths, names=names.texts, users=users, nested=nested, problems=problems
        )

    @property
    def limits(self) -> tuple[Limit, ...]:
        layers = {layer_of(n) for n in self.known.names}
        times = (
            "WisIO stores begin and end as float32 seconds, and the middle of each call in whole ticks of "
            f"{self._tick_ns:g} ns: order follows the middle, time the duration"
        )
        above = _POSIX_ONLY if max(layers) <= Layer.STDIO else _BARE_LIBRARIES
        return Limit("io.time_s", times), *_LIMITS, above

    def _columns(self, ranks: range, left_out: Counter[str]) -> Iterator[Columns]:
        names = ["rank", "func_id", "file_name", "size", "duration", "tmid", "index", "thread_id", "level"]
        for _, batch in self._parts.batches(names, ranks, left_out):
            column: Columns = {
                name: reader.integers(a, NO_VALUE if name == "size" else 0)
                for name, a in batch.items()
                if pa.types.is_integer(a.type)
            }
            column["func"] = reader.coded(batch["func_id"], self._names.number)
            column["file"] = reader.coded(batch["file_name"], self._file)
            column["duration"] = _seconds(batch["duration"])
            wrong = reader.too_long(column["duration"]) | reader.too_long(column["tmid"] * (self._tick_ns / 1e9))
            yield self._without(wrong, column, left_out)

    def _file(self, name: str) -> int:
        """Code of the file with this spelling; -1 for names that are not files."""
        return -1 if name in _NAMELESS else self._paths.code(spelled_whole(name))

    def _order(self, column: Columns) -> tuple[Ints, Ints]:
        tie = column["index"] if "index" in column else np.arange(len(column["rank"]))
        layers = np.array([layer_of(n) for n in self._names.texts])
        if (layers > Layer.STDIO).any() and (layers[column["func"]] > Layer.STDIO).any():
            # An outer call begins first, but its middle may come after the middle of a call that it makes.
            start, duration = self._times(column)
            return np.lexsort((tie, -duration, start, column["rank"])), start
        return np.lexsort((tie, column["tmid"], column["rank"])), column["tmid"]

    def _times(self, column: Columns) -> tuple[Ints, Ints]:
        """Start and duration in ns."""
        duration = reader.nanoseconds(column["duration"])
        middle = np.rint(column["tmid"] * self._tick_ns).astype(np.int64)
        start = middle - duration // 2
        # No clock is set back further than this, so such times are damage; the middle of the first call may be near 0.
        return np.where(
            middle < 0, np.where(start < -reader.SET_BACK_S * 1e9, 0, start), np.maximum(start, 0)
        ), duration

    def _rows(self, column: Columns, piece: Piece) -> Rows:
        piece.repaired_times += int(((column["tmid"] < 0) | ~(column["duration"] >= 0)).sum())
        start, duration = self._times(column)
        signatures = _signatures(column, self._names.texts)
        ids = np.arange(len(start), dtype=np.int32)
        return Rows(column["rank"].astype(np.int32), signatures, ids, start, duration)


def _tick(seconds: float, ticks: float) -> float:
    """Length of a tick in seconds; tracers use powers of ten, and float32 times are accurate to 7 digits."""
    if seconds <= 0 or ticks <= 0:
        return _USUAL_TICK_S
    ratio = seconds / ticks
    power = 10.0 ** round(np.log10(ratio))
    return power if abs(ratio / power - 1) < 0.05 else ratio


def _mistaken(names: reader.FunctionNames) -> list[int]:
    return [i for i, n in enumerate(names.texts) if n in _FILE_IS_ANOTHER_ARGUMENT]


def _seconds(column: pa.Array) -> Floats:
    values: Floats = pc.fill_null(column, float("nan")).to_numpy(zero_copy_only=False)
    return values


def _has_bytes(meaning: Meaning) -> bool:
    """Whether `size` has bytes: the converter used the third argument, or the product of the second and third."""
    return meaning.layer <= Layer.STDIO and meaning.size in ((2,), (1, 2))


def _signatures(column: dict[str, Any], names: list[str]) -> Signatures:
    """One signature per row, because sizes and offsets make most rows distinct."""
    meanings = [meaning_of(n) for n in names]
    func = column["func"]
    n = len(func)

    def of_function(values: Sequence[int], dtype: type[np.generic]) -> Numbers:
        return np.array(values, dtype=dtype)[func] if n else np.empty(0, dtype)

    size = column["size"]
    moves = of_function([_has_bytes(m) for m in meanings], np.bool_)
    seeks = of_function([m.whence >= 0 and bool(m.flags & Flag.SEEK) for m in meanings], np.bool_)
    rewinds = of_function([m.rule == PositionRule.SEEK_SET for m in meanings], np.bool_)
    file = column["file"].astype(np.int32)
    file[of_function([n in _FILE_IS_ANOTHER_ARGUMENT for n in names], np.bool_)] = -1
    value = np.where(seeks, size, NO_VALUE)
    value[rewinds] = 0
    rule = of_function([m.rule for m in meanings], np.int8)
    rule[seeks] = PositionRule.SEEK_SET
    zeros = np.zeros(n, np.int64)
    return Signatures.of_calls(
        names,
        func=func.astype(np.int16),
        layer=of_function([m.layer for m in meanings], np.int8),
        kind=of_function([m.kind for m in meanings], np.int8),
        depth=np.clip(column.get("level", zeros), 0, 127).astype(np.int8),
        thread=(column.get("thread_id", zeros) & 0x7FFFFFFF).astype(np.int32),
        file=file,
        bytes=np.where(moves, size, NO_VALUE),
        rule=rule,
        flags=of_function([m.flags for m in meanings], np.int16),
        value=value,
    )
