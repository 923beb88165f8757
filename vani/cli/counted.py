"""Profiles from counts instead of calls: logs that a tracer stored as counts, and traces counted by their grammars."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyarrow import RecordBatch

import vani
from vani.analyzers.counts.profile import CountedRun, counted_profile
from vani.analyzers.entities.view import View
from vani.analyzers.measurements import TraceFacts
from vani.analyzers.quick.counts import Trace
from vani.analyzers.quick.profile import quick_profile as profile_of_occurrences
from vani.calls import Occurrences
from vani.cli.sources import ProfileSettings, app_of, job_of
from vani.errors import InputError
from vani.readers.files import unchanged
from vani.readers.open import open_workload, refuse_unrelated
from vani.readers.trace_reader import CountsCalls, KeepsCounts, KeepsTables, TraceReader
from vani.schema.job import Job
from vani.schema.profile import Profile
from vani.schema.settings import PathLike
from vani.schema.system import System
from vani.systems import system_of


def without_copies(readers: Sequence[TraceReader]) -> tuple[list[TraceReader], list[tuple[Path, Path]]]:
    """The first of each set of logs with identical content, then pairs of a copy and its original."""
    first: dict[str, TraceReader] = {}
    copies = []
    for reader in readers:
        content = reader.content() if isinstance(reader, KeepsCounts) else str(reader.path)
        if first.setdefault(content, reader) is not reader:
            copies.append((reader.path, first[content].path))
    return list(first.values()), copies


def profile_of_counts(
    readers: Sequence[TraceReader],
    job: Job | None,
    system: System | None,
    files: int | None,
    refused: Sequence[tuple[str, str]],
) -> tuple[Profile, View]:
    """The joint profile of the logs, and the measurements; copies of a log count once."""
    readers, copies = without_copies(readers)
    runs = []
    for reader in readers:
        with unchanged(reader):
            runs.append(_run(reader))
    return counted_profile(
        runs,
        [app_of(reader.path, reader.app, job) for reader in readers],
        version=vani.__version__,
        job_=job,
        system=system,
        list_files=files,
        refused=refused,
        copies=[(str(path), str(of)) for path, of in copies],
    )


def quick_profile(traces: Sequence[PathLike], settings: ProfileSettings) -> Profile:
    """Count the calls of a workload on the grammars of its traces; raises InputError if there is no trace."""
    workload = open_workload([Path(trace) for trace in traces])
    job = job_of(settings, [reader.path for reader in workload.readers])
    if not settings.together:
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
            problems = list(reader.problems)
            facts = _facts_of(
                reader,
                records=0,
                functions={},
                span_ns=None,
                complete=False if problems else None,
                problems=problems,
            )
            counts.append(Trace(facts, reader.files(), functions, _counted_once(reader)))
        return profile_of_occurrences(
            counts,
            [app_of(reader.path, reader.app, job) for reader in workload.readers],
            version=vani.__version__,
            job_=job,
            system=system_of(settings.system),
            list_files=settings.files,
            refused=[(str(path), str(error)) for path, error in workload.refused],
        )


def _run(reader: TraceReader) -> CountedRun:
    if not isinstance(reader, KeepsCounts):
        raise TypeError(f"{reader.tool} has calls")
    counts, problems = reader.counts(), list(reader.problems)
    facts = _facts_of(
        reader,
        records=sum(counts.functions.values()),
        functions=counts.functions,
        span_ns=counts.span_ns,
        complete=not problems,
        problems=problems,
        job=counts.job,
        hints_passed=counts.hints_passed,
    )
    return CountedRun(facts=facts, files=reader.files(), counts=counts)


def _counted_once(reader: CountsCalls) -> Occurrences:
    """The occurrences in a trace, whose tables are freed after counting."""
    counted = reader.occurrences()

    def batches() -> Iterator[RecordBatch]:
        yield from counted.batches()
        if isinstance(reader, KeepsTables):
            reader.release()

    return Occurrences(counted.group_of_rank, batches)


def _facts_of(reader: TraceReader, **facts: Any) -> TraceFacts:
    """Facts about a trace that are known before any call is read, and `facts`."""
    return TraceFacts(
        source=str(reader.path.resolve()),
        tool=reader.tool,
        format=reader.format,
        layout=reader.layout,
        ranks=reader.ranks,
        start_unix_s=reader.start_unix_s,
        begin_ns=0,
        repaired_times=None,
        limits=[(limit.attribute, limit.why) for limit in reader.limits],
        facts=[(name, list(args), often) for name, args, often in reader.facts()],
        **facts,
    )
