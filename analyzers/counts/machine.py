"""Facts about the machine in logs: file layouts, mounted file systems, nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.analyzers.counts.rows import Rows
from vani.analyzers.measurements import FilesOnTargets
from vani.analyzers.workload.workload import Context
from vani.counts import FileLayout, RunCounts

LAYOUT = ("files.stripe_count", "files.stripe_size", "files.components")
NO_LAYOUTS = "the log has no records of Lustre"
NO_NODES = "counts name no nodes"
_STANDS_FOR = ("autofs", "rootfs", "dvs")
"""Mount types that are followed by a mount of another type in the same folder."""


def layouts_of(contexts: Sequence[Context], runs: Sequence[RunCounts]) -> dict[int, FileLayout]:
    """Layouts by file of the workload; the last given run takes precedence."""
    return {
        int(context.file_codes[file]): layout
        for context, run in zip(contexts, runs, strict=True)
        for file, layout in (run.layouts or {}).items()
    }


def mounts_of(runs: Sequence[RunCounts]) -> list[tuple[str, str]]:
    """(folder, type), each folder once, with the type that stores data if other types point to it."""
    types: dict[str, str] = {}
    for run in runs:
        for folder, kind in run.mounts:
            if types.get(folder, _STANDS_FOR[0]) in _STANDS_FOR:
                types[folder] = kind
    return list(types.items())


def nodes_of(runs: Sequence[RunCounts]) -> int | None:
    """Number of distinct nodes of all runs; None if those of some run are unknown."""
    names: set[str] = set()
    for run in runs:
        if run.hosts is None:
            return None
        names.update(run.hosts)
    return len(names) or None


def targets_of(contexts: Sequence[Context], runs: Sequence[RunCounts], rows: Rows) -> FilesOnTargets | None:
    """Files of the data set on their targets, with each file's traffic; None if no log has targets."""
    known = [(c, run.targets) for c, run in zip(contexts, runs, strict=True) if run.targets is not None]
    if not known:
        return None
    file = np.concatenate([context.file_codes[targets.file] for context, targets in known]).astype(np.int64)
    target = np.concatenate([targets.target for _, targets in known])
    # Several logs may name the same file, which counts once.
    pairs = np.unique(np.stack([file, target], axis=1), axis=0)
    file, target = pairs[:, 0], pairs[:, 1]
    files, own = max(1, rows.workload.files), rows.included
    on_data = np.zeros(files, np.bool_)
    on_data[rows.file[own]] = True
    file, target = file[on_data[file]], target[on_data[file]]
    processes = np.where(rows.process < 0, rows.ranks, 1)
    moved = rows["bytes_read"] + rows["bytes_written"]
    read, write = (
        np.bincount(rows.file[own], rows[name][own], files)
        / np.maximum(1, np.bincount(rows.file[own], np.where(rows[calls] > 0, processes, 0)[own], files))
        for name, calls in (("read_ns", "reads"), ("write_ns", "writes"))
    )
    stripes = np.maximum(1, np.bincount(file, minlength=files))
    share = np.bincount(rows.file[own], moved[own], files) / stripes
    of_system = {
        int(context.file_codes[code]): count for context, targets in known for code, count in targets.of_system.items()
    }
    moved_there, read_there, write_there = (
        np.round(column[file]).astype(np.int64) for column in (share, read, write)
    )
    return FilesOnTargets(file, target, moved_there, read_there, write_there, of_system)
