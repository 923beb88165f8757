"""Who uses MPI-IO for which files: what all rules about MPI-IO and parallel HDF5 begin with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Item, by_folder, data_files

if TYPE_CHECKING:
    from vani.schema.profile import App, Interface, Profile

__all__ = ["ABOVE", "DIRECT", "Use", "set_hints", "uses"]

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


def uses(profile: Profile, layers: Collection[str] = ABOVE) -> list[Use] | str:
    """Files by app and folder; a sentence where there are none."""
    mpiio = {one.app: (i, one) for i, one in enumerate(profile.interfaces or ()) if one.layer == "mpiio"}
    if not mpiio:
        return "no app uses MPI-IO"
    shared = data_files(profile, lambda file: file.access == "shared" and file.interface in layers)
    found = [
        Use(app, *mpiio[app.name], folder, items)
        for app, folder, items in by_folder(shared, profile, among=mpiio)
        if app is not None and app.name in mpiio and app.processes > 1
    ]
    return found or "no file is shared by several processes through MPI-IO"


def set_hints(layer: Interface, hints: Collection[str]) -> dict[str, str]:
    """Of `hints`, those that the program sets itself: they go before those of the environment."""
    return {key: value for key, value in (layer.hints or {}).items() if key in hints}
