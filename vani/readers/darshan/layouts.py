"""Layouts of files on Lustre, from the components that the log lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vani.counts import FileLayout, TargetsOfFiles
from vani.readers.darshan.records import Records

Ints = NDArray[np.int64]


def layouts_of(
    records: Records, files: Callable[[NDArray[np.uint64]], Ints], reach: Ints
) -> dict[int, FileLayout] | None:
    """Layout of each file that has one; None if the log has no Lustre records.

    Parameters
    ----------
    files
        Maps ids to file codes, which are negative for files that were not used.
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
        # A negative end means no end. Mirrors and damaged extents may overlap: the first component that fits counts.
        component = next((r for r in own if begin[r] <= last and (end[r] < 0 or last < end[r])), own[-1])
        layouts[file] = FileLayout(_known(count[component]), _known(size[component]), len(own))
    return layouts


def targets_of(records: Records, files: Callable[[NDArray[np.uint64]], Ints]) -> TargetsOfFiles | None:
    """The targets of each file; None if the log has none. `files` is as in `layouts_of`."""
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
    """Uncounted counters are negative; a component on the metadata target has no stripes."""
    return int(value) if value > 0 else None
