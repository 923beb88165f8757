"""Implements `vani profile --quick`: opens traces and counts their calls, one trace after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.arguments import PathLike, app_of
from vani.errors import InputError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from vani.analyzers.measurements import TraceFacts
    from vani.calls import Occurrences
    from vani.readers.trace_reader import CountsCalls, TraceReader
    from vani.schema.job import Job
    from vani.schema.profile import Profile
    from vani.schema.system import System

def quick_profile(
    traces: Sequence[PathLike],
    job: Job | None,
    system: System | None,
    files: int | None,
    *,
    together: bool = False,
) -> Profile:
    """Count the calls of a workload on the grammars of its traces; raises InputError if there is no trace.

    `together` is as in `vani.profile`.
    """
    from vani.analyzers.quick.counts import Trace  # noqa: PLC0415 - loads Arrow
    from vani.analyzers.quick.profile import quick_profile as counted  # noqa: PLC0415
    from vani.readers.identity import unchanged  # noqa: PLC0415
    from vani.readers.open import open_workload, refuse_unrelated  # noqa: PLC0415
    from vani.readers.trace_reader import CountsCalls  # noqa: PLC0415

    workload = open_workload([Path(t) for t in traces])
    if not together:
        refuse_unrelated(workload.readers)
    counts = []
    with ExitStack() as stack:
        for reader in workload.readers:
            stack.enter_context(unchanged(reader))
            if not isinstance(reader, CountsCalls):
                raise InputError(
                    f"is a trace of {reader.tool}, which has no grammar to count calls on",
                    where=reader.path,
                    todo="leave --quick out",
                )
            names = reader.functions()
            functions = dict(zip(names["func"].to_pylist(), names["name"].to_pylist(), strict=True))
            counts.append(Trace(_facts_of(reader), reader.files(), functions, _counted_once(reader)))
        return counted(
            counts,
            [app_of(reader.path, reader.app, job) for reader in workload.readers],
            version=vani.__version__,
            job_=job,
            system=system,
            list_files=files,
            refused=[(str(path), str(error)) for path, error in workload.refused],
        )


def _counted_once(reader: CountsCalls) -> Occurrences:
    """The occurrences in a trace, whose tables are freed after counting."""
    from vani.calls import Occurrences  # noqa: PLC0415 - loads Arrow
    from vani.readers.trace_reader import KeepsTables  # noqa: PLC0415

    counted = reader.occurrences()

    def batches() -> Iterator[RecordBatch]:
        yield from counted.batches()
        if isinstance(reader, KeepsTables):
            reader.release()

    return Occurrences(counted.group_of_rank, batches)


def _facts_of(reader: TraceReader) -> TraceFacts:
    """Facts about a trace that are known before any call is read."""
    from vani.analyzers.measurements import TraceFacts  # noqa: PLC0415

    problems = list(reader.problems)
    return TraceFacts(
        source=str(reader.path.resolve()),
        tool=reader.tool,
        format=reader.format,
        layout=reader.layout,
        ranks=reader.ranks,
        records=0,
        functions={},
        start_unix_s=reader.start_unix_s,
        begin_ns=0,
        span_ns=None,
        repaired_times=None,
        complete=False if problems else None,
        problems=problems,
        limits=[(limit.attribute, limit.why) for limit in reader.limits],
        facts=[(name, list(args), often) for name, args, often in reader.facts()],
    )
