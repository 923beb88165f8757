"""All log records that a profile uses, in the form of each module's newest version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.readers.darshan.growing_records import calls_of, heat_of, layouts_of
from vani.readers.darshan.heat_of_calls import HeatOfCalls
from vani.readers.darshan.log import Log
from vani.readers.darshan.record_ends import damaged_log
from vani.readers.darshan.record_layouts import LAYOUTS, MISSING

MODULES: Final = ("POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
"""Modules with records of counters."""
_HEAT: Final = "heatmap:POSIX"


@dataclass(frozen=True)
class Module:
    """A module's records, one per row."""

    id: NDArray[np.uint64]
    """File id of each record."""
    rank: NDArray[np.int64]
    counters: Mapping[str, NDArray[np.int64]]
    times: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class Records:
    """Contents of a log."""

    version: str
    exe: str
    ranks: int
    start_s: float
    end_s: float
    mounts: Sequence[tuple[str, str]]
    partial: Sequence[str]
    """Modules that dropped some records while the program ran."""
    ids: NDArray[np.uint64]
    names: Sequence[str]
    modules: Mapping[str, Module]
    layouts: Mapping[str, NDArray[Any]] | None = None
    """Components, one per row, by `LUSTRE_COMP_*` name and `id` of the file; `OSTS` is the number of the file
    system's targets, -1 if the log does not record it. None without that module."""
    calls: Mapping[str, NDArray[Any]] | None = None
    """DXT calls: `id`, `rank`, `writes` and `reads` (counts) of each record; `offset`, `length`, `start`, `end`
    (seconds) of its writes and then its reads, in record order."""
    hosts: Sequence[str] = ()
    """Host of each DXT record."""
    heat: Mapping[str, NDArray[Any]] | None = None
    """`id`, `rank` and `width` (seconds) of each record; `read` and `write`, shape (records, bins)."""
    user: int | None = None
    job_id: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Notes in the log's header: `lib_ver`, `h` (hints for writing the log), and anything a site adds."""
    targets: Mapping[str, NDArray[Any]] | None = None
    """Lustre targets: `id` of a file and `target`, an OST number of the file; one row per pair."""
    many_calls: bool = False
    """DXT has too many calls to read individually; `heat` summarises them if Darshan wrote no heat map."""
    mixed: int = 0
    """POSIX records that were dropped because stream calls were added to them (Darshan 3.0)."""


def read_records(log: Log) -> Records:
    """Read the records of a log.

    Raises
    ------
    TraceError
        The log has unknown records, or claims something impossible.
    """
    log.refuse_moments()
    job, names = log.job, log.names()
    calls, hosts = calls_of(log, "DXT_POSIX") if log.has("DXT_POSIX") else (None, [])
    heat: Mapping[str, NDArray[Any]] | None = heat_of(log) if log.has("HEATMAP") else None
    many = isinstance(calls, HeatOfCalls)
    if isinstance(calls, HeatOfCalls):
        if heat is None:
            heat_id = next((file for file, name in names.items() if name == _HEAT), 0)
            names[heat_id] = _HEAT
            heat = calls.table(heat_id)
        calls = None
    layouts, targets = layouts_of(log) if log.has("LUSTRE") else (None, None)
    return Records(
        version=log.version,
        exe=job.exe,
        ranks=job.processes,
        start_s=job.start_s,
        end_s=job.start_s + job.runtime_s,
        mounts=job.mounts,
        partial=log.partial,
        ids=np.array(list(names), np.uint64),
        names=list(names.values()),
        modules={name: _module(log, name) for name in MODULES if log.has(name)},
        layouts=layouts,
        calls=calls,
        hosts=hosts,
        heat=heat,
        many_calls=many,
        user=job.uid,
        job_id=job.job_id,
        metadata=job.metadata,
        targets=targets,
        mixed=log.mixed(),
    )


def _module(log: Log, name: str) -> Module:
    rows, layout = log.rows(name)
    newest = LAYOUTS[name][max(LAYOUTS[name])]
    prefix = "MPIIO" if name == "MPI-IO" else name
    words = rows.astype(np.int64)
    behind = layout.first + len(layout.counters)
    seconds = np.ascontiguousarray(words[:, behind:]).view(np.float64)
    counters = {name: words[:, layout.first + at] for at, name in enumerate(layout.counters)}
    if "INDEP_OPENS" in counters and "OPENS" in newest.at:
        counters["OPENS"] = counters["INDEP_OPENS"] + counters["COLL_OPENS"]
    ids = words[:, 2] if layout.names_file else words[:, 0]
    if newest.names_file and not layout.names_file:
        # The oldest records of file parts do not name their file.
        ids = np.zeros(len(words), np.int64)

    def missing(counter: str) -> NDArray[np.int64]:
        return np.full(len(words), MISSING.get(counter, -1))

    return Module(
        ids.copy().view(np.uint64),
        words[:, 1],
        {f"{prefix}_{name}": counters[name] if name in counters else missing(name) for name in newest.counters},
        {
            f"{prefix}_{name}": seconds[:, layout.at[name]] if name in layout.at else np.full(len(words), -1.0)
            for name in newest.times
        },
    )


_MOST_RANKS = 1 << 24
_MOST_SECONDS = 1e9


def refuse_impossible(path: Path, records: Records) -> None:
    """Raise TraceError if a log claims something that no run can do."""
    if not 0 < records.ranks <= _MOST_RANKS:
        raise damaged_log(path, f"it claims {records.ranks:,} processes")
    if not 0 <= records.end_s - records.start_s <= _MOST_SECONDS:
        raise damaged_log(path, f"it claims to have run for {records.end_s - records.start_s:,.0f} s")
    for name, module in records.modules.items():
        if len(module) and not (int(module.rank.min()) >= -1 and int(module.rank.max()) < records.ranks):
            raise damaged_log(
                path, f"{name} has a record of rank {int(module.rank.max()):,} of {records.ranks:,}"
            )
