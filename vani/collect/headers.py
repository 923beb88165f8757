"""A file's arrays, from its header: NumPy, FITS and classic netCDF.

Sources: numpy.lib.format; FITS Standard 4.0, sections 3, 4.4 and 7.1; "NetCDF Classic Format Specification";
APPNOTE.TXT of PKWARE, section 4.3.7 (local file header).

Files may be damaged or malicious: counts and positions are checked against the size before values are read.
"""

from __future__ import annotations

import ast
import math
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

_HEAD_BYTES: Final = 1 << 18
_MAX_ITEMS: Final = 10_000
_MAX_RANK: Final = 1024
_BLOCK: Final = 2880
"""Block size of FITS in bytes: headers and data begin at multiples of it."""


@dataclass(frozen=True)
class Stored:
    """The largest array of a file, and the location of its values."""

    shape: tuple[int, ...]
    type: np.dtype | None
    """None if numpy has no such type."""
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


def stored_array(path: Path, file_format: str) -> Stored | None:
    """The largest array of the file; None for other formats and damaged files.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    read = {"npy": _npy, "npz": npz_array, "fits": fits_array, "netcdf": _netcdf}.get(file_format)
    if read is None:
        return None
    with path.open("rb") as file:
        try:
            array = read(file)
        except (
            *(ValueError, SyntaxError, struct.error, IndexError, KeyError, TypeError, OverflowError),
            *(MemoryError, RecursionError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
            EOFError,
        ):
            return None
        return None if array is None else _inside(array, file.seek(0, 2))


def _inside(array: Stored, size: int) -> Stored:
    """Drop the location of values that would not be inside the file."""
    if array.type is None or array.member is not None:
        return array
    piece = array.piece or array.count
    pieces = -(-array.count // piece) if piece else 0
    last = array.begin + max(pieces - 1, 0) * array.stride + min(piece, array.count) * array.type.itemsize
    return array if 0 <= array.begin <= last <= size else replace(array, type=None)


def _npy(file: BinaryIO) -> Stored | None:
    return npy_array(file.read(_HEAD_BYTES))


def npy_array(head: bytes) -> Stored | None:
    """Parse the header of a `.npy` file, a Python dictionary as text."""
    if not head.startswith(b"\x93NUMPY"):
        return None
    length, start = (
        (struct.unpack_from("<H", head, 8)[0], 10)
        if head[6] == 1
        else (struct.unpack_from("<I", head, 8)[0], 12)
    )
    if length > 1 << 16:
        return None
    text = head[start : start + length].decode("latin-1").strip()
    # Python 2 wrote long integers as 3L.
    header = ast.literal_eval(re.sub(r"\b(\d+)L\b", r"\1", text))
    shape = header.get("shape") if isinstance(header, dict) else None
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and size >= 0 for size in shape):
        return None
    type_ = _type(header.get("descr"))
    order = ", Fortran order" if header.get("fortran_order") is True and len(shape) > 1 else ""
    return Stored(shape, type_, 1, f"npy{_endian(type_)}{order}", start + length)


def _type(descr: object) -> np.dtype | None:
    try:
        return np.dtype(descr)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError, SyntaxError):
        return None


def _endian(type_: np.dtype | None) -> str:
    if type_ is None or type_.itemsize < 2 or type_.kind not in "fiuc":
        return ""
    return ", big-endian" if type_.newbyteorder("S").str.startswith("<") else ", little-endian"


def npz_array(file: BinaryIO) -> Stored | None:
    """The largest array of a `.npz` file, which is a zip file of `.npy` files."""
    best: tuple[Stored, zipfile.ZipInfo] | None = None
    with zipfile.ZipFile(file) as archive:
        members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
        for member in members[:_MAX_ITEMS]:
            with archive.open(member) as inside:
                array = npy_array(inside.read(1 << 16))
            if array is not None and (best is None or array.count > best[0].count):
                best = array, member
    if best is None:
        return None
    array, member = best
    encoding = array.encoding.replace("npy", "npz", 1)
    if member.compress_type != zipfile.ZIP_STORED:
        kind = "deflate" if member.compress_type == zipfile.ZIP_DEFLATED else "compressed"
        return replace(array, datasets=len(members), encoding=f"{encoding}, {kind}", member=member.filename)
    file.seek(member.header_offset)
    name, extra = struct.unpack_from("<HH", file.read(30), 26)
    begin = member.header_offset + 30 + name + extra + array.begin
    return replace(array, datasets=len(members), encoding=encoding, begin=begin)


def fits_array(file: BinaryIO) -> Stored | None:
    """The largest image of a FITS file, slowest axis first as in C; tables are not arrays."""
    best: Stored | None = None
    images, at = 0, 0
    for _hdu in range(_MAX_ITEMS):
        header, end = _fits_header(file, at)
        if "BITPIX" not in header or "NAXIS" not in header:
            break
        axes = [int(header[f"NAXIS{n}"]) for n in range(1, min(int(header["NAXIS"]), _MAX_RANK) + 1)]
        if any(axis < 0 for axis in axes):
            return None
        bits = int(header["BITPIX"])
        is_image = "XTENSION" not in header or header["XTENSION"].strip("' ") == "IMAGE"
        values = math.prod(axes) if axes else 0
        if is_image and values and bits in _FITS_TYPES:
            images += 1
            image = Stored(
                shape=tuple(reversed(axes)),
                type=np.dtype(_FITS_TYPES[bits]),
                datasets=1,
                encoding="fits, big-endian",
                begin=end,
                scale=float(header.get("BSCALE", "1").replace("D", "E")),
                zero=float(header.get("BZERO", "0").replace("D", "E")),
                fill=(float(header["BLANK"]),) if "BLANK" in header and bits > 0 else (),
            )
            best = image if best is None or image.count > best.count else best
        groups, extra = int(header.get("GCOUNT", "1")), int(header.get("PCOUNT", "0"))
        data = abs(bits) // 8 * groups * (extra + values) if axes else 0
        if data < 0:
            break
        at = end + -(-data // _BLOCK) * _BLOCK
    return None if best is None else replace(best, datasets=images)


_FITS_TYPES: Final = {8: ">u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}


def _fits_header(file: BinaryIO, at: int) -> tuple[dict[str, str], int]:
    """Card values of the header at a byte offset, and the header's end; no values if there is no header."""
    header: dict[str, str] = {}
    file.seek(at)
    for block in range(_MAX_ITEMS):
        text = file.read(_BLOCK).decode("ascii", "replace")
        for start in range(0, len(text) - 79, 80):
            card = text[start : start + 80]
            if card.rstrip() == "END":
                return header, at + (block + 1) * _BLOCK
            if match := re.match(r"([A-Z0-9_-]+) *= +('[^']*'|[^/ ]+)", card):
                header.setdefault(match[1], match[2])
        if len(text) < _BLOCK:
            break
    return {}, at


