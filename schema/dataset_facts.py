"""Facts about a data set beside its sizes: how files hold their arrays, and how values are distributed.

Job.yaml has it from `vani collect`, profiles repeat it.
"""

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model

__all__ = ["Distribution", "FormatAttributes"]

Count = Annotated[int, Field(ge=0)]


class FormatAttributes(Model):
    """How a file holds its arrays (table XI); null where that is not known."""

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
        default=None, description="shape of its chunks; empty where it lies in one piece"
    )


class Distribution(Model):
    """Law of the values of the data set (table VI), by a sample of them."""

    name: Literal["constant", "uniform", "normal", "lognormal", "exponential", "gamma"] | None = Field(
        description="null where none of these fits"
    )
    closest: str | None = Field(
        default=None, description="the one that comes closest, whether it fits or not"
    )
    parameters: dict[str, float] = Field(default_factory=dict, description="of the closest")
    test: str = Field(description="how it was tested, and when a law is taken to fit")
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
