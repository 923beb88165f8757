"""Metadata operations that a server answers, and their share of a profile's metadata time.

The metadata server handles names and attributes: open and close, stat, folders, remove and rename. A seek stays in the
client, and truncations, locks and mappings are separate. Flushing is not metadata, but documents of `vani.profile/1`
counted it as such. If a program flushes, the metadata figures of these documents are not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vani.schema.profile import IOStats, MetadataKinds, Profile
    from vani.schema.system import System

OPENING: Final = ("open", "close")
"""Operations that become fewer if files are opened less often."""

SERVED: Final = ("open", "close", "stat", "directory", "remove")
"""Operations that a metadata server answers."""

MAY_INCLUDE_FLUSHING: Final = (
    "the share of flushing (fsync) in the metadata time is not known in a profile of an older Vani; make it again"
)
"""Reason why a rule is silent."""

# Flushing calls that `vani.profile/1` counted as metadata.
_FLUSHES: Final = frozenset(
    {"fsync", "fdatasync", "fflush", "msync", "sync_file_range", "syncfs", "MPI_File_sync"}
)


def share_of(parts: Iterable[IOStats], kinds: Sequence[str]) -> float:
    """Share of `kinds` in the time of metadata operations, 0..1; 1 if unknown."""
    known = [io.metadata_kinds for io in parts if io.metadata_kinds is not None]
    total = sum(_time(table, name) for table in known for name in type(table).model_fields)
    return sum(_time(table, name) for table in known for name in kinds) / total if total else 1.0


def time_of(parts: Sequence[IOStats], kinds: Sequence[str]) -> float:
    """Seconds in metadata operations of `kinds`, summed over processes; of all kinds if these are not separate."""
    return sum((io.time_s.metadata or 0.0) * share_of([io], kinds) for io in parts)


def count_of(io: IOStats, kinds: Sequence[str]) -> int:
    """Number of metadata operations of `kinds`; of all kinds if these are not separate."""
    if io.metadata_kinds is None:
        return io.ops.metadata
    return sum(getattr(io.metadata_kinds, name).count for name in kinds)


def flushes_most(io: IOStats, share: float) -> bool:
    """True if at least `share` of the I/O time is flushing, which fewer metadata operations do not shorten."""
    return bool(io.time_s.sync and io.time_s.total and io.time_s.sync >= share * io.time_s.total)


def may_include_flushing(profile: Profile, app: str | None = None) -> bool:
    """True if the metadata figures of a profile, or of one app, may include flushing (`vani.profile/1`)."""
    if profile.workflow.io.ops.sync is not None:
        return False
    return any(
        not _FLUSHES.isdisjoint(trace.functions)
        for trace in profile.traces
        if app is None or trace.app == app
    )


def metadata_without_flushing(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: metadata figures without flushing. Return why that is uncertain, or None if it is met."""
    return MAY_INCLUDE_FLUSHING if may_include_flushing(profile) else None


def _time(kinds: MetadataKinds, name: str) -> float:
    return float(getattr(kinds, name).time_s or 0.0)
