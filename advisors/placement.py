"""The file system of a path, from a profile, a system description and the path itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.recorded_mounts import recorded_mount
from vani.models.calibration import certainty

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import FileSystem, System

SUPPLY = (
    "state where the data is: --system NAME (generic-lustre, generic-gpfs or a machine) or --job job.yaml"
)


@dataclass(frozen=True)
class Lustre:
    """A Lustre file system that contains a path.

    `figures` are the description's; None without a description. `certainty`, 0..1, is a factor on a rule's confidence,
    and `because` its reason as part of a sentence, if the machine's figures do not show it.
    """

    figures: FileSystem | None
    prefix: str
    certainty: float
    because: str


def lustre_under(path: str, profile: Profile, system: System, *, but: str = "not Lustre") -> Lustre | str:
    """Find the Lustre file system that contains `path`, or return a sentence on why there is none.

    Mounts recorded in the trace decide first, then those of the system, then what `vani collect` found for the
    profile, then a generic description that the user chose, and last `lustre` in the first folders of the path, which
    is only a hint. `but` is the wording for a file system of another type.
    """
    mount = recorded_mount(path, profile, system)
    if mount is not None and mount.type != "lustre":
        return f"the data is on {mount.dir}, which is {mount.type} by the trace's mount table, {but}"
    file_system = system.file_system_for(path)
    if file_system is not None and file_system.type == "lustre":
        prefix = f"system.file_systems[{system.file_systems.index(file_system)}]"
        return Lustre(file_system, prefix, *_sure(system))
    if file_system is not None:
        return f"the data is on {file_system.name}, which is {file_system.type}, {but}"
    near = system.burst_buffer_for(path)
    if near is not None:
        return f"the data is on {near.name}, a burst buffer, not on Lustre"
    return _without_mount(path, profile, system)


def places(profile: Profile, system: System) -> Callable[[str], Lustre | str]:
    """`lustre_under` with a cache by folder, because all files of a folder are on one file system."""
    known: dict[str, Lustre | str] = {}

    def under(folder: str) -> Lustre | str:
        if folder not in known:
            known[folder] = lustre_under(folder, profile, system)
        return known[folder]

    return under


def gpfs_under(path: str, profile: Profile, system: System) -> tuple[str, FileSystem | None] | str:
    """The GPFS that contains `path`, as its path in the system and its figures; a sentence if there is none."""
    return disk_under("gpfs", "GPFS", path, profile, system)


def disk_under(
    kind: str, name: str, path: str, profile: Profile, system: System
) -> tuple[str, FileSystem | None] | str:
    """The file system of type `kind` that contains `path`, with its path in the system; a sentence if there is none.

    `name` is the type's name in the sentence.
    """
    mount = recorded_mount(path, profile, system)
    if mount is not None and mount.type != kind:
        return f"the data is on {mount.dir}, which is {mount.type} by the trace's mount table, not {name}"
    file_system = system.file_system_for(path)
    shared = profile.storage.shared
    if mount is not None and file_system is not None and file_system.type == kind:
        return f"system.file_systems[{system.file_systems.index(file_system)}]", file_system
    if file_system is not None and not (system.generic and shared.type is not None):
        if file_system.type != kind:
            return f"the data is on {file_system.type}, not on {name}"
        return f"system.file_systems[{system.file_systems.index(file_system)}]", file_system
    if system.burst_buffer_for(path) is not None:
        return f"the data is on a burst buffer, not on {name}"
    if shared.type is not None and (shared.dir is None or path.startswith(shared.dir.rstrip("/") + "/")):
        if shared.type.lower() != kind:
            return f"the data is on {shared.type}, not on {name}"
        figures = system.file_system(kind)
        number = system.file_systems.index(figures) if figures is not None else 0
        return f"system.file_systems[{number}]", figures
    return f"the type of the file system is not known; {SUPPLY}"


def _without_mount(path: str, profile: Profile, system: System) -> Lustre | str:
    """The assumed file system of a path outside all mounts of the description."""
    figures = system.file_system("lustre")
    prefix = f"system.file_systems[{system.file_systems.index(figures)}]" if figures else "system"
    shared = profile.storage.shared
    if shared.type is not None and _holds(shared.dir, path):
        if shared.type.lower() != "lustre":
            return f"the data is on {shared.type}, not on Lustre"
        typical = (0.7, "the figures of its targets are typical")
        return Lustre(figures, prefix, *(_sure(system) if figures else typical))
    if system.generic and figures is not None:
        return Lustre(figures, prefix, *_sure(system))
    if system.generic and system.file_systems:
        return f"the data is on {system.file_systems[0].type}, not on Lustre"
    if any("lustre" in part.lower() for part in path.split("/")[:4]):
        return Lustre(figures, prefix, 0.5, "only the path suggests that this is Lustre: check with `lfs df`")
    return f"the type of the file system is not known; {SUPPLY}"


def _sure(system: System) -> tuple[float, str]:
    # The first lines of advice already name a generic machine.
    return certainty(system), ""


def _holds(folder: str | None, path: str) -> bool:
    # Without a folder, the profile means the shared file system with the data.

    return folder is None or path == folder or path.startswith(folder.rstrip("/") + "/")
