"""Occurrences of each call, counted on the grammars, without expanding them or reading time stamps.

Processes that share a grammar cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import OCCURRENCES, Flag, Layer, Occurrences
from vani.columns import to_arrow
from vani.readers.plausible import NO_VALUE
from vani.readers.recorder.callers import Callers
from vani.readers.recorder.grammar import Grammar
from vani.readers.signatures import Signatures

_ROWS = 1 << 19
"""Rows of a batch, and grammar symbols that are examined together."""
_AT_ONCE = 1024
"""Number of ranks with separate tables in a batch."""

Ints = NDArray[np.int64]


class _Rows(NamedTuple):
    """Columns of some rows of `OCCURRENCES`, except those of the signatures themselves."""

    group: Ints
    terminal: Ints
    via: NDArray[np.int8]
    within: NDArray[np.int16]
    nested: NDArray[np.bool_]
    often: Ints


TablesOf = Callable[[int], "tuple[Signatures, Grammar] | None"]
OriginsOf = Callable[[int, NDArray[np.int32]], "NDArray[np.int8] | None"]


class _How(NamedTuple):
    """How the nesting of calls is determined."""

    by_time: bool
    origins: OriginsOf | None
    where: str

    def callers(self) -> Callers:
        return Callers(by_origin=self.by_time)

    def origin(self, rank: int, signatures: Signatures, ids: Ints) -> NDArray[np.int8] | None:
        return None if self.origins is None else self.origins(rank, signatures.site[ids])


def occurrences(
    group_of_rank: Ints, of_rank: TablesOf, *, by_time: bool, where: str, origins: OriginsOf | None = None
) -> Occurrences:
    """Count the calls of a trace.

    Parameters
    ----------
    group_of_rank
        Shape (ranks,): ranks in one group share their tables and origins; -1 for ranks without calls.
    of_rank
        Returns a rank's signatures and grammar.
    by_time
        No depth is stored: nesting follows from origins, or only from time intervals where origins are unknown.
    origins
        Returns the origins of a rank's calls, given their call sites, see `call_sites.Origins.of`; None if unknown.
    where
        Place that errors name.
    """
    how = _How(by_time, origins, where)
    return Occurrences(group_of_rank, lambda: _joined(_batches(group_of_rank, of_rank, how)))


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches, which come from ranks with separate tables."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= _ROWS or len(waiting) >= _AT_ONCE:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _batches(group_of_rank: Ints, of_rank: TablesOf, how: _How) -> Iterator[pa.RecordBatch]:
    shared: Signatures | None = None
    waiting: list[_Rows] = []
    rows = 0
    nested = how.callers()
    used = np.flatnonzero(group_of_rank >= 0)
    groups, first = np.unique(group_of_rank[used], return_index=True)
    for group, rank in zip(groups.tolist(), used[first].tolist(), strict=True):
        tables = of_rank(rank)
        if tables is None:
            continue
        signatures, grammar = tables
        if signatures is not shared:
            yield from _put_out(shared, waiting, nested, how.where)
            waiting, rows, nested, shared = [], 0, how.callers(), signatures
        ids, count = grammar.used
        names = grammar.names
        origin = how.origin(rank, signatures, names)
        if origin is not None or (not how.by_time and signatures.depth[ids].any()):
            nested.add(
                group,
                grammar,
                signatures.depth[names],
                signatures.thread[names],
                signatures.layer[names],
                origin,
            )
        else:
            waiting.append(_flat(group, signatures, ids, count, by_time=how.by_time))
            rows += len(ids)
        if rows + nested.symbols > _ROWS:
            yield from _put_out(shared, waiting, nested, how.where)
            waiting, rows, nested = [], 0, how.callers()
    yield from _put_out(shared, waiting, nested, how.where)


def _flat(group: int, signatures: Signatures, ids: Ints, count: Ints, *, by_time: bool) -> _Rows:
    """Calls that are inside no call, or inside an unknown one."""
    layer = signatures.layer[ids]
    via, within = layer, (np.int16(1) << layer.astype(np.int16)).astype(np.int16)
    if by_time and ((layer >= Layer.MPIIO) & (layer <= Layer.NETCDF)).any():
        unknown = layer <= Layer.STDIO
        via, within = (
            np.where(unknown, -1, via).astype(np.int8),
            np.where(unknown, -1, within).astype(np.int16),
        )
    return _Rows(np.full(len(ids), group), ids, via, within, np.zeros(len(ids), np.bool_), count)


def _put_out(
    signatures: Signatures | None, waiting: list[_Rows], nested: Callers, where: str
) -> Iterator[pa.RecordBatch]:
    if len(nested):
        counts = nested.resolve(where)
        waiting = [
            *waiting,
            _Rows(counts.grammar, counts.terminal, counts.via, counts.within, counts.nested, counts.count),
        ]
    if signatures is None or not waiting:
        return
    rows = _Rows(*(np.concatenate(columns) for columns in zip(*waiting, strict=True)))
    ids = rows.terminal
    flags = signatures.flags[ids] | np.where(rows.nested, Flag.NESTED, 0).astype(np.int16)
    file, rename_to, size = signatures.file[ids], signatures.rename_to[ids], signatures.bytes[ids]
    columns = [
        to_arrow(rows.group.astype(np.int32)),
        to_arrow(signatures.func[ids]),
        to_arrow(signatures.layer[ids]),
        to_arrow(signatures.kind[ids]),
        to_arrow(rows.via, rows.via < 0),
        to_arrow(rows.within, rows.within < 0),
        to_arrow(flags),
        to_arrow(file, file < 0),
        to_arrow(rename_to, rename_to < 0),
        to_arrow(size, size == NO_VALUE),
        to_arrow(rows.often),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=OCCURRENCES)
