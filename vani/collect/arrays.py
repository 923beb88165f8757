"""An array in a file: its description, and its values at any position, located by its header or only by its type."""

from __future__ import annotations

import os
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.collect.headers import Stored, stored_array
from vani.schema.dataset_facts import FormatAttributes

Read = Callable[[NDArray[np.int64], float], NDArray[np.float64]]

MOST_VALUES: Final = 1 << 50
"""Maximum number of values of an array that are counted: sizes that no file has must not overflow sums."""
_READ_WHOLE: Final = 4 << 20
"""Arrays of up to this many bytes are read at once, and not value by value."""
_INFLATED: Final = 16 << 20
"""Maximum bytes of a compressed array that are examined, from its start."""


class NotInstalled(Exception):  # noqa: N818 - a fact about the machine, which goes into `unknown`
    """A format needs a missing library; the text names it."""


@dataclass(frozen=True)
class Array:
    """The largest array of a file."""

    shape: tuple[int, ...]
    attributes: FormatAttributes
    count: int
    """Number of values that `read` can reach, from the first; 0 if their type cannot be read."""
    read: Read
    """Reads values at ascending positions, slowest axis first, until a `time.monotonic` time; missing-value markers are
    omitted. Raises OSError or ValueError.
    """


def array_of_header(path: Path, file_format: str) -> Array | None:
    """The largest array according to the header of NumPy, FITS or classic netCDF; None if there is none or it is
    damaged.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    stored = stored_array(path, file_format)
    return None if stored is None else _array(path, stored)


def raw_array(path: Path, size: int, type_: np.dtype) -> Array:
    """A file of `size` bytes that contains only values of one type."""
    return _array(path, Stored((size // type_.itemsize,), type_, 1, "", 0))


def _array(path: Path, stored: Stored) -> Array:
    type_ = stored.type
    attributes = FormatAttributes(
        datasets=stored.datasets,
        dims=len(stored.shape),
        type=None if type_ is None else _type_name(stored, type_),
        encoding=stored.encoding,
        chunks=[],
    )
    count = min(stored.count, MOST_VALUES) if type_ is not None and type_.kind in "fiu" else 0
    if stored.member is not None and type_ is not None:
        count = min(count, _INFLATED // type_.itemsize) if count else 0
    return Array(stored.shape, attributes, count, partial(_values, path, stored))


def _type_name(stored: Stored, type_: np.dtype) -> str:
    if type_.kind == "V":
        return "structured"
    # FITS has no unsigned integers except bytes: they are stored as signed ones, and half of the range is added.
    if type_.kind == "i" and stored.scale == 1 and stored.zero == 2.0 ** (8 * type_.itemsize - 1):
        return f"u{type_.name}"
    return type_.name


def _values(path: Path, stored: Stored, places: NDArray[np.int64], ends_at: float) -> NDArray[np.float64]:
    """See `Array.read`."""
    type_ = stored.type
    if type_ is None or not len(places):
        return np.empty(0)
    is_packed = stored.member is not None
    raw = _inflated(path, stored, type_, places) if is_packed else _read(path, stored, type_, places, ends_at)
    # Bytes that are not of this type after all may be signalling NaNs.
    with np.errstate(invalid="ignore"):
        values = raw.astype(np.float64)
    given = ~np.isin(values, stored.fill) if stored.fill else np.ones(len(values), np.bool_)
    scaled: NDArray[np.float64] = values[given] * stored.scale + stored.zero
    return scaled


def _read(
    path: Path, stored: Stored, type_: np.dtype, places: NDArray[np.int64], ends_at: float
) -> NDArray[np.generic]:
    size = type_.itemsize
    at = stored.begin + places * size
    if stored.piece:
        at = stored.begin + places // stored.piece * stored.stride + places % stored.piece * size
    with path.open("rb") as file:
        begin, end = int(at[0]), int(at[-1]) + size
        if end - begin <= _READ_WHOLE:
            some = np.frombuffer(os.pread(file.fileno(), end - begin, begin), np.uint8)
            # The file may have become shorter since its header was read.
            offsets = (at - begin)[at - begin + size <= len(some)]
            picked = np.ascontiguousarray(some[offsets[:, None] + np.arange(size)])
            return picked.reshape(-1).view(type_)
        parts = []
        for place in at.tolist():
            if time.monotonic() > ends_at:
                break
            parts.append(os.pread(file.fileno(), size, place))
    return np.frombuffer(b"".join(part for part in parts if len(part) == size), type_)


def _inflated(path: Path, stored: Stored, type_: np.dtype, places: NDArray[np.int64]) -> NDArray[np.generic]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(stored.member or "") as inside:
            data = inside.read(stored.begin + (int(places[-1]) + 1) * type_.itemsize)[stored.begin :]
    except (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"cannot be inflated ({error})") from error
    whole = np.frombuffer(data[: len(data) // type_.itemsize * type_.itemsize], type_)
    return whole[places[places < len(whole)]]
