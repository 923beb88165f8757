"""Profiles of runs whose tracer stored counts instead of calls, made from the logs without a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.arguments import app_of
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.analyzers.counts.profile import CountedRun
    from vani.analyzers.entities.view import View
    from vani.readers.trace_reader import TraceReader
    from vani.schema.job import Job
    from vani.schema.profile import Profile
    from vani.schema.system import System

def counting(readers: Sequence[TraceReader]) -> list[TraceReader]:
    """The readers if all of them provide only counts; an empty list if they provide calls.

    Raises
    ------
    InputError
        Some provide counts, others calls.
    """
    from vani.readers.trace_reader import KeepsCounts  # noqa: PLC0415 - loads Arrow

    logs: list[TraceReader] = [reader for reader in readers if isinstance(reader, KeepsCounts)]
    if logs and len(logs) < len(readers):
        other = next(reader for reader in readers if not isinstance(reader, KeepsCounts))
        raise InputError(
            f"is a log of {logs[0].tool}, and {other.path} is a trace of {other.tool}: counts and calls are not one "
            "workload",
            where=logs[0].path,
            todo="profile them apart",
        )
    return logs


def without_copies(readers: Sequence[TraceReader]) -> tuple[list[TraceReader], list[tuple[Path, Path]]]:
    """The first of each set of logs with identical content, then pairs of a copy and its original."""
    from vani.readers.trace_reader import KeepsCounts  # noqa: PLC0415

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
    from vani.analyzers.counts.profile import counted_profile  # noqa: PLC0415 - loads Arrow
    from vani.readers.identity import unchanged  # noqa: PLC0415

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


def _run(reader: TraceReader) -> CountedRun:
    from vani.analyzers.counts.profile import CountedRun  # noqa: PLC0415
    from vani.analyzers.measurements import TraceFacts  # noqa: PLC0415
    from vani.readers.trace_reader import KeepsCounts  # noqa: PLC0415

    if not isinstance(reader, KeepsCounts):
        raise TypeError(f"{reader.tool} has calls")
    counts, problems = reader.counts(), list(reader.problems)
    return CountedRun(
        facts=TraceFacts(
            source=str(reader.path.resolve()),
            tool=reader.tool,
            format=reader.format,
            layout=reader.layout,
            ranks=reader.ranks,
            records=sum(counts.functions.values()),
            functions=counts.functions,
            start_unix_s=reader.start_unix_s,
            begin_ns=0,
            span_ns=counts.span_ns,
            repaired_times=None,
            complete=not problems,
            problems=problems,
            limits=[(limit.attribute, limit.why) for limit in reader.limits],
            facts=[],
            job=counts.job,
            hints_passed=counts.hints_passed,
        ),
        files=reader.files(),
        counts=counts,
    )
