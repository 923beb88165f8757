"""Files: the data set, folders, single files, and paths counted separately (tables X and XI)."""

from typing import ClassVar, Literal

from pydantic import Field

from vani.schema.dataset_facts import Compression, Distribution, FormatAttributes
from vani.schema.model import Model, SparseModel
from vani.schema.profile.iostats import ByteCounts, IOStats
from vani.schema.profile.quantities import AtLeastOne, Bytes, Count, LayerName, Seconds

__all__ = ["Dataset", "Excluded", "FileEntity", "Folder", "Role", "SizeDistribution"]

Access = Literal["shared", "file_per_process"]
Role = Literal["input", "output", "intermediate", "temporary"]


class SizeDistribution(Model):
    """Sizes of the data set's files, where the size is known."""

    known: Count = Field(description="files whose size is known")
    min: Bytes | None = Field(description="smallest")
    p50: Bytes | None = Field(description="median")
    p90: Bytes | None = Field(description="nine in ten are at most this large")
    max: Bytes | None = Field(description="largest")
    histogram: dict[str, Count] = Field(description="files by size, bins [low, high)")


class Dataset(SparseModel):
    """All files of the data set (table X)."""

    optional_keys: ClassVar[tuple[str, ...]] = ("compression",)

    format: dict[str, Count] | None = Field(description="files by format")
    size: Bytes | None = Field(description="sum of the known sizes")
    files: Count | None = Field(
        description="files of the data set; null where which names are one file is not known"
    )
    io: IOStats = Field(description="I/O on them")
    roles: dict[str, Count] | None = Field(description="files by role; null where some file's is not known")
    size_distribution: SizeDistribution | None = Field(description="sizes of files")
    distribution: Distribution | None = Field(
        default=None, description="law of the values in a sample of them (table VI), from job.yaml"
    )
    compression: Compression | None = Field(
        default=None,
        description="how files compress, by a sample of them, from job.yaml; null, and absent, where none was tried",
    )


class FileEntity(SparseModel):
    """A file (table XI)."""

    optional_keys: ClassVar[tuple[str, ...]] = (
        "stripe_count",
        "stripe_size",
        "components",
        "direct_opens",
        "synchronous_opens",
    )

    path: str = Field(description="absolute, links not followed; the last name of a renamed file")
    format: str | None = Field(
        description="by magic bytes where the file is still there, else by library and suffix"
    )
    size: Bytes | None = Field(
        description="in the end, by writes, truncations and job.yaml; null for files that were only read, or made "
        "without a recorded write, and where the trace does not show it"
    )
    role: Role | None = Field(
        description="temporary: removed in the end; intermediate: written by one process or app, read by another "
        "later; output: written or made; input: only read; null: only opened, or the order of calls is not known"
    )
    access: Access = Field(description="used by two or more processes, or by one")
    processes: Count = Field(description="processes that opened or accessed it")
    readers: Count = Field(description="processes that read it")
    writers: Count = Field(description="processes that wrote it")
    opens: Count = Field(description="times that it was opened")
    direct_opens: AtLeastOne | None = Field(
        default=None,
        description="of these, with O_DIRECT; null, and absent, where there is none, and where the source does not "
        "store the flags of opens",
    )
    synchronous_opens: AtLeastOne | None = Field(
        default=None,
        description="of these, with O_SYNC or O_DSYNC: each write waits until the storage has its bytes; null, and "
        "absent, as direct_opens",
    )
    interface: LayerName | None = Field(description="layer with most of its accesses")
    stride: int | None = Field(default=None, description="bytes between the beginnings of strided operations")
    stripe_count: AtLeastOne | None = Field(
        default=None,
        description="Lustre targets that stored it, by the layout component in which it ends; null, and "
        "absent with the two that follow, where no source gives its layout",
    )
    stripe_size: AtLeastOne | None = Field(
        default=None, description="bytes of its stripes there; null as stripe_count"
    )
    components: AtLeastOne | None = Field(
        default=None,
        description="components of its layout, more than one of a composite one; null as stripe_count",
    )
    apps: list[str] = Field(description="apps that used it")
    io: IOStats = Field(description="I/O on it")
    first_s: Seconds | None = Field(description="start of the first call on it")
    last_s: Seconds | None = Field(description="end of the last call on it")
    format_attributes: FormatAttributes | None = Field(
        default=None,
        description="arrays, dimensions, type, encoding and chunks: from job.yaml, else from the calls that made them",
    )

    def keys_left_out(self) -> tuple[str, ...]:
        """All keys of the layout if it is unknown, and each kind of open that does not occur."""
        layout, opens = self.optional_keys[:3], self.optional_keys[3:]
        unknown = () if any(getattr(self, name) for name in layout) else layout
        return (*unknown, *(name for name in opens if not getattr(self, name)))


class Folder(Model):
    """A folder with files of the data set."""

    path: str = Field(description="absolute, as files name it")
    files: Count = Field(description="files of the data set directly in it, listed ones or not")
    creates: Count | None = Field(
        description="of these, files that the run made (or emptied); null where a source does not record it"
    )
    entries: Count = Field(description="these files and the folders directly in it that contain some")
    bytes: ByteCounts = Field(description="moved or requested in these files")
    metadata_time_s: Seconds | None = Field(
        description="in metadata operations on these files, added up; null where times were not read"
    )
    time_s: Seconds | None = Field(
        default=None,
        description="in all calls on these files, added up; null where times were not read, and in a document of an "
        "older Vani",
    )
    opens: Count | None = Field(
        default=None, description="times that these files were opened; null in a document of an older Vani"
    )
    removes: Count | None = Field(
        default=None,
        description="of these files, those that the run removed; null where a source does not record it, and in "
        "a document of an older Vani",
    )
    makers: Count | None = Field(
        default=None,
        description="processes that made files here, at least: of a file that several made (or emptied), the first and "
        "the last rank are counted; null where a source does not record which process did",
    )
    sizes: SizeDistribution | None = Field(
        default=None, description="sizes of these files, where known; null where none can be"
    )


class Excluded(Model):
    """Calls on paths outside the data set, or whose file cannot be known (contract, "file")."""

    files: Count = Field(description="paths that are not files of a data set")
    io: IOStats = Field(description="calls on them, and calls whose file cannot be known")
