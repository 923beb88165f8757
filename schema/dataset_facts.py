"""Facts about the files of a data set: formats by suffix and by first bytes, attributes, values, and compression."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal

from pydantic import Field

from vani.schema.model import Model

HEAD_BYTES: Final = 4096
"""Bytes of a file that decide. The HDF5 superblock may be at 0, 512, 1024 or 2048."""
MAX_LOOKED_AT: Final = 1000
"""Files of a data set whose first bytes are read to detect formats."""

_SUFFIXES: Final = {
    ".h5": "hdf5", ".hdf5": "hdf5", ".hdf": "hdf5", ".he5": "hdf5",
    ".nc": "netcdf", ".nc3": "netcdf", ".nc4": "netcdf", ".cdf": "netcdf", ".netcdf": "netcdf",
    ".fits": "fits", ".fit": "fits", ".fts": "fits",
    ".npz": "npz", ".npy": "npy",
    ".zip": "zip", ".gz": "gzip", ".tgz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd",
    ".tar": "tar",
    ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".tif": "tiff", ".tiff": "tiff",
    ".grib": "grib", ".grib2": "grib", ".grb": "grib", ".grb2": "grib",
    ".root": "root", ".parquet": "parquet", ".arrow": "arrow", ".tfrecord": "tfrecord", ".bp": "adios",
    ".csv": "csv", ".tsv": "csv", ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".xml": "xml",
    ".vtk": "vtk", ".vtu": "vtk", ".txt": "text", ".log": "text", ".out": "text", ".tbl": "text",
    ".hdr": "text", ".nml": "text",
    ".bin": "bin", ".dat": "bin", ".raw": "bin",
}  # fmt: skip

_HDF5: Final = b"\x89HDF\r\n\x1a\n"
_MAGIC: Final = (
    (b"CDF\x01", "netcdf"), (b"CDF\x02", "netcdf"), (b"CDF\x05", "netcdf"),
    (b"SIMPLE  =", "fits"),
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "zip"), (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"),
    (b"II*\0", "tiff"), (b"MM\0*", "tiff"), (b"II+\0", "tiff"), (b"MM\0+", "tiff"),
    (b"GRIB", "grib"), (b"root", "root"), (b"PAR1", "parquet"), (b"ARROW1\0\0", "arrow"),
)  # fmt: skip

_PACKAGE: Final = re.compile(r"/(?:site|dist)-packages/([A-Za-z]\w*)/")
_SHARED_LIBRARY: Final = re.compile(r"/lib([A-Za-z][A-Za-z0-9]*)[^/]*\.so[^/]*$")
_STANDARD_LIBRARY: Final = re.compile(r"/lib(?:64)?/python3\.\d+/(?:lib-dynload/_)?(sqlite3|dbm)\b")
_READS_AND_WRITES: Final = frozenset({
    "adios2", "arrow", "ase", "astropy", "cfitsio", "cv2", "dask", "dbm", "duckdb", "fsspec", "gdal", "h5py", "hdf5",
    "imageio", "joblib", "leveldb", "lmdb", "netCDF4", "netcdf", "numpy", "nibabel", "pandas", "PIL", "pnetcdf",
    "polars", "pyarrow", "rasterio", "rocksdb", "safetensors", "sqlite3", "tables", "tensorflow", "tensorstore",
    "tifffile", "torch", "torchvision", "uproot", "webdataset", "xarray", "zarr",
})  # fmt: skip


_OMPIO: Final = re.compile(r"_cid-+\d+-\d+\.sm$|\.locktest\.\d+$")
"""Files by which Open MPI's own MPI-IO shares file pointers. Programs that use ROMIO load its libraries, too."""


def libraries_loaded(paths: Iterable[str]) -> list[str]:
    """Names of packages and shared libraries that read and write data, among the files that a program opened.

    `ompio` is Open MPI's own MPI-IO.
    """
    libraries = set()
    for path in paths:
        if _OMPIO.search(path):
            libraries.add("ompio")
        if "-packages/" in path or ".so" in path or "/python3" in path:
            match = _PACKAGE.search(path) or _SHARED_LIBRARY.search(path) or _STANDARD_LIBRARY.search(path)
            if match is not None and match[1] in _READS_AND_WRITES:
                libraries.add(match[1])
    return sorted(libraries)


# Specialised contents of a general container format, recognisable only by the file's name.
_SPECIAL: Final = {("hdf5", "netcdf"), ("zip", "npz")}
_TEXT: Final = {"csv", "json", "yaml", "xml", "vtk", "text"}


