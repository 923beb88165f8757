"""Batches of whole ranks from rows in another order, for traces that mix lines of several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.columns import to_numpy
from vani.readers.delivery import Delivery, Rows
from vani.readers.spool import Spool
from vani.readers.trace_reader import BATCH_ROWS

Ints = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]
"""A spool's columns by name."""

_GROUP_ROWS = 4 * BATCH_ROWS


def process_batches(
    spool: Spool,
    rank_of_number: NDArray[np.int32],
    calls: Ints,
    ranks: range,
    delivery: Callable[[], Delivery],
    order: Callable[[Columns], NDArray[np.intp]],
    rows: Callable[[Columns], Rows],
    *,
    late: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield the calls of `ranks`, in rank order, in batches with the schema `vani.calls.CALLS`.

    Parameters
    ----------
    rank_of_number
        The rank of each number (of a thread or process) by which the spool finds batches; -1 for none.
    calls
        Number of calls per rank.
    delivery
        Creates the delivery for some ranks.
    order
        Returns the row order: rank by rank, by call start.
    rows
        Converts ordered columns to rows.
    late
        Number of rows of a process read in pieces that wait for calls that ended later but began earlier.
    """
    for group in rank_groups(ranks, calls, _GROUP_ROWS):
        deliver = delivery()
        is_selected = (rank_of_number >= group.start) & (rank_of_number < group.stop)
        # A process with many calls is delivered in pieces.
        piece = _GROUP_ROWS + late if int(calls[group.start : group.stop].sum()) > _GROUP_ROWS else None
        waiting: list[Columns] = []
        for batch in spool.batches(is_selected):
            own = np.flatnonzero(is_selected[to_numpy(batch.column(spool.by))])
            waiting.append({name: to_numpy(batch.column(name))[own] for name in spool.schema.names})
            if piece is not None and sum(len(columns[spool.by]) for columns in waiting) >= piece:
                ordered = _joined(waiting, order)
                cut = len(ordered[spool.by]) - late
                yield from deliver.batches(rows({name: values[:cut] for name, values in ordered.items()}))
                waiting = [{name: values[cut:] for name, values in ordered.items()}]
        if waiting:
            yield from deliver.batches(rows(_joined(waiting, order)))


def _joined(parts: list[Columns], order: Callable[[Columns], NDArray[np.intp]]) -> Columns:
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    places = order(columns)
    return {name: values[places] for name, values in columns.items()}


def rank_groups(ranks: range, calls: Ints, most: int) -> Iterator[range]:
    """Split a range of ranks after about `most` calls each; ranks that are not consecutive are alone."""
    if ranks.step != 1:
        yield from (range(rank, rank + 1) for rank in ranks)
        return
    first, rows = ranks.start, 0
    for rank in ranks:
        if rows and rows + int(calls[rank]) > most:
            yield range(first, rank)
            first, rows = rank, 0
        rows += int(calls[rank])
    if rows:
        yield range(first, ranks.stop)