class _Header:
    """A cursor over the header of a classic netCDF file (big-endian)."""

    def __init__(self, head: bytes) -> None:
        self.head, self.at = head, 4
        self.is_wide = head[3] == 5

    def number(self, *, wide: bool) -> int:
        value: int = struct.unpack_from(">q" if wide else ">i", self.head, self.at)[0]
        self.at += 8 if wide else 4
        return value

    def count(self) -> int:
        value = self.number(wide=self.is_wide)
        if not 0 <= value <= _MAX_ITEMS:
            raise ValueError("too many")
        return value

    def skip(self, size: int) -> bytes:
        begin = self.at
        self.at += -(-size // 4) * 4
        if size < 0 or self.at > len(self.head):
            raise ValueError("no size, or the header is longer than the bytes read")
        return self.head[begin : begin + size]

    def fill_values(self) -> tuple[float, ...]:
        """Skip a list of attributes, and return its fill values."""
        fills: list[float] = []
        self.number(wide=False)
        for _ in range(self.count()):
            name = self.skip(self.count())
            type_ = _NETCDF_TYPES[self.number(wide=False)]
            values = self.skip(type_.itemsize * self.number(wide=self.is_wide))
            if name in (b"_FillValue", b"missing_value") and type_.kind != "S":
                fills += np.frombuffer(values, type_).astype(float).tolist()
        return tuple(fills)


_NETCDF_TYPES: Final = {
    1: np.dtype("i1"), 2: np.dtype("S1"), 3: np.dtype(">i2"), 4: np.dtype(">i4"), 5: np.dtype(">f4"),
    6: np.dtype(">f8"), 7: np.dtype("u1"), 8: np.dtype(">u2"), 9: np.dtype(">u4"), 10: np.dtype(">i8"),
    11: np.dtype(">u8"),
}  # fmt: skip
_NETCDF_FILL: Final = {
    3: -32767.0, 4: -2147483647.0, 5: float(np.float32(9.9692099683868690e36)), 6: 9.9692099683868690e36,
    8: 65535.0, 9: 4294967295.0, 10: float(-9223372036854775806), 11: float(18446744073709551614),
}  # fmt: skip
"""Values in a file where nothing was written (netcdf.h, NC_FILL_*); bytes have none."""


def _netcdf(file: BinaryIO) -> Stored | None:
    return netcdf_array(file.read(_HEAD_BYTES))


def netcdf_array(head: bytes) -> Stored | None:
    """The largest variable of a classic netCDF file (versions 1, 2, 5), from its header.

    The record dimension has the number of records in the header.
    """
    if head[:3] != b"CDF" or head[3] not in (1, 2, 5):
        return None
    header = _Header(head)
    records = max(header.number(wide=header.is_wide), 0)
    header.number(wide=False)
    lengths = []
    for _ in range(header.count()):
        header.skip(header.count())
        lengths.append(header.number(wide=header.is_wide))
    header.fill_values()
    header.number(wide=False)
    variables: list[tuple[Stored, bool]] = []
    for _ in range(header.count()):
        header.skip(header.count())
        rank = header.count()
        if rank > _MAX_RANK:
            return None
        axes = [header.number(wide=header.is_wide) for _ in range(rank)]
        fills = header.fill_values()
        code = header.number(wide=False)
        # The size fields of variables are too narrow for large ones, so sizes are derived from the dimensions.
        header.number(wide=header.is_wide)
        begin = header.number(wide=head[3] != 1)
        if any(not 0 <= axis < len(lengths) for axis in axes):
            return None
        is_record = bool(axes) and lengths[axes[0]] == 0
        shape = [lengths[axis] or records for axis in axes]
        fill = (*fills, _NETCDF_FILL[code]) if code in _NETCDF_FILL else fills
        version = {1: "classic", 2: "64-bit offset", 5: "64-bit data"}[head[3]]
        stored = Stored(
            tuple(shape), _NETCDF_TYPES[code], 1, f"netcdf ({version}), big-endian", begin, fill=fill
        )
        variables.append((stored, is_record))
    if any(size < 0 for stored, _ in variables for size in stored.shape):
        return None
    best = max(variables, key=lambda variable: (variable[0].count, len(variable[0].shape)), default=None)
    if best is None:
        return None
    stored, is_record = best
    if is_record:
        stored = replace(
            stored,
            piece=math.prod(stored.shape[1:]),
            stride=_record_bytes([s for s, record in variables if record]),
        )
    return replace(stored, datasets=len(variables))


def _record_bytes(variables: list[Stored]) -> int:
    """Bytes per record: each variable's part, padded to 4 bytes unless there is only one."""
    parts = [
        math.prod(variable.shape[1:]) * (variable.type.itemsize if variable.type is not None else 0)
        for variable in variables
    ]
    return parts[0] if len(parts) == 1 else sum(-(-part // 4) * 4 for part in parts)
