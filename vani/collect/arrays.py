"""The largest array of a file: its description, and its values at any position.

Libraries read the headers, where installed: numpy (`.npy`, `.npz`), astropy (FITS), scipy (classic netCDF) and
h5py (HDF5, including netCDF-4). Values are read at their positions in the file; h5py reads those of HDF5 files.

Files may be damaged or malicious: the bytes of headers are bounded, and counts and positions are checked against the
size of the file before values are read.
"""

import io
import math
import os
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.schema.dataset_facts import HEAD_BYTES, FormatAttributes, format_of_head

Read = Callable[[NDArray[np.int64], float], NDArray[np.float64]]

MAX_VALUES: Final = 1 << 50
"""Maximum number of values of an array that are counted: sizes that no file has must not overflow sums."""
_MAX_OBJECTS: Final = 10_000
_MAX_HEADER_BYTES: Final = 16 << 20
"""Maximum bytes of all headers in a file."""
_MAX_MEMBER_HEADER_BYTES: Final = 1 << 17
_MAX_READ_AT_ONCE: Final = 4 << 20
"""Arrays of up to this many bytes are read at once, and not value by value."""
_MAX_INFLATED: Final = 16 << 20
"""Maximum bytes of a compressed array that are examined, from its start."""
_FILL: Final = ("_FillValue", "missing_value")
_NETCDF_FILL: Final = {"i2": -32767.0, "i4": -2147483647.0, "f4": float(np.float32(9.969209968386869e36)),
                       "f8": 9.969209968386869e36}  # fmt: skip
"""Values in a classic netCDF file where nothing was written (netcdf.h, NC_FILL_*); bytes have none."""


class NotExamined(Exception):  # noqa: N818 - a fact about the machine, which goes into `unknown`
    """A format needs a missing library, or none reads it; the text names the reason."""


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


@dataclass(frozen=True)
class Stored:
    """An array whose values are at known positions of the file."""

    shape: tuple[int, ...]
    type: np.dtype | None
    """None if its values would not be inside the file."""
    datasets: int
    """Number of arrays in the file."""
    encoding: str
    begin: int
    """Byte offset of the first value."""
    piece: int | None = None
    """Number of consecutive values in the file; None if all are consecutive."""
    stride: int = 0
    """Bytes from the start of one such run to the next."""
    scale: float = 1.0
    zero: float = 0.0
    """A value is `zero + scale * stored`."""
    fill: tuple[float, ...] = ()
    """Stored values that mean missing."""
    member: str | None = None
    """Member of a zip file that must be inflated to read the array."""

    @property
    def count(self) -> int:
        """Number of values in the array."""
        return math.prod(self.shape)


def array_of(path: Path, file_format: str) -> Array | None:
    """The largest array of the file; None if its format has none or is not supported, or its header is damaged.

    Raises
    ------
    OSError
        The file cannot be read.
    NotExamined
        The library that reads the format is missing, or none reads it.
    """
    with path.open("rb") as file:
        is_hdf5 = file_format in ("hdf5", "netcdf") and format_of_head(file.read(HEAD_BYTES)) == "hdf5"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if is_hdf5:
                return _hdf5_array(path, file_format)
            stored = stored_array(path, file_format)
    except NotExamined:
        raise
    except Exception as error:
        # Libraries raise anything if content is damaged. Only errors of the system have a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return None
    return None if stored is None else _located(path, stored)


