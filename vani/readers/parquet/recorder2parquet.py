"""Recorder traces that Recorder's own recorder2parquet converted.

File contents (from the converter, and format document, section 7): a series of files
`<process of the converter>_<number>.parquet` with one rank after the other, calls in recorded order, numbered by
`index` from 1 in each series (32 bits, so it wraps); at most ten arguments as texts, although `arg_count` may be
larger; times as float32 seconds; row groups of 1,024 rows. A compiler-instrumented function (`cat` 4) has only
its name.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.columns import Columns, Int32s, Ints, distinct
from vani.errors import TraceError
from vani.readers.delivery import Rows
from vani.readers.functions import FACTS
from vani.readers.interpret import interpret
from vani.readers.parquet import reader
from vani.readers.paths import PathTable, Probes, complete_relative_paths
from vani.readers.scanned import users_of
from vani.readers.signatures import NO_VALUE, CallTable, HandleTable, Signatures
from vani.readers.trace_reader import LIMITS_OF_RECORDER, Limit, Piece
from vani.units import counted

_ARGUMENTS = tuple(f"args_{i}" for i in range(1, 11))
_HEAD = ("func_id", "cat", "level", "thread_id", "arg_count")
_USER_CATEGORY = "4"
_USER_FUNCTION = "user_function"
_SERIES = re.compile(r"(?P<series>\d+)_\d+\.parquet")
_MAX_COMBINATIONS = 1 << 62
_BETWEEN = "\x1f"
"""Separator between a key's columns: ASCII's unit separator, which does not occur in normal paths."""


_LIMITS = (
    Limit(
        "io.time_s",
        "recorder2parquet stores times as float32 seconds: from 16 s on they are coarser than 1 us, from 256 "
        "s on than 30 us, and short calls have no duration",
    ),
    Limit(
        "phases",
        "recorder2parquet of Recorder 2.5 and 3.0 repeats time stamps where calls repeat: times may be "
        "wrong, the compressed trace has the right ones",
    ),
    *LIMITS_OF_RECORDER,
    Limit(
        "io.footprint",
        "offsets stored as patterns over ranks are unknown; those stored as differences (intraprocess "
        "pattern recognition) look like offsets and are taken for them",
    ),
    Limit("interfaces", "at most ten arguments of a call are kept"),
    Limit("traces.start", "the start of the run is not stored"),
    Limit("workflow.processes", "a process without a call behind the last one that has some is not counted"),
)
_FLAT = Limit(
    "interfaces",
    "call depth is 0 everywhere: a call is taken as made by the library call whose interval contains it",
)


class Recorder2ParquetReader(reader.ParquetReader):
    """A `_parquet` folder written by Recorder's recorder2parquet.

    Distinct calls (function, depth, thread and arguments) form a call table like that of a Recorder trace, and the
    same code interprets its signatures. Rows then contain only their signature's number.
    """

    tool = "recorder2parquet"
    _required: ClassVar = {
        "rank": pa.int64(),
        "tstart": pa.float64(),
        "tend": pa.float64(),
        "func_id": pa.large_string(),
        "arg_count": pa.int64(),
        **dict.fromkeys(_ARGUMENTS, pa.large_string()),
    }
    _optional: ClassVar = {"index": pa.int64(), "thread_id": pa.int64(), "cat": pa.int64(), "level": pa.int64()}

    _keys: pa.LargeBinaryArray
    _signatures: Signatures

    def _tables(self) -> reader.KnownTables:
        names, paths, handles = reader.FunctionNames(), PathTable(), HandleTable()
        keys, counts, calls, problems = self._distinct()
        table = _call_table(keys, names)
        signatures = interpret(table, tuple(names.texts), paths, handles)
        complete_relative_paths(signatures.file, signatures.layer, paths.paths)
        self._handles = len(handles)
        # `a*r+b`: r numbers the ranks of a group, which only the compressed trace has.
        unresolved = signatures.slope != 0
        signatures.value[unresolved] = NO_VALUE
        signatures.slope[:] = 0
        self._keys, self._signatures = keys, signatures
        probes = Probes(names.texts)
        probes.see(signatures, np.arange(len(signatures)))
        pairs = np.empty(0, np.int64)
        for _, batch in self._parts.batches(["rank", *_HEAD, *_ARGUMENTS]):
            file = signatures.file[self._ids(batch)]
            pairs = distinct(pairs, (reader.integers(batch["rank"]) << 32 | file)[file >= 0])
        problems += signatures.problems
        if unresolved.any():
            lost = int(counts[unresolved].sum())
            problems.append(f"offsets of {counted(lost, 'call')} are patterns such as 4096*r+0: unknown")
        return reader.KnownTables(
            calls=calls,
            paths=paths.paths,
            names=names.texts,
            users=users_of(pairs, len(paths.paths)),
            nested=bool((signatures.depth > 0).any()),
            facts=_facts(table, names.texts, counts),
            problems=problems,
            probes=probes.only_probed(len(paths.paths)),
        )

    def _distinct(self) -> tuple[pa.LargeBinaryArray, Ints, Ints, list[str]]:
        """Distinct keys in order of appearance, their counts, calls by rank, and problems with ranks."""
        keys = pa.array([], pa.large_binary())
        counts = np.zeros(0, dtype=np.int64)
        counter, left_out = reader.RankCounter(), Counter[str]()
        series_of_rank: dict[str, Ints] = {}
        for number, batch in self._parts.batches(["rank", *_HEAD, *_ARGUMENTS], left_out=left_out):
            rank = reader.integers(batch["rank"])
            counter.add(rank)
            self._note_series(number, rank, series_of_rank)
            number_of, distinct_keys = _keys_of(batch)
            known = pc.index_in(distinct_keys, value_set=keys)
            fresh = pc.is_null(known)
            keys = pa.concat_arrays([keys, distinct_keys.filter(fresh)])
            code = pc.fill_null(known, 0).to_numpy(zero_copy_only=False).astype(np.int64)
            is_fresh = fresh.to_numpy(zero_copy_only=False)
            code[is_fresh] = len(counts) + np.arange(int(is_fresh.sum()))
            counts = np.concatenate((counts, np.zeros(int(is_fresh.sum()), np.int64)))
            counts[code] += np.bincount(number_of, minlength=len(code))
        calls, problems = self._calls_of(counter, left_out)
        return keys, counts, calls, problems

    def _note_series(self, number: int, rank: Ints, seen: dict[str, Ints]) -> None:
        """Refuse a folder with the files of two conversions that used different numbers of processes."""
        match = _SERIES.fullmatch(self._parts.names[number])
        if match is None:
            return
        ranks = distinct(rank)
        for series, other_ranks in seen.items():
            if series != match["series"] and (both := np.intersect1d(ranks, other_ranks)).size:
                raise TraceError(
                    f"rank {both[0]} is in files {series}_* and {match['series']}_*: two conversions mixed",
                    where=self.path,
                    todo="empty the folder and convert again",
                )
        seen[match["series"]] = distinct(seen.get(match["series"], ranks), ranks)

    def _ids(self, batch: dict[str, pa.Array]) -> Int32s:
        """Signature number of each row."""
        number, keys = _keys_of(batch)
        code = pc.fill_null(pc.index_in(keys, value_set=self._keys), 0)
        ids: Int32s = code.to_numpy(zero_copy_only=False)[number]
        return ids

    @property
    def limits(self) -> tuple[Limit, ...]:
        return _LIMITS if self.known.nested else (*_LIMITS, _FLAT)

    def _columns(self, ranks: range, left_out: Counter[str]) -> Iterator[Columns]:
        names = ["rank", "index", "tstart", "tend", *_HEAD, *_ARGUMENTS]
        for _, batch in self._parts.batches(names, ranks, left_out):
            rank = reader.integers(batch["rank"])
            column: Columns = {
                "rank": rank,
                "ids": self._ids(batch),
                # Interpreted as unsigned, the converter's 32-bit number wraps only after twice as many calls.
                "number": reader.integers(batch["index"]) & 0xFFFFFFFF
                if "index" in batch
                else np.zeros(len(rank), np.int64),
                "begin": batch["tstart"].to_numpy(zero_copy_only=False),
                "end": batch["tend"].to_numpy(zero_copy_only=False),
            }
            wrong = reader.too_long(column["begin"]) | reader.too_long(column["end"])
            yield self._without(wrong, column, left_out)

    def _order(self, column: Columns) -> tuple[Ints, Ints]:
        return np.lexsort((column["number"], column["rank"])), column["number"]

    def _rows(self, column: Columns, piece: Piece) -> Rows:
        begin, end = column["begin"], column["end"]
        start, stop = reader.nanoseconds(begin, least=-reader.SET_BACK_S), reader.nanoseconds(end,
            least=-reader.SET_BACK_S)
        piece.repaired_times += int((~(end >= begin) | ~(begin >= 0)).sum())
        return Rows(
            column["rank"].astype(np.int32),
            self._signatures,
            column["ids"],
            start,
            np.maximum(stop - start, 0),
        )


def _keys_of(batch: dict[str, pa.Array]) -> tuple[Ints, pa.LargeBinaryArray]:
    """Distinct calls of a batch: the index of each row's call, and each call's text without times."""
    combined = np.zeros(len(batch["rank"]), np.int64)
    kinds = 1
    for name in (*_HEAD, *_ARGUMENTS):
        if name not in batch:
            continue
        column = batch[name]
        column = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        size = len(column.dictionary) + 1
        if kinds * size > _MAX_COMBINATIONS:
            # Only a few of the possible combinations occur, so renumbering makes them fit 64 bits again.
            again = pc.dictionary_encode(pa.array(combined))
            combined, kinds = reader.indices(again), len(again.dictionary)
        combined = combined * size + reader.indices(column)
        kinds *= size
    encoded = pc.dictionary_encode(pa.array(combined))
    number = reader.indices(encoded)
    one_of_each = np.empty(len(encoded.dictionary), np.int64)
    one_of_each[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    rows = pa.array(one_of_each)
    keys = pc.dictionary_encode(_joined({name: column.take(rows) for name, column in batch.items()}))
    return reader.indices(keys)[number], keys.dictionary


def _joined(batch: dict[str, pa.Array]) -> pa.LargeBinaryArray:
    """All columns except rank and times, as one text per row."""
    parts = []
    for name in (*_HEAD, *_ARGUMENTS):
        column = batch.get(name)
        if column is None:
            column = pa.array(np.zeros(len(batch["rank"]), np.int64))
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        texts = pc.fill_null(pc.cast(column, pa.large_string()), "")
        # As bytes, because the converter does not check that arguments are UTF-8.
        parts.append(pc.cast(texts, pa.large_binary()))
    between = pa.scalar(_BETWEEN.encode(), pa.large_binary())
    joined = pc.binary_join_element_wise(*parts, between)
    if pc.any(pc.not_equal(pc.count_substring(joined, _BETWEEN), len(parts) - 1)).as_py():
        parts = [pc.replace_substring(p, pattern=_BETWEEN.encode(), replacement=b"?") for p in parts]
        joined = pc.binary_join_element_wise(*parts, between)
    return joined


def _call_table(keys: pa.LargeBinaryArray, names: reader.FunctionNames) -> CallTable:
    """The call table of distinct keys."""
    width = len(_HEAD) + len(_ARGUMENTS)
    texts = pa.array(reader.plain_texts(keys), pa.large_string())
    pieces = pc.split_pattern(texts, _BETWEEN).flatten() if len(texts) else pa.array([], pa.large_string())

    def column(index: int) -> pa.Array:
        return pieces.take(pa.array(np.arange(len(texts)) * width + index))

    def numbers(name: str) -> Ints:
        return reader.integers(pc.cast(column(_HEAD.index(name)), pa.int64()))

    is_user = pc.equal(column(_HEAD.index("cat")), _USER_CATEGORY)
    # Names of a program's own functions could equal those of traced calls, and their number is unlimited.
    called = pc.dictionary_encode(pc.if_else(is_user, _USER_FUNCTION, column(0)))
    lookup = np.array([names.number(n) for n in called.dictionary.to_pylist()], dtype=np.int64)
    stored = np.clip(numbers("arg_count"), 0, len(_ARGUMENTS))
    stored[is_user.to_numpy(zero_copy_only=False)] = 0
    grid = np.arange(len(texts))[:, None] * width + len(_HEAD) + np.arange(len(_ARGUMENTS))
    chosen = grid[np.arange(len(_ARGUMENTS)) < stored[:, None]]
    values = pieces.take(pa.array(chosen))
    offsets = np.concatenate(([0], np.cumsum(stored))).astype(np.int32)
    return CallTable(
        thread=numbers("thread_id"),
        func=lookup[called.indices.to_numpy(zero_copy_only=False)] if len(texts) else np.empty(0, np.int64),
        depth=np.maximum(numbers("level"), 0),
        site=np.full(len(texts), -1, np.int32),
        count=None,
        args=pa.ListArray.from_arrays(pa.array(offsets), values),
    )


def _facts(table: CallTable, names: list[str], counts: Ints) -> list[tuple[str, list[str], int]]:
    of_facts = [i for i, n in enumerate(names) if n in FACTS]
    rows = np.flatnonzero(np.isin(table.func, of_facts))[:10_000]
    texts = table.args.take(pa.array(rows)).to_pylist()
    return [(names[table.func[r]], t, int(counts[r])) for r, t in zip(rows, texts, strict=True)]
