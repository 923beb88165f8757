"""Facts about the machine in logs: layouts of files, mounted file systems, nodes."""

from __future__ import annotations

from collections.abc import Sequence

from vani.analyzers.workload.workload import Context
from vani.counts import FileLayout, RunCounts

__all__ = ["LAYOUT", "NO_LAYOUTS", "NO_NODES", "layouts_of", "mounts_of", "nodes_of"]

LAYOUT = ("files.stripe_count", "files.stripe_size", "files.components")
NO_LAYOUTS = "the log has no records of Lustre"
NO_NODES = "counts name no nodes"


def layouts_of(contexts: Sequence[Context], runs: Sequence[RunCounts]) -> dict[int, FileLayout]:
    """By file of the workload; of several runs that of the last one given."""
    return {
        int(context.file_codes[file]): layout
        for context, run in zip(contexts, runs, strict=True)
        for file, layout in (run.layouts or {}).items()
    }


def mounts_of(runs: Sequence[RunCounts]) -> list[tuple[str, str]]:
    """(folder, type), each folder once."""
    return list({folder: (folder, kind) for run in runs for folder, kind in run.mounts}.values())


def nodes_of(runs: Sequence[RunCounts]) -> int | None:
    """Distinct nodes of all runs together; None where those of some run are not known."""
    names: set[str] = set()
    for run in runs:
        if run.hosts is None:
            return None
        names.update(run.hosts)
    return len(names) or None
