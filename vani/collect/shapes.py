"""Shapes of arrays, where a file's first bytes tell them: NumPy, FITS and classic netCDF.

Sources: numpy.lib.format; FITS Standard 4.0, section 4.4.1; "NetCDF Classic Format Specification".
"""

from __future__ import annotations

import ast
import re
import struct
from math import prod
from pathlib import Path
from typing import Final

__all__ = ["dims_of", "fits_dims", "netcdf_dims", "npy_dims"]

_HEAD_BYTES: Final = 1 << 18
_MAX_ITEMS: Final = 10_000
_MAX_RANK: Final = 1024


def dims_of(path: Path, file_format: str) -> list[int] | None:
    """Shape of the (largest) array in the file; None for other formats and damaged files.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    read = {"npy": npy_dims, "fits": fits_dims, "netcdf": netcdf_dims}.get(file_format)
    if read is None:
        return None
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    try:
        return read(head)
    except (ValueError, SyntaxError, struct.error, IndexError, MemoryError, RecursionError):
        return None


def npy_dims(head: bytes) -> list[int] | None:
    """Shape from the header of a `.npy` file: a Python dictionary in text."""
    if not head.startswith(b"\x93NUMPY"):
        return None
    length, start = (
        (struct.unpack_from("<H", head, 8)[0], 10)
        if head[6] == 1
        else (struct.unpack_from("<I", head, 8)[0], 12)
    )
    if length > 1 << 16:
        return None
    header = ast.literal_eval(head[start : start + length].decode("latin-1").strip())
    shape = header.get("shape") if isinstance(header, dict) else None
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and size >= 0 for size in shape):
        return None
    return list(shape)


def fits_dims(head: bytes) -> list[int] | None:
    """Shape from the first header of a FITS file that has axes, slowest axis first as in C."""
    axes: dict[int, int] = {}
    count = None
    for at in range(0, len(head) - 79, 80):
        card = head[at : at + 80].decode("ascii", "replace")
        if match := re.match(r"NAXIS(\d{0,3}) *= +(\d{1,18})", card):
            if match[1]:
                axes[int(match[1])] = int(match[2])
            else:
                count = int(match[2])
        # The primary array is often empty, and an image extension follows at once.
        if card.rstrip() == "END":
            break
    if count is None or any(axis not in axes for axis in range(1, count + 1)):
        return None
    return [axes[axis] for axis in range(count, 0, -1)]


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

    def skip(self, size: int) -> None:
        self.at += -(-size // 4) * 4
        if size < 0 or self.at > len(self.head):
            raise ValueError("no size, or the header is longer than what was read")

    def skip_attributes(self) -> None:
        sizes = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
        self.number(wide=False)
        for _ in range(self.count()):
            self.skip(self.count())
            size = sizes.get(self.number(wide=False), -1)
            self.skip(size * self.number(wide=self.is_wide))


def netcdf_dims(head: bytes) -> list[int] | None:
    """Shape of the largest variable from the header of a classic netCDF file (versions 1, 2, 5).

    The record dimension has the number of records that the header gives.
    """
    if head[:3] != b"CDF" or head[3] not in (1, 2, 5):
        return None
    header = _Header(head)
    records = max(header.number(wide=header.is_wide), 0)
    header.number(wide=False)
    lengths = []
    for _ in range(header.count()):
        header.skip(header.count())
        lengths.append(header.number(wide=header.is_wide) or records)
    header.skip_attributes()
    header.number(wide=False)
    shapes = []
    for _ in range(header.count()):
        header.skip(header.count())
        rank = header.count()
        if rank > _MAX_RANK:
            return None
        axes = [header.number(wide=header.is_wide) for _ in range(rank)]
        if any(not 0 <= axis < len(lengths) for axis in axes):
            return None
        shapes.append([lengths[axis] for axis in axes])
        header.skip_attributes()
        header.skip(4 + (8 if header.is_wide else 4) + (4 if head[3] == 1 else 8))
    if any(size < 0 for shape in shapes for size in shape):
        return None
    return max(shapes, key=lambda shape: (prod(shape), len(shape)), default=None)
