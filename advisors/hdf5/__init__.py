"""Rules about HDF5 files and data sets, and the files that apps access through HDF5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.access_table import layers_of
from vani.advisors.data_files import Access, Item, LayerGroup, by_folder, data_files, not_used
from vani.advisors.rule import PartRule

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

CHUNK_CACHES: Final = ("H5Pset_chunk_cache", "H5Pset_cache", "nc_set_chunk_cache", "nc_set_var_chunk_cache")
"""Functions that set the size of a cache for chunks."""

_FORMATS: Final = frozenset({"hdf5", "netcdf"})
# Our choice: each chunk is written twice, as if two processes or two steps share it.
_AGAIN: Final = 2.0
# Our choice: most rewritten bytes were read before.
_READ_BACK: Final = 0.5


@dataclass(frozen=True)
class HDF5Files(LayerGroup):
    """Files of a folder that an app accesses through HDF5, or through NetCDF-4 above it."""

    mpiio: LayerGroup | None
    """The same files below HDF5; None if it is used without MPI-IO."""


def hdf5_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: files of HDF5. Return why there are none, or None if there are some."""
    if not any(interface.layer == "hdf5" for interface in profile.interfaces or ()):
        return not_used(profile, "HDF5")
    return None if hdf5_uses(profile) else "no data of a program is in a file of HDF5"


def hdf5_uses(profile: Profile) -> list[HDF5Files]:
    """Files by app and folder."""
    layers = {
        (interface.layer, interface.app): (number, interface)
        for number, interface in enumerate(profile.interfaces or ())
    }
    of_file = layers_of(profile)
    # Files of netCDF's classic format have calls of PnetCDF, or none of HDF5.
    items = data_files(
        profile, lambda file: file.format in _FORMATS and "pnetcdf" not in of_file.get(file.path, {})
    )
    uses = []
    for group in by_folder(items, profile, among={app for layer, app in layers if layer == "hdf5"}):
        app = group.app
        if app is None or ("hdf5", app.name) not in layers:
            continue
        number, layer = layers["hdf5", app.name]
        below, mpiio = layers.get(("mpiio", app.name), (-1, None))
        through_mpiio = None if mpiio is None else LayerGroup(app, group.folder, group.items, mpiio, below)
        uses.append(HDF5Files(app, group.folder, group.items, layer, number, through_mpiio))
    return uses


class HDF5Rule(PartRule):
    """A rule that judges the files of each folder that an app accesses through HDF5."""

    needs = ("interfaces", hdf5_files)

    def parts(self, profile: Profile) -> list[HDF5Files]:
        return hdf5_uses(profile)


def changes_chunks(use: HDF5Files, item: Item) -> bool:
    """True if HDF5 reads chunks back to change parts of them, or if the program itself reads as much."""
    writes = Access(item, reads=False)
    if not use.layer.data_representation.chunked or writes.times < _AGAIN:
        return False
    return (item.io.bytes.read or 0) >= _READ_BACK * (writes.bytes - writes.distinct)
