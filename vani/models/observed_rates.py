"""Rates of a machine's description, raised to those of a run that was faster: measurements refute descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.units import MiB

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, Rates, System

_CACHED_PER_NODE: Final = 512 * MiB
"""Bytes per node that Lustre's clients may still have in memory when the last write returns: OPRAEL's eight nodes
write up to that much at memory speed."""


def with_observed_rates(system: System, profile: Profile) -> System:
    """A copy of the machine whose targets and file systems are at least as fast as the run's files on them.

    A file on n targets that moves at some rate shows that a target gives at least an nth of it and the file system all
    of it. Only rates that the description has are corrected, and only upwards: a run may be slow for many reasons. The
    time is that in which any process was in such a call on the file, as in the rules. The rate excludes bytes that
    clients may have kept in memory, bytes that were read twice, and reads of files that the run wrote.

    Parameters
    ----------
    system
        Description to correct; it is not modified.
    """
    disks = [_corrected(disk, system, profile) for disk in system.file_systems]
    if disks == system.file_systems:
        return system
    return system.model_copy(update={"file_systems": disks})


def _corrected(disk: FileSystem, system: System, profile: Profile) -> FileSystem:
    if disk.type != "lustre":
        return disk
    files = [file for file in profile.files if file.stripe_count and system.file_system_for(file.path) is disk]
    target: dict[str, float] = {}
    whole: dict[str, float] = {}
    for kind in ("read", "write"):
        for file in files:
            rate = _rate(file, kind, profile)
            whole[kind] = max(whole.get(kind, 0.0), rate)
            target[kind] = max(target.get(kind, 0.0), rate / (file.stripe_count or 1))
    return disk.model_copy(
        update={
            "bandwidth_per_target": _raised(disk.bandwidth_per_target, target),
            "max_bandwidth": _raised(disk.max_bandwidth, whole),
        }
    )


def _raised(rates: Rates, observed: dict[str, float]) -> Rates:
    faster = {
        kind: rate for kind, rate in observed.items() if (known := getattr(rates, kind)) is not None and rate > known
    }
    return rates.model_copy(update=faster) if faster else rates


def _rate(file: FileEntity, kind: str, profile: Profile) -> float:
    """Lower bound of the bytes per second at which the file's targets moved it."""
    seconds: float | None = getattr(file.io.busy_s, kind)
    if not seconds:
        return 0.0
    nodes = min(profile.job.nodes or file.processes, file.processes)
    written = (file.io.bytes.written or 0) - nodes * _CACHED_PER_NODE
    read = (file.io.footprint.read or 0) if not file.writers else 0
    return max(0.0, (written if kind == "write" else read) / seconds)