def format_of_name(path: str) -> str | None:
    """Guess the format from the last suffix of `path`; None for an unknown one."""
    if path.endswith(("/", "/.")):
        path = str(PurePosixPath(path))
    # Equals PurePosixPath.suffix in a tenth of the time, because there may be a million paths.
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return _SUFFIXES.get(name[dot:].lower()) if 0 < dot < len(name) - 1 else None


def format_of_head(head: bytes) -> str | None:
    """Detect the format from a file's first `HEAD_BYTES` bytes; None for an unknown one.

    Sources: the specifications of the formats (HDF5 format 3.0, II.A: the superblock may follow a
    user block of 512 bytes times a power of two).
    """
    if any(head.startswith(_HDF5, at) for at in (0, 512, 1024, 2048)):
        return "hdf5"
    if head[257:262] == b"ustar":
        return "tar"
    return next((name for magic, name in _MAGIC if head.startswith(magic)), None)


def format_of(path: Path) -> str:
    """Detect the format of the file at `path`: by content, by name if the content is less specific, otherwise `bin`.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    by_content, by_name = format_of_head(head), format_of_name(path.name)
    if by_content is not None:
        return by_name if by_name is not None and (by_content, by_name) in _SPECIAL else by_content
    if by_name in _TEXT or by_name == "bin" or not head:
        return by_name or "bin"
    # A suffix is no evidence if the magic number of its format is missing.
    return "text" if _is_text(head) else "bin"


def _is_text(head: bytes) -> bool:
    if any(byte < 9 or 13 < byte < 32 for byte in head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # The last character may have been cut in two.
        return len(head) == HEAD_BYTES and error.start > HEAD_BYTES - 4
    return True


Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, description="bytes per second")]
Ratio = Annotated[float, Field(gt=0)]


class FormatAttributes(Model):
    """How a file stores its arrays (table XI); null if unknown."""

    datasets: Count | None = Field(
        default=None, description="number of arrays (datasets, variables, images) in the file"
    )
    dims: Count | None = Field(default=None, description="dimensions of the largest array")
    type: str | None = Field(default=None, description="data type of the largest array: float32, int16, ...")
    encoding: str | None = Field(
        default=None, description="format, byte order and compression, such as `hdf5, little-endian, gzip`"
    )
    chunks: list[Count] | None = Field(
        default=None, description="chunk shape of the largest array; empty if it is stored contiguously"
    )


class Distribution(Model):
    """Distribution of the values of the data set (table VI), estimated from a sample."""

    name: Literal["constant", "uniform", "normal", "lognormal", "exponential", "gamma"] | None = Field(
        description="name of the fitting distribution; null if none fits"
    )
    closest: str | None = Field(default=None, description="closest distribution, whether or not it fits")
    parameters: dict[str, float] = Field(default_factory=dict, description="parameters of the closest distribution")
    test: str = Field(description="statistical test and its criterion for a fit")
    statistic: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="largest difference between the two cumulative distributions; null if all values are equal",
    )
    p_value: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="p-value of the statistic under the closest distribution with these parameters; null if all "
        "values are equal",
    )
    values: Count = Field(description="number of values in the sample")
    files: Count = Field(description="number of files that the values come from")


class Codec(Model):
    """A codec tried on the sample of a data set."""

    name: str = Field(description="name of the codec: gzip, lzf, szip, zstd, lz4, blosc")
    level: int | None = Field(
        default=None, description="compression level; null if the codec has none or its default was used"
    )
    shuffle: bool = Field(description="true if bytes were shuffled by significance before compression")
    library: str = Field(description="library that ran the codec: h5py (as an HDF5 filter), zlib, pyarrow, blosc2")
    bytes: Count = Field(description="bytes compressed in the test")
    ratio: Ratio = Field(description="bytes before / bytes after compression; below 1 if the data grew")
    compress: Rate = Field(description="compression speed of one core, in uncompressed bytes per second")
    decompress: Rate = Field(description="decompression speed of one core, in uncompressed bytes per second")


class Compression(Model):
    """Ratio and speed of codecs on pieces of files of one format, as stored in the files."""

    root: str = Field(description="absolute path of the folder (or file) of the data set")
    format: str = Field(description="format of the sampled files, the one with most bytes")
    files: Count = Field(description="number of files that the pieces come from")
    pieces: Count = Field(description="number of sampled pieces, spread over all bytes of the files")
    piece: Count = Field(
        description="maximum size of a piece in bytes; each piece is compressed separately, like an HDF5 chunk"
    )
    bytes: Count = Field(description="total bytes of the pieces")
    value_bytes: Count | None = Field(
        default=None, description="bytes per value as used for shuffling; null if the data type is unknown"
    )
    codecs: list[Codec] = Field(description="results by codec")
