"""The function and file tables that a reader provides, from the names in its trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import FILES, FUNCTIONS, FileClass
from vani.columns import small_table, to_arrow, to_numpy
from vani.readers.functions import layer_of, meaning_of
from vani.readers.paths import classify_path

_FILES_AT_ONCE = 1 << 16


def file_table(paths: Sequence[str], probes: NDArray[np.bool_] | None) -> pa.Table:
    """`vani.calls.FILES` for paths by code.

    Parameters
    ----------
    probes
        Shape (paths,): paths that were only probed; None if unknown.
    """
    some = [
        small_table([range(at, at + len(run)), run, [int(classify_path(p)) for p in run]], FILES)
        for at in range(0, max(1, len(paths)), _FILES_AT_ONCE)
        for run in (paths[at : at + _FILES_AT_ONCE],)
    ]
    table = pa.concat_tables(some).combine_chunks()
    if probes is None:
        return table
    by_path = to_numpy(table["class"].combine_chunks())
    classes = np.where(probes & (by_path == FileClass.DATASET), FileClass.PROBE, by_path).astype(np.int8)
    return table.set_column(table.schema.get_field_index("class"), FILES.field("class"), to_arrow(classes))


def function_table(names: Sequence[str]) -> pa.Table:
    """`vani.calls.FUNCTIONS` for a trace's function list."""
    layers, kinds = [int(layer_of(n)) for n in names], [int(meaning_of(n).kind) for n in names]
    return small_table([range(len(names)), names, layers, kinds], FUNCTIONS)
