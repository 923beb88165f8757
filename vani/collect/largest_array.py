"""The largest array of a file, from its header, or with h5py (HDF5, including netCDF-4) if installed."""

from __future__ import annotations

import time
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.collect.arrays import MOST_VALUES, Array, NotInstalled, array_of_header
from vani.schema.dataset_facts import HEAD_BYTES, FormatAttributes, format_of_head

_MAX_OBJECTS: Final = 10_000
_FILL: Final = ("_FillValue", "missing_value")


def hdf5_array(path: Path, file_format: str) -> Array | None:
    """The largest dataset of the file; None if it has none, or its structure is damaged.

    Raises
    ------
    OSError
        The file cannot be read.
    NotInstalled
        h5py is missing.
    """
    h5py = _h5py()
    with path.open("rb"):
        pass  # The library's message does not show whether the file or its content is wrong.
    try:
        with h5py.File(path, "r", locking=False) as file:
            datasets: list[Any] = []

            def look(_: str, item: Any) -> bool | None:
                if isinstance(item, h5py.Dataset) and item.shape is not None:
                    datasets.append(item)
                return True if len(datasets) >= _MAX_OBJECTS else None

            file.visititems(look)
            if not datasets:
                return None
            best = max(datasets, key=lambda dataset: (prod(dataset.shape), len(dataset.shape)))
            return _describe(path, best, len(datasets), file_format)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None


def _h5py() -> Any:
    try:
        import h5py  # noqa: PLC0415
    except ImportError as error:
        raise NotInstalled("h5py is not installed (pip install 'vani-io[collect]')") from error
    return h5py


def _describe(path: Path, dataset: Any, datasets: int, file_format: str) -> Array:
    type_ = dataset.dtype
    words = ["hdf5" if file_format == "hdf5" else "netcdf (hdf5)"]
    if type_.kind in "fiuc" and type_.itemsize > 1:
        words.append("big-endian" if type_.newbyteorder("S").str.startswith("<") else "little-endian")
    words += [dataset.compression] if dataset.compression else []
    words += ["shuffle"] if dataset.shuffle else []
    shape = tuple(int(length) for length in dataset.shape)
    attributes = FormatAttributes(
        datasets=datasets,
        dims=len(shape),
        type="structured" if type_.kind == "V" else "text" if type_.kind in "SO" else type_.name,
        encoding=", ".join(words),
        chunks=[int(length) for length in dataset.chunks or ()],
    )
    fill = [
        float(value)
        for name in _FILL
        if name in dataset.attrs and type_.kind in "fiu"
        for value in np.ravel(dataset.attrs[name]).tolist()
        if isinstance(value, int | float)
    ]
    count = min(prod(shape), MOST_VALUES) if type_.kind in "fiu" else 0
    return Array(shape, attributes, count, partial(_values, path, dataset.name, tuple(fill)))


def _values(
    path: Path, name: str, fill: tuple[float, ...], places: NDArray[np.int64], ends_at: float
) -> NDArray[np.float64]:
    """See `Array.read`; value by value, because any other selection reads all chunks between the first and the last."""
    numbers: list[float] = []
    try:
        with _h5py().File(path, "r", locking=False) as file:
            dataset = file[name]
            for place in places.tolist():
                if time.monotonic() > ends_at:
                    break
                numbers.append(dataset[tuple(int(i) for i in np.unravel_index(place, dataset.shape))])
    except (RuntimeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"cannot be read ({error})") from error
    values = np.array(numbers, np.float64)
    return values[~np.isin(values, fill)] if fill else values


def array_of(path: Path, file_format: str) -> Array | None:
    """The largest array of the file; None if its format has none or is not supported, or its header is damaged.

    Raises
    ------
    OSError
        The file cannot be read.
    NotInstalled
        h5py is missing.
    """
    if file_format in ("hdf5", "netcdf") and _is_hdf5(path):
        return hdf5_array(path, file_format)
    return array_of_header(path, file_format)


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        return format_of_head(file.read(HEAD_BYTES)) == "hdf5"
