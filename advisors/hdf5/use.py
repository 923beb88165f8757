"""Files in the format of HDF5 that an app accesses through it: what all rules about HDF5 begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Item, by_folder, data_files

if TYPE_CHECKING:
    from vani.schema.profile import App, Interface, Profile

__all__ = ["Use", "uses"]

_LAYERS: Final = frozenset({"hdf5", "netcdf"})
_FORMATS: Final = frozenset({"hdf5", "netcdf"})


@dataclass(frozen=True)
class Use:
    """Files of one folder that an app accesses through HDF5, or through NetCDF-4 above it.

    `layer` is the app's HDF5 and `number` its place in the profile; `mpiio` and `mpiio_number` the MPI-IO below
    it, None where HDF5 is used without.
    """

    app: App
    number: int
    layer: Interface
    mpiio: Interface | None
    mpiio_number: int
    folder: str
    items: list[Item]

    @property
    def where(self) -> str:
        """Path of the layer in the profile."""
        return f"interfaces[{self.number}]"


def uses(profile: Profile) -> list[Use] | str:
    """Files by app and folder; a sentence where there are none."""
    layers = {(one.layer, one.app): (i, one) for i, one in enumerate(profile.interfaces or ())}
    if not any(layer == "hdf5" for layer, _ in layers):
        return "no app uses HDF5"
    # Libraries above HDF5 also look for configuration and lock files, which are none of its files.
    items = data_files(profile, lambda file: file.interface in _LAYERS and file.format in _FORMATS)
    found = []
    for app, folder, group in by_folder(items, profile, among={app for layer, app in layers if layer == "hdf5"}):
        if app is None or ("hdf5", app.name) not in layers:
            continue
        number, layer = layers["hdf5", app.name]
        below, mpiio = layers.get(("mpiio", app.name), (-1, None))
        found.append(Use(app, number, layer, mpiio, below, folder, group))
    return found or "no data of a program lies in a file of HDF5"
