"""A row of figures for a run, from its profile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from vani.errors import InputError
from vani.models.verdict import verdict_of
from vani.schema.damage import damage
from vani.schema.run_table import COLUMNS, RunRow

if TYPE_CHECKING:
    from vani.schema.profile import Profile

_LAST_SECOND: Final = 253_402_300_799
"""Last second of the year 9999, the latest possible date."""


def row_of(profile: Profile, run: str) -> RunRow:
    """The figures of one run."""
    workflow = profile.workflow
    io, size = workflow.io, workflow.io.transfer_size
    starts = [trace.start_unix_s for trace in profile.traces if trace.start_unix_s]
    tracers = sorted({f"{trace.tool} {trace.format}" for trace in profile.traces})
    verdict = verdict_of(profile)
    return RunRow(
        run=run,
        apps=", ".join(app.name for app in profile.apps),
        start=_date(min(starts)) if starts else None,
        tracer=", ".join(tracers) or None,
        processes=workflow.processes,
        nodes=profile.job.nodes,
        runtime_s=workflow.runtime_s,
        matters=verdict.matters,
        io_share=verdict.share,
        io_share_slowest=verdict.share_slowest,
        io_share_is_lower_bound=verdict.is_lower_bound,
        verdict=verdict.sentence,
        io_s=io.time_s.total,
        read=io.bytes.read,
        written=io.bytes.written,
        read_rate=io.bandwidth.read,
        write_rate=io.bandwidth.write,
        reads=io.ops.read,
        writes=io.ops.write,
        metadata=io.ops.metadata,
        read_p50=size.read.p50 if size.read is not None else None,
        write_p50=size.write.p50 if size.write is not None else None,
        files=workflow.files.total,
        shared_files=workflow.files.shared,
        costliest=verdict.cause.call if verdict.cause is not None else None,
        damage=damage(profile),
    )


def sorted_rows(rows: Sequence[RunRow], column: str | None, *, reverse: bool) -> list[RunRow]:
    """Sort rows by a column: numbers in descending order, texts and dates ascending, unknown values last.

    Raises
    ------
    InputError
        The column does not exist.
    """
    if column is None:
        return list(reversed(rows)) if reverse else list(rows)
    if column not in COLUMNS:
        raise InputError(f"no column {column!r}", where="--sort", todo=f"there are {', '.join(COLUMNS)}")
    known = [row for row in rows if getattr(row, column) is not None]
    unknown = [row for row in rows if getattr(row, column) is None]
    is_text = bool(known) and isinstance(getattr(known[0], column), str)
    return sorted(known, key=lambda row: getattr(row, column), reverse=reverse is is_text) + unknown


def _date(seconds: float) -> str | None:
    if not 0 < seconds < _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
