"""The largest array of a file: by its header, or by h5py (HDF5, and netCDF-4 with it) where that is installed."""

from __future__ import annotations

from pathlib import Path

from vani.collect.arrays import Array, array_of_header
from vani.schema.formats import HEAD_BYTES, format_of_head

__all__ = ["array_of"]


def array_of(path: Path, file_format: str) -> Array | None:
    """The largest array of the file; None where its format has none or is not read, or its header is damaged.

    Raises
    ------
    OSError
        The file cannot be read.
    NotInstalled
        h5py is missing.
    """
    if file_format in ("hdf5", "netcdf") and _is_hdf5(path):
        from vani.collect.hdf5 import hdf5_array  # noqa: PLC0415 - only such files need it

        return hdf5_array(path, file_format)
    return array_of_header(path, file_format)


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        return format_of_head(file.read(HEAD_BYTES)) == "hdf5"
