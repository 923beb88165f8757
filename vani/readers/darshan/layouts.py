"""Layouts of files on Lustre, from the components that the log lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vani.counts import FileLayout, TargetsOfFiles
from vani.readers.darshan.records import Records

__all__ = ["layouts_of", "targets_of"]

Ints = NDArray[np.int64]


def layouts_of(
    records: Records, files: Callable[[NDArray[np.uint64]], Ints], reach: Ints
) -> dict[int, FileLayout] | None:
    """Layout of each file that has one; None where the log has no records of Lustre.

    Parameters
    ----------
    files
        Codes of ids, below 0 where a file was not used.
    reach
        Shape (files,): end of the furthest read or write.
    """
    table = records.layouts
    if table is None:
        return None
    begin, end = (table[f"LUSTRE_COMP_EXT_{side}"] for side in ("START", "END"))
    count, size = (table[f"LUSTRE_COMP_STRIPE_{name}"] for name in ("COUNT", "SIZE"))
    code = files(table["id"])
    rows: dict[int, list[int]] = {}
    for row in np.flatnonzero(code >= 0).tolist():
        rows.setdefault(int(code[row]), []).append(row)
    layouts = {}
    for file, own in rows.items():
        last = max(0, int(reach[file]) - 1)
        # An end below 0 means none. The first fitting one of mirrors, or of extents that a damaged log invents, counts.
        component = next((r for r in own if begin[r] <= last and (end[r] < 0 or last < end[r])), own[-1])
        layouts[file] = FileLayout(_known(count[component]), _known(size[component]), len(own))
    return layouts


def targets_of(records: Records, files: Callable[[NDArray[np.uint64]], Ints]) -> TargetsOfFiles | None:
    """The targets of each file; None where the log has none. `files` as in `layouts_of`."""
    table = records.targets
    if table is None or not len(table["id"]):
        return None
    code, target = files(table["id"]), table["target"].astype(np.int64)
    sound = (code >= 0) & (target >= 0)
    of_system: dict[int, int] = {}
    if records.layouts is not None and "OSTS" in records.layouts:
        osts = records.layouts["OSTS"].tolist()
        pairs = zip(files(records.layouts["id"]).tolist(), osts, strict=True)
        of_system = {file: count for file, count in pairs if file >= 0 and count > 0}
    return TargetsOfFiles(code[sound], target[sound], of_system)


def _known(value: np.int64) -> int | None:
    """Counters below 0 were not counted; a component on the metadata target has no stripes."""
    return int(value) if value > 0 else None
