"""Conversion of stores to a profile: the workload, the passes, the entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from vani.analyzers.assemble import assemble
from vani.analyzers.entities.view import View
from vani.analyzers.int_table import NO_VALUE
from vani.analyzers.measurements import TraceFacts
from vani.analyzers.passes.measure_workload import measure, trace_facts
from vani.analyzers.workload import Context, Workload, renames_of
from vani.calls import MAX_SUM, FileClass
from vani.columns import Int8s, Int32s, Ints, Texts, to_numpy
from vani.engine.executor import Executor
from vani.errors import InputError
from vani.schema.profile import Profile
from vani.store.partial_results import PartialResults
from vani.store.read import Store
from vani.units import format_number

if TYPE_CHECKING:
    from vani.schema.job import Job
    from vani.schema.system import System

Codes = Ints

@dataclass(frozen=True, eq=False)
class Options:
    """User options. `list_files` is the number of files to list, None for all."""

    phase_gap_s: float | None = None
    list_files: int | None = 100


class Tables(Protocol):
    """Facts about a trace that its store contains before calls are read."""

    @property
    def files(self) -> pa.Table: ...

    @property
    def renames(self) -> pa.Table: ...

    @property
    def function_names(self) -> dict[int, str]: ...


def workload_of(
    traces: Sequence[TraceFacts], tables: Sequence[Tables], names: Sequence[str], job_: Job | None
) -> tuple[Workload, list[Context]]:
    """Number files, apps and processes over all traces, and put the traces on one clock.

    Parameters
    ----------
    tables, names
        Tables of each trace, and the name of its app.
    """
    paths, classes, local = _numbered([table.files for table in tables])
    starts = [trace.start_unix_s for trace in traces]
    known = [s for s in starts if s is not None]
    origin = min(known) if known and len(known) == len(traces) else None
    shifts = [0 if origin is None or s is None else round((s - origin) * 1e9) for s in starts]
    # If a clock was set back to before the start of the first trace, the workload begins with its first call.
    early = min(shift + trace.begin_ns for shift, trace in zip(shifts, traces, strict=True))
    shifts = [shift - min(0, early) for shift in shifts]
    order: dict[str, int] = {}
    for index in sorted(range(len(traces)), key=lambda i: (shifts[i], i)):
        order.setdefault(names[index], len(order))
    ranks = [trace.ranks for trace in traces]
    functions, own_functions = _functions([table.function_names for table in tables])
    sizes_known = np.full(len(paths), NO_VALUE)
    if job_ is not None and job_.dataset is not None:
        for code, path in enumerate(paths):
            size = job_.size_of(path)
            if size is not None:
                sizes_known[code] = size
    workload = Workload(
        paths=paths,
        file_class=classes,
        apps=tuple(order),
        app_of_trace=tuple(order[n] for n in names),
        process_base=tuple(int(b) for b in np.cumsum([0, *ranks])[:-1]),
        processes=sum(ranks),
        shift_ns=tuple(shifts),
        span_ns=max(shift + (trace.span_ns or 0) for shift, trace in zip(shifts, traces, strict=True)),
        known_sizes=sizes_known,
        final_name=np.arange(len(paths)),
        functions=functions,
        renames=renames_of([table.renames for table in tables], local, shifts, paths, classes),
    )
    return workload, [
        Context(workload, i, own, functions_)
        for i, (own, functions_) in enumerate(zip(local, own_functions, strict=True))
    ]


_NAMELESS = "(unknown)"


def _functions(tables: Sequence[dict[int, str]]) -> tuple[tuple[str, ...], list[Int32s]]:
    """Names of the functions of all traces, and the index of each trace's own codes among them."""
    names: dict[str, int] = {_NAMELESS: 0}
    local = []
    for table in tables:
        codes = np.zeros(max(table, default=-1) + 2, np.int32)
        for code, name in table.items():
            codes[code] = names.setdefault(name, len(names))
        local.append(codes)
    return tuple(names), local


def _numbered(tables: Sequence[pa.Table]) -> tuple[Texts, Int8s, list[Codes]]:
    """Paths of all traces in order of first appearance, the class of each, and codes of each trace's own paths."""
    if len(tables) == 1:
        # The paths of a single trace are distinct.
        (table,) = tables
        classes = to_numpy(table["class"].combine_chunks())
        return Texts(table["path"]), classes, [np.arange(len(table), dtype=np.int64)]
    columns = [table["path"].combine_chunks() for table in tables]
    encoded = pa.chunked_array(columns).dictionary_encode().combine_chunks()
    every = to_numpy(encoded.indices).astype(np.int64)
    classes = np.full(len(encoded.dictionary), max(FileClass), np.int8)
    kinds = np.concatenate([to_numpy(table["class"].combine_chunks()) for table in tables])
    # A path that one trace only probed and another one used is a file of the data set.
    np.minimum.at(classes, every, kinds)
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return Texts(encoded.dictionary), classes, np.split(every, cuts)


def characterise(
    stores: Sequence[Store],
    names: Sequence[str],
    executor: Executor,
    *,
    version: str,
    job_: Job | None = None,
    system: System | None = None,
    options: Options | None = None,
    refused: Sequence[tuple[str, str]] = (),
    known: PartialResults | None = None,
) -> tuple[Profile, View]:
    """Characterise a workload.

    Parameters
    ----------
    stores, names
        One per trace, with the name of its app.
    refused
        (path, reason) of traces that could not be read.
    known
        Earlier results of the passes; new results are stored there, too.

    Returns
    -------
    profile, view
        The checked profile; and the measurements, for graphs.

    Raises
    ------
    InputError
        The calls of all traces move more bytes, or take more time, than fit in 64 bits.
    SelfCheckError
        The numbers contradict each other.
    CallsNeeded
        The known results are not sufficient, and the stores have no calls.
    """
    for name, unit in (("bytes", "bytes"), ("time_ns", "ns")):
        total = sum(getattr(store.manifest, name) for store in stores)
        if total >= MAX_SUM:
            raise InputError(
                f"the calls of all {len(stores)} traces have {format_number(total)} {unit} together, more than can be "
                "counted",
                todo="give fewer traces, or trace the runs again",
            )
    options = options or Options()
    workload, contexts = workload_of([trace_facts(store.manifest) for store in stores], stores, names, job_)
    measured = measure(
        workload,
        stores,
        contexts,
        executor,
        phase_gap_s=options.phase_gap_s,
        list_files=options.list_files,
        known=known,
    )
    view = View(measured, job_, system)
    return assemble(view, version=version, refused=refused), view
