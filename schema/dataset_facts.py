"""Facts about a data set besides its sizes: array storage, distribution of values, and compressibility.

`vani collect` writes them to job.yaml, and profiles repeat them.
"""

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model

__all__ = ["Codec", "Compression", "Distribution", "FormatAttributes"]

Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, description="bytes per second")]
Ratio = Annotated[float, Field(gt=0)]


class FormatAttributes(Model):
    """How a file stores its arrays (table XI); null if unknown."""

    datasets: Count | None = Field(
        default=None, description="arrays (datasets, variables, images) in the file"
    )
    dims: Count | None = Field(default=None, description="dimensions of the largest of them")
    type: str | None = Field(default=None, description="of its values: float32, int16, ...")
    encoding: str | None = Field(
        default=None,
        description="format, order of bytes and compression, such as `hdf5, little-endian, gzip`",
    )
    chunks: list[Count] | None = Field(
        default=None, description="shape of its chunks; empty where it is stored in one piece"
    )


class Distribution(Model):
    """Distribution of the values of the data set (table VI), estimated from a sample."""

    name: Literal["constant", "uniform", "normal", "lognormal", "exponential", "gamma"] | None = Field(
        description="null where none of these fits"
    )
    closest: str | None = Field(
        default=None, description="the closest law, whether it fits or not"
    )
    parameters: dict[str, float] = Field(default_factory=dict, description="of the closest")
    test: str = Field(description="test, and the criterion for a fit")
    statistic: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="largest difference between the shares of values below any bound; null where all are equal",
    )
    p_value: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="of the statistic, if the values followed the closest law with these parameters; "
        "null where all are equal",
    )
    values: Count = Field(description="values in the sample")
    files: Count = Field(description="files that they are from")


class Codec(Model):
    """A codec tried on the sample of a data set."""

    name: str = Field(description="gzip, lzf, szip, zstd, lz4, blosc")
    level: int | None = Field(
        default=None, description="its level; null where it has none, or its default was tried"
    )
    shuffle: bool = Field(description="whether bytes were shuffled by significance first")
    library: str = Field(description="library: h5py (as a filter of HDF5), zlib, pyarrow, blosc2")
    bytes: Count = Field(description="bytes that it was tried on")
    ratio: Ratio = Field(
        description="bytes before / bytes after; below 1: larger after compression"
    )
    compress: Rate = Field(description="bytes before, per second of one core")
    decompress: Rate = Field(description="bytes after decompressing, per second of one core")


class Compression(Model):
    """Ratio and speed of codecs on pieces of files of one format, as stored in the files."""

    root: str = Field(description="folder (or file) of the data set, absolute")
    format: str = Field(description="format of these files: that with most bytes")
    files: Count = Field(description="files that the pieces are from")
    pieces: Count = Field(description="pieces, spread over all bytes of the files")
    piece: Count = Field(description="bytes of a piece at most: each is compressed separately, as a chunk is")
    bytes: Count = Field(description="bytes of all pieces")
    value_bytes: Count | None = Field(
        default=None,
        description="bytes of a value, as shuffling takes them; null where the type is not known",
    )
    codecs: list[Codec] = Field(description="codecs that were tried")
