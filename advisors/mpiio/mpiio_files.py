"""Files that apps share through MPI-IO, as all rules about MPI-IO see them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Item, by_folder, data_files

if TYPE_CHECKING:
    from vani.schema.profile import App, Interface, Profile
    from vani.schema.system import System

__all__ = ["ABOVE", "DIRECT", "Use", "direct_mpiio_files", "mpiio_files", "mpiio_uses", "set_hints"]

DIRECT: Final = frozenset({"mpiio", "pnetcdf"})
"""Layers whose data calls are those of MPI-IO, one for one."""

ABOVE: Final = DIRECT | {"hdf5", "netcdf"}
"""Layers that may lie above MPI-IO."""


@dataclass(frozen=True)
class Use:
    """Files of one folder that several processes of an app access through MPI-IO.

    `layer` is the app's MPI-IO and `number` its place in the profile.
    """

    app: App
    number: int
    layer: Interface
    folder: str
    items: list[Item]

    @property
    def where(self) -> str:
        """Path of the layer in the profile."""
        return f"interfaces[{self.number}]"


def mpiio_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Need of a rule: files shared through MPI-IO. The reason why there are none, None if there are some."""
    return _why_none(profile, ABOVE)


def direct_mpiio_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Need of a rule: files shared through MPI-IO without a library above it."""
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
    """Of `hints`, those that the program sets itself: they go before those of the environment."""
    return {key: value for key, value in (layer.hints or {}).items() if key in hints}
