"""Files that apps share through MPI-IO, for all rules about MPI-IO."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Item, by_folder, data_files, data_s
from vani.advisors.movers import collective_part

if TYPE_CHECKING:
    from vani.schema.profile import App, Interface, Profile
    from vani.schema.system import System

DIRECT: Final = frozenset({"mpiio", "pnetcdf"})
"""Layers with one MPI-IO call per data call."""

_NETWORK_FILES: Final = frozenset({"nfs", "nfs4", "vast"})
# Our choice: twice as much is not just rounding to blocks.
_SIEVED: Final = 2.0
# Our choice: most of the calls, because aggregators do not help with the others.
_MOSTLY: Final = 0.5

ABOVE: Final = DIRECT | {"hdf5", "netcdf"}
"""Layers that may be above MPI-IO."""


@dataclass(frozen=True)
class Use:
    """Files of a folder that several processes of an app access through MPI-IO.

    `layer` is the app's MPI-IO interface and `number` its index in the profile.
    """

    app: App
    number: int
    layer: Interface
    folder: str
    items: list[Item]

    @property
    def where(self) -> str:
        """Path of the MPI-IO interface in the profile."""
        return f"interfaces[{self.number}]"


def mpiio_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: files shared through MPI-IO. Return why there are none, or None if there are some."""
    return _why_none(profile, ABOVE)


def direct_mpiio_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: files shared through MPI-IO without a library above it. Return why there are none, or None."""
    return _why_none(profile, DIRECT)


def _why_none(profile: Profile, layers: Collection[str]) -> str | None:
    if not any(interface.layer == "mpiio" for interface in profile.interfaces or ()):
        return "no app uses MPI-IO"
    return None if mpiio_uses(profile, layers) else "no file is shared by several processes through MPI-IO"


def mpiio_uses(profile: Profile, layers: Collection[str] = ABOVE) -> list[Use]:
    """Files by app and folder."""
    mpiio = {
        interface.app: (number, interface)
        for number, interface in enumerate(profile.interfaces or ())
        if interface.layer == "mpiio"
    }
    shared = data_files(profile, lambda file: file.access == "shared" and file.interface in layers)
    return [
        Use(app, *mpiio[app.name], folder, items)
        for app, folder, items in by_folder(shared, profile, among=mpiio)
        if app is not None and app.name in mpiio and app.processes > 1
    ]


def set_hints(layer: Interface, hints: Collection[str]) -> dict[str, str]:
    """Those of `hints` that the program itself sets. They override the environment."""
    return {key: value for key, value in (layer.hints or {}).items() if key in hints}


def collective_share(use: Use, profile: Profile, *, reads: bool) -> float | None:
    """Share of collective calls in the data calls of one direction, or of both if the calls' names are unknown."""
    part = collective_part(use.app, profile, reads=reads)
    return use.layer.collective_share if part is None else part


def calls_collectively_later(use: Use, profile: Profile) -> bool:
    """True if the program calls non-blocking collective functions (MPI_File_iwrite_all)."""
    return any(
        name.startswith("MPI_File_i") and name.removesuffix("_c").endswith("_all")
        for trace in profile.traces
        if trace.app == use.app.name
        for name in trace.functions
    )


def sieves(use: Use, profile: Profile, *, reads: bool) -> bool:
    """True if MPI-IO moves several times what independent calls request, because pieces have holes between them."""
    factors = use.layer.amplification
    factor = None if factors is None else factors.read if reads else factors.written
    share = collective_share(use, profile, reads=reads)
    return factor is not None and factor >= _SIEVED and share is not None and share < _MOSTLY


def leaves_sieving(path: str, profile: Profile, system: System) -> bool:
    """True if a file is on NFS or VAST, for which sites ask to keep data sieving on (CSCS documentation)."""
    disk = system.file_system_for(path)
    return (disk.type if disk is not None else profile.storage.shared.type) in _NETWORK_FILES


def in_mpiio_s(use: Use, items: list[Item]) -> float:
    """Seconds of the run in MPI-IO calls on these files, including exchange and waiting."""
    times = (use.app.library_time_s or {}).get("mpiio")
    if times is None:
        return data_s(items, items, use.app)
    moved = sum((i.file.io.bytes.read or 0) + (i.file.io.bytes.written or 0) for i in items)
    total = use.layer.bytes.total
    return times.slowest * (min(1.0, moved / total) if total else 1.0)
