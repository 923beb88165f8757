"""HD5002: data sets whose storage does not have the shape of the accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.hdf5 import HDF5Files, HDF5Rule
from vani.advisors.rule import Answer, Finding
from vani.units import KiB, MiB, format_bytes, format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class HDF5Chunking(HDF5Rule):
    """HDF5 reaches its data in small pieces, since chunks are small or the data set is one contiguous block.

    Looks at
        The size of transfers that moves most bytes under HDF5, below `min_piece`; whether data sets are stored in
        chunks and how many dimensions they have; where accesses begin.
    Why
        A chunk is read and written as a whole and is one request, with an entry in an index: small chunks are many
        requests. In a contiguous data set of several dimensions, a selection of anything but whole rows is one request
        for each piece of a row.
    Recommends
        Chunks of at least `chunk_bytes`, in the shape that one process accesses at a time.
    Stays silent when
        No app uses HDF5; whether data is stored in chunks is not known; transfers are large; contiguous data is
        accessed in the order of its bytes, or has one dimension.
    Source
        HDF5 documentation, "Chunking in HDF5"; chunks below 64 KiB cost more than they bring (general
        knowledge).
    Example
        A data set of 2 dimensions, contiguous, read in columns of 4 KiB: chunks of 1 MiB make one request of 256.

            dset = file.create_dataset("t", shape)    # before, h5py: one contiguous block
            dset = file.create_dataset("t", shape, chunks=(1024, 128))  # after: chunks of 1 MiB of doubles
    """

    id = "HD5002"
    settles = "chunking"
    sources = ("HDF5 documentation, Chunking in HDF5",)

    # Typical advice: no chunks below 64 KiB.
    min_piece = 64 * KiB
    # The default chunk cache before HDF5 2.0, which must hold at least one chunk. Also one RPC of Lustre.
    chunk_bytes = 1 * MiB
    # Our choice: fewer requests are not worth a change.
    min_operations = 100

    def judge(self, use: HDF5Files, profile: Profile, system: System) -> Answer:  # noqa: ARG002 - applies on every machine
        layer, shape, size = use.layer, use.layer.data_representation, use.layer.granularity.data
        if why := use.missing("data_representation.chunked") or use.missing("granularity.data"):
            return why
        if size is not None and size >= self.min_piece:
            return f"transfers of HDF5 have {format_bytes(self.min_piece)} or more"
        if not shape.chunked and (shape.dims is None or shape.dims < 2):
            return "contiguous data sets of one dimension gain nothing from chunks"
        if not shape.chunked and layer.access_pattern not in ("strided", "random"):
            return "contiguous data sets are accessed in the order of their bytes"
        if shape.chunked and any(i.io.transfer_size.write and (i.io.transfer_size.write.max or 0) >= self.min_piece
                                 for i in use.items):
            return "chunks are larger than the pieces: the chunk cache decides (HD5004)"
        group = use.of(i for i in use.items if i.io.ops.read + i.io.ops.write >= self.min_operations)
        if not group.items:
            return f"no file of HDF5 has {format_count(self.min_operations)} data operations or more"
        before, chunk = group.data_s(), int(self.chunk_bytes)
        how = "in small chunks" if shape.chunked else f"as contiguous arrays of {shape.dims} dimensions"
        return Finding(
            **group.affected,
            reason=f"{use.app.name} keeps data in {group.words} {how} and moves it in pieces of "
            f"{format_bytes(size)}. Chunks of the shape of what one process accesses at a time, "
            f"{format_bytes(chunk)} or more, make one request of many.",
            confidence=0.5,
            touched_s=before,
            recommended={"chunk_bytes": chunk},
            current={"chunked": shape.chunked, "transfer": size},
            evidence=[
                *use.layer_figures(
                    "granularity.data", "data_representation.chunked", "data_representation.dims", "access_pattern"
                ),
                *group.figures("path"),
            ],
            gain="fewer requests of the same bytes; measure a run with them",
            apply=f"in the program, chunk[] being the part that one process accesses ({chunk} bytes or more):\n"
            "  C:     H5Pset_chunk(dcpl, rank, chunk);\n"
            "  h5py:  file.create_dataset(name, shape, dtype, chunks=chunk)\n"
            "existing files, once:\n"
            "  h5repack -l CHUNK=AxB old.h5 new.h5",
        )
