"""The libraries through which apps do I/O (tables VI and VII)."""

from typing import Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.iostats import ByteCounts
from vani.schema.profile.quantities import Bytes, Count, LayerName, Seconds, Share


class Granularity(Model):
    """Typical size of file-system transfers made under a layer."""

    data: Bytes | None = Field(description="transfer size that accounts for most bytes")
    metadata: Bytes | None = Field(
        description="most common transfer size among those of at most a tenth of `data`: transfers other than the "
        "bulk data"
    )


class DataRepresentation(Model):
    """How the data looks to the library."""

    dims: Count | None = Field(description="number of dimensions of a dataset or variable")
    chunked: bool | None = Field(default=None, description="true if the dataset is stored in chunks")


class Amplification(Model):
    """Bytes that the layers below moved / bytes that the calls of a library requested; 1 where nothing is added."""

    read: float | None = Field(
        ge=0, description="ratio for reads; null if no bytes were requested, or the request is unknown"
    )
    written: float | None = Field(
        ge=0, description="ratio for writes; null if no bytes were requested, or the request is unknown"
    )
    total: float | None = Field(
        ge=0,
        description="ratio for reads and writes together, including reads that writes caused; null if no bytes were "
        "requested",
    )


class Interface(Model):
    """A library layer in use by an app (tables VI and VII)."""

    layer: LayerName = Field(description="name of the library layer")
    app: str = Field(description="name of the app")
    granularity: Granularity = Field(description="typical transfer sizes")
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        description="access pattern of the data operations made under this layer"
    )
    data_representation: DataRepresentation = Field(
        description="dimensions and chunking of the data; null if the trace does not show them"
    )
    calls: Count = Field(description="number of calls to the library")
    bytes: ByteCounts = Field(description="bytes of the file-system calls made under this layer")
    asked: ByteCounts | None = Field(
        default=None,
        description="bytes that the data calls requested in their own arguments; null if the trace lacks the size of "
        "some call, and for posix and stdio, whose calls move what they request",
    )
    amplification: Amplification | None = Field(
        default=None, description="ratio of `bytes` to `asked`; null if `asked` is null"
    )
    files: Count | None = Field(
        description="number of data-set files accessed through the layer; null if only call times link file-system "
        "calls to library calls"
    )
    time_s: Seconds | None = Field(
        description="time in calls to the library that are not nested in another call to it, summed over processes"
    )
    collective_share: Share | None = Field(default=None, description="share of the data calls that are collective")
    transfer: Literal["collective", "independent", "mixed"] | None = Field(
        default=None,
        description="mode of the data calls; HDF5 without a call that sets the mode takes the mode of MPI-IO",
    )
    hints: dict[str, str] | None = Field(
        default=None, description="MPI-IO hints set by the program; empty if it set none"
    )


class Middleware(Model):
    """Libraries between the program and the file system, and the resources that are left for them (table VII)."""

    extra_cores_per_node: Count | None = Field(description="number of cores per node without a process of the job")
    memory_per_node: Bytes | None = Field(description="main memory per node")
    libraries: list[str] | None = Field(description="I/O libraries in use; null if the source does not record them")
    granularity: Granularity | None = Field(
        default=None, description="typical sizes of the transfers from the libraries to the file system"
    )
    access_pattern: Literal["consecutive", "sequential", "strided", "random"] | None = Field(
        default=None, description="access pattern of most of these transfers"
    )
