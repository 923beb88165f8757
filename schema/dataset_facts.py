"""Facts about a data set besides its sizes: array storage, distribution of values, and compressibility.

`vani collect` writes them to job.yaml, and profiles repeat them.
"""

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model

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
