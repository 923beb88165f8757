"""The tables of functions and files that a reader hands on, made of the names that its trace has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import FILES, FileClass
from vani.columns import small_table, to_arrow, to_numpy
from vani.readers.functions import layer_of, meaning_of
from vani.readers.paths import classify_path

__all__ = ["classes_of", "file_table", "function_rows"]

_FILES_AT_ONCE = 1 << 16


def file_table(paths: Sequence[str], probes: NDArray[np.bool_]) -> pa.Table:
    """`vani.calls.FILES` of the paths by code; `probes`, shape (paths,): paths that were only looked for."""
    some = [
        small_table([range(at, at + len(run)), run, [int(classify_path(p)) for p in run]], FILES)
        for at in range(0, max(1, len(paths)), _FILES_AT_ONCE)
        for run in (paths[at : at + _FILES_AT_ONCE],)
    ]
    table = pa.concat_tables(some).combine_chunks()
    classes = classes_of(to_numpy(table["class"].combine_chunks()), probes)
    return table.set_column(table.schema.get_field_index("class"), FILES.field("class"), to_arrow(classes))


def classes_of(by_path: NDArray[np.int8], probes: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Classes of paths by their names and by what was done to them."""
    return np.where(probes & (by_path == FileClass.DATASET), FileClass.PROBE, by_path).astype(np.int8)


def function_rows(names: tuple[str, ...]) -> list[tuple[int, str, int, int]]:
    """Rows of `vani.calls.FUNCTIONS` for a trace's function list."""
    return [(i, n, int(layer_of(n)), int(meaning_of(n).kind)) for i, n in enumerate(names)]
