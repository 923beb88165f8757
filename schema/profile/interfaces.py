"""The libraries through which apps do I/O (tables VI and VII)."""

from typing import Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.iostats import ByteCounts
from vani.schema.profile.quantities import Bytes, Count, LayerName, Seconds, Share

__all__ = ["Amplification", "DataRepresentation", "Granularity", "Interface", "Middleware"]


class Granularity(Model):
    """Typical size of file-system transfers made under a layer."""

    data: Bytes | None = Field(description="size that moves most bytes")
    metadata: Bytes | None = Field(
        description="most common size of at most a tenth of that: transfers besides the data"
    )


class DataRepresentation(Model):
    """How the data looks to the library."""

    dims: Count | None = Field(description="dimensions of a dataset or variable")
    chunked: bool | None = Field(default=None, description="stored in chunks")


class Amplification(Model):
    """Bytes that the layers below moved / bytes that the calls of a library requested; 1 where nothing is added."""

    read: float | None = Field(ge=0, description="of reads; null where none was requested, or where it is not known")
    written: float | None = Field(ge=0, description="of writes; null likewise")
    total: float | None = Field(
        ge=0, description="of both, reads that writes made necessary included; null where nothing was requested"
    )


class Interface(Model):
    """A library layer in use by an app (tables VI and VII)."""

    layer: LayerName = Field(description="the library")
    app: str = Field(description="its app")
    granularity: Granularity = Field(description="size of transfers")
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        description="where most data operations under it begin"
    )
    data_representation: DataRepresentation = Field(description="null where the trace does not show it")
    calls: Count = Field(description="calls of the library")
    bytes: ByteCounts = Field(description="of file-system calls made under it")
    asked: ByteCounts | None = Field(
        default=None,
        description="bytes that its data calls requested in their own arguments; null where the trace does not give "
        "the size of every call, and of posix and stdio, whose calls move what they request",
    )
    amplification: Amplification | None = Field(
        default=None, description="`bytes` / `asked`; null where `asked` is"
    )
    files: Count | None = Field(
        description="data-set files accessed through it; null where times alone show which call made which"
    )
    time_s: Seconds | None = Field(
        description="in its calls that no call of the same library surrounds, summed over processes"
    )
    collective_share: Share | None = Field(
        default=None, description="share of its data calls that are collective"
    )
    transfer: Literal["collective", "independent", "mixed"] | None = Field(
        default=None,
        description="how its data calls are made; HDF5 without a call that sets it follows MPI-IO",
    )
    hints: dict[str, str] | None = Field(
        default=None, description="MPI-IO hints that the program set; empty where it passed none"
    )


class Middleware(Model):
    """Libraries between the program and the file system, and the resources that are left for them (table VII)."""

    extra_cores_per_node: Count | None = Field(description="cores of a node without a process of the job")
    memory_per_node: Bytes | None = Field(description="main memory of a node")
    libraries: list[str] | None = Field(
        description="I/O libraries in use; null where the source does not record it"
    )
    granularity: Granularity | None = Field(
        default=None,
        description="size of the transfers that the libraries make to the file system",
    )
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        default=None, description="where most of these transfers begin"
    )