def raw_array(path: Path, size: int, type_: np.dtype) -> Array:
    """A file of `size` bytes that contains only values of one type."""
    return _located(path, Stored((size // type_.itemsize,), type_, 1, "", 0))


def stored_array(path: Path, file_format: str) -> Stored | None:
    """The largest array of a NumPy, FITS or classic netCDF file; None for other formats, or if there is none.

    Raises
    ------
    Exception
        As numpy, zipfile, astropy or scipy do if the content is damaged.
    """
    read = {"npy": _npy, "npz": _npz, "fits": _fits, "netcdf": _netcdf}.get(file_format)
    if read is None:
        return None
    # zipfile reads the end of a file, and does so by itself in bounded pieces.
    with path.open("rb") if file_format == "npz" else _Headers(path) as file:
        size = os.fstat(file.fileno()).st_size
        array = read(file)
    if array is None or array.type is None or array.member is not None:
        return array
    piece = array.piece or array.count
    pieces = -(-array.count // piece) if piece else 0
    last = array.begin + max(pieces - 1, 0) * array.stride + min(piece, array.count) * array.type.itemsize
    return array if 0 <= array.begin <= last <= size else replace(array, type=None)


class _Headers(io.FileIO):
    """A file of which only so many bytes are read: a damaged header may state any length."""

    left = _MAX_HEADER_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= self.left:
            raise ValueError("the header is too long")
        self.left -= size
        return super().read(size) or b""


def _npy(file: IO[bytes]) -> Stored | None:
    """The array of a `.npy` file, or of a member of a `.npz` file, from its start."""
    major, _ = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, is_fortran, type_ = read(file, max_header_size=1 << 16)
    if any(size < 0 for size in shape):
        return None
    order = ", Fortran order" if is_fortran and len(shape) > 1 else ""
    return Stored(shape, type_, 1, f"npy{_endian(type_)}{order}", file.tell())


def _npz(file: IO[bytes]) -> Stored | None:
    """The largest array of a `.npz` file, which is a zip file of `.npy` files."""
    best: tuple[Stored, zipfile.ZipInfo] | None = None
    with zipfile.ZipFile(file) as archive:
        members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
        for member in members[:_MAX_OBJECTS]:
            with archive.open(member) as inside:
                # Behind the member's own header, which has just been read.
                begin = file.tell()
                array = _npy(io.BytesIO(inside.read(_MAX_MEMBER_HEADER_BYTES)))
            if array is not None and member.compress_type == zipfile.ZIP_STORED:
                array = replace(array, begin=begin + array.begin)
            if array is not None and (best is None or array.count > best[0].count):
                best = array, member
    if best is None:
        return None
    array, member = best
    encoding = array.encoding.replace("npy", "npz", 1)
    if member.compress_type == zipfile.ZIP_STORED:
        return replace(array, datasets=len(members), encoding=encoding)
    kind = "deflate" if member.compress_type == zipfile.ZIP_DEFLATED else "compressed"
    return replace(array, datasets=len(members), encoding=f"{encoding}, {kind}", member=member.filename)


def _fits(file: IO[bytes]) -> Stored | None:
    """The largest image of a FITS file, slowest axis first as in C; tables are not arrays."""
    fits = _library("astropy.io.fits", "astropy")
    images: list[Stored] = []
    for _ in range(_MAX_OBJECTS):
        try:
            header = fits.Header.fromfile(file, padding=False)
        except (EOFError, OSError):
            break
        begin = file.tell()
        shape = tuple(int(header[f"NAXIS{axis}"]) for axis in range(int(header["NAXIS"]), 0, -1))
        if any(size < 0 for size in shape):
            return None
        bits = int(header["BITPIX"])
        if header.get("XTENSION", "IMAGE").strip() == "IMAGE" and shape and math.prod(shape):
            images.append(
                Stored(
                    shape=shape,
                    type=np.dtype(f">{'f' if bits < 0 else 'u' if bits == 8 else 'i'}{abs(bits) // 8}"),
                    datasets=1,
                    encoding="fits, big-endian",
                    begin=begin,
                    scale=float(header.get("BSCALE", 1)),
                    zero=float(header.get("BZERO", 0)),
                    fill=(float(header["BLANK"]),) if "BLANK" in header and bits > 0 else (),
                )
            )
        if header.data_size < 0:
            break
        file.seek(begin + header.data_size_padded)
    largest = max(images, key=lambda image: image.count, default=None)
    return None if largest is None else replace(largest, datasets=len(images))


def _netcdf(file: IO[bytes]) -> Stored | None:
    """The largest variable of a classic netCDF file; the record dimension has the number of records in the header."""
    version = file.read(4)[3:]
    if version == b"\5":
        raise NotExamined("netCDF's 64-bit data format (CDF-5) is not read")
    file.seek(0)
    # Mapped, because scipy otherwise reads all values into memory. Only headers are read, never a mapped value, so
    # a file that becomes shorter does no harm.
    with _library("scipy.io").netcdf_file(file, mmap=True) as opened:
        return _largest_variable(opened)


def _largest_variable(opened: Any) -> Stored | None:
    variables = opened.variables.values()
    best = max(variables, key=lambda variable: (math.prod(variable.data.shape), variable.data.ndim), default=None)
    if best is None:
        return None
    data = whole = best.data
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    version = {1: "classic", 2: "64-bit offset"}[int(opened.version_byte)]
    stored = Stored(
        shape=tuple(map(int, data.shape)),
        type=data.dtype,
        datasets=len(variables),
        encoding=f"netcdf ({version}), big-endian",
        begin=data.ctypes.data - whole.ctypes.data,
        fill=(*_fill_values(vars(best)), *filter(None, [_NETCDF_FILL.get(data.dtype.str[1:])])),
    )
    return replace(stored, piece=math.prod(data.shape[1:]), stride=data.strides[0]) if best.isrec else stored


def _hdf5_array(path: Path, file_format: str) -> Array | None:
    """The largest dataset of the file; None if it has none."""
    h5py = _library("h5py")
    datasets: list[Any] = []

    def look(_: str, item: Any) -> bool | None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            datasets.append(item)
        return True if len(datasets) >= _MAX_OBJECTS else None

    with h5py.File(path, "r", locking=False) as file:
        file.visititems(look)
        if not datasets:
            return None
        best = max(datasets, key=lambda dataset: (math.prod(dataset.shape), len(dataset.shape)))
        type_, shape = best.dtype, tuple(map(int, best.shape))
        endian, chunks = _endian(type_), [int(length) for length in best.chunks or ()]
        library = "hdf5" if file_format == "hdf5" else "netcdf (hdf5)"
        encoding = ", ".join(filter(None, (library + endian, best.compression, best.shuffle and "shuffle")))
        fill = _fill_values(best.attrs) if type_.kind in "fiu" else ()
        read = partial(_hdf5_values, path, best.name, fill)
        name = "text" if type_.kind in "SO" else _type_name(type_)
    attributes = FormatAttributes(
        datasets=len(datasets), dims=len(shape), type=name, encoding=encoding, chunks=chunks
    )
    return Array(shape, attributes, _countable(type_, shape), read)


def _hdf5_values(
    path: Path, name: str, fill: tuple[float, ...], places: NDArray[np.int64], ends_at: float
) -> NDArray[np.float64]:
    """See `Array.read`; value by value, because any other selection reads all chunks between the first and the last."""
    numbers: list[float] = []
    try:
        with _library("h5py").File(path, "r", locking=False) as file:
            dataset = file[name]
            for place in places.tolist():
                if time.monotonic() > ends_at:
                    break
                numbers.append(dataset[tuple(int(i) for i in np.unravel_index(place, dataset.shape))])
    except (RuntimeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"cannot be read ({error})") from error
    values = np.array(numbers, np.float64)
    return values[~np.isin(values, fill)] if fill else values


def _library(module: str, package: str | None = None) -> Any:
    """A module of an optional library, which is slow to load."""
    try:
        return import_module(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        raise NotExamined(f"{name} is not installed (pip install 'vani-io[collect]')") from error


def _fill_values(attributes: Mapping[str, Any]) -> tuple[float, ...]:
    """The numbers that mean a missing value."""
    values = (value for name in _FILL for value in np.ravel(attributes.get(name, ())).tolist())
    return tuple(float(value) for value in values if isinstance(value, int | float))


def _endian(type_: np.dtype) -> str:
    if type_.itemsize < 2 or type_.kind not in "fiuc":
        return ""
    return ", big-endian" if type_.newbyteorder("S").str.startswith("<") else ", little-endian"


def _type_name(type_: np.dtype) -> str:
    return "structured" if type_.kind == "V" else type_.name


def _countable(type_: np.dtype | None, shape: tuple[int, ...]) -> int:
    return min(math.prod(shape), MAX_VALUES) if type_ is not None and type_.kind in "fiu" else 0


def _located(path: Path, stored: Stored) -> Array:
    type_ = stored.type
    name = None if type_ is None else _type_name(type_)
    # FITS has no unsigned integers except bytes: they are stored as signed ones, and half of the range is added.
    if type_ is not None and type_.kind == "i" and (stored.scale, stored.zero) == (1, 2.0 ** (8 * type_.itemsize - 1)):
        name = f"u{name}"
    attributes = FormatAttributes(
        datasets=stored.datasets, dims=len(stored.shape), type=name, encoding=stored.encoding, chunks=[]
    )
    count = _countable(type_, stored.shape)
    if stored.member is not None and type_ is not None and count:
        count = min(count, _MAX_INFLATED // type_.itemsize)
    return Array(stored.shape, attributes, count, partial(_values, path, stored))


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
        if end - begin <= _MAX_READ_AT_ONCE:
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
