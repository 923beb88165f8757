"""Whether a snapshot is too old to plan by."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.errors import InputError
from vani.units import format_seconds

if TYPE_CHECKING:
    from vani.schema.snapshot import Snapshot

__all__ = ["refuse_old"]


def refuse_old(snapshot: Snapshot, max_age: float | None, now: datetime | None, where: str) -> None:
    """Raise InputError where a snapshot is older than `max_age` seconds at `now`, or that cannot be told.

    `max_age` None: of any age. A time without a zone is UTC. One that lies more than `max_age` ahead is refused, too:
    then one of the clocks is wrong.
    """
    if max_age is None:
        return
    # Comparisons with what is no number are false.
    if not 0 <= max_age <= 1e9:
        raise InputError(f"is {max_age:g}", where="--max-age", todo="give seconds, 0 or more")
    taken = snapshot.time
    if taken is None:
        raise InputError(
            "does not tell when it was taken", where=where, todo="add `time`, or leave --max-age out"
        )
    current = now or datetime.now(UTC)
    age = (_in_utc(current) - _in_utc(taken)).total_seconds()
    if abs(age) > max_age:
        when = f"{format_seconds(age)} old" if age > 0 else f"from {format_seconds(-age)} ahead of this clock"
        raise InputError(
            f"is {when}, and --max-age allows {format_seconds(max_age)}",
            where=where,
            todo="take a new one",
        )


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
