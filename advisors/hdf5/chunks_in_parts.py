"""HD5008: chunks are written in parts, and HDF5 reads and rewrites the whole chunk for every part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import functions_of
from vani.advisors.hdf5 import CHUNK_CACHES, HDF5Files, HDF5Rule, changes_chunks
from vani.advisors.rule import Answer, Finding, Gain
from vani.units import MiB, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

_READS: Final = ("H5Dread", "nc_get")

_OF_SEVERAL: Final = (
    "in the program: chunks each inside of the data of one call of one process, such as its block of one step\n"
    "  before:     chunk[] = {16, all_columns}     a part of each chunk from every process, and one step at a time\n"
    "  C:          hsize_t chunk[] = {1, columns_of_a_process}; H5Pset_chunk(dcpl, 2, chunk);\n"
    "  Fortran:    call h5pset_chunk_f(dcpl, 2, (/columns_of_a_process, 1_hsize_t/), ierr)\n"
    "  h5py:       file.create_dataset(name, shape, dtype, chunks=(1, columns_of_a_process))\n"
    "  netCDF4:    dataset.createVariable(name, 'f8', dimensions, chunksizes=(1, columns_of_a_process))"
)


class ChunksInParts(HDF5Rule):
    """A chunk is written in parts, and each part makes HDF5 read the whole chunk, change it and write it back.

    Looks at
        Files that HDF5 stores in chunks and writes: at least twice as many bytes written as distinct ones and
        `min_bytes` more, and at least half of them read, though the program makes no read calls. No trace has the shape
        of chunks and selections, but the traffic shows that they do not fit.
    Why
        A chunk is one unit. A compressed one can only be replaced as a whole; so are others, once the cache of 1 MiB
        per data set (8 MiB from HDF5 2.0 on) drops them. Where several processes share a chunk, or one writes step
        after step into a chunk of many steps, each part costs the whole chunk, twice.
    Recommends
        For several writers: chunks that lie inside one process's part. For one: a chunk cache that fits the chunks in
        use, or chunks of the amount written at once (one step).
    Stays silent when
        No app uses HDF5; data is not stored in chunks, or that is not known; bytes are written once, or not read back;
        the program itself reads; one process writes and sets a chunk cache.
    Source
        HDF5 documentation, "Chunking in HDF5" and "Parallel Compression" (chunks that several processes write go to one
        owner, which reads and writes them); HDF5 reference manual, H5Pset_chunk_cache.
    Example
        One process writes 64 steps of 262 kB, compressed, into one chunk of 64 steps: 173 MB are read and 179 MB
        written for a file of 5 MB, in 5.5 s; with a cache that fits the chunk, in 0.5 s.

            file = h5py.File(name, "r+")    # before: 1 MiB of chunk cache
            file = h5py.File(name, "r+", rdcc_nbytes=2**25)    # after: room for a chunk of 16 MiB
    """

    id = "HD5008"
    settles = "chunking"
    sources = ("HDF5 documentation, Chunking in HDF5", "HDF5 reference manual, H5Pset_chunk_cache")

    # As in POS011: a twentieth of a second at 300 MB/s for one process (OPRAEL).
    min_bytes = 16 * MiB
    # As in HD5004: HDF5 2.0's default of 8 MiB, and as much again for chunks that grew.
    cache_bytes = 16 * MiB

    def judge(self, use: HDF5Files, profile: Profile, system: System) -> Answer:  # noqa: ARG002 - applies on every machine
        group = use.of(item for item in use.items if changes_chunks(use, item))
        called = functions_of(use.app, profile)
        several = any(item.file.writers > 1 for item in group.items)
        if why := use.missing("data_representation.chunked"):
            return why
        if not use.layer.data_representation.chunked:
            return f"{use.app.name} stores no data in chunks"
        if group.total("io.bytes.written") - group.total("io.footprint.written") < self.min_bytes:
            return "no chunks of HDF5 are read back and written again"
        if any(name.startswith(_READS) for name in called):
            return f"{use.app.name} itself reads: what HDF5 reads to change chunks does not show"
        if not several and not called.isdisjoint(CHUNK_CACHES):
            return f"{use.app.name} sets a chunk cache"
        return self._finding(group, several=several)

    def _finding(self, use: HDF5Files, *, several: bool) -> Finding:
        read, written = use.total("io.bytes.read"), use.total("io.bytes.written")
        distinct = use.total("io.footprint.written")
        # A chunk is at most as large as the transfers that move most bytes, but a compressed one is larger in memory.
        cache = max(int(self.cache_bytes), 4 * (use.layer.granularity.data or 0))
        times = (use.app.library_time_s or {}).get("hdf5")
        # Several processes may spend most of their time in HDF5 waiting for each other, which chunks do not change.
        is_alone = times is not None and not several
        before = times.slowest if times is not None and is_alone else use.data_s()
        best = before * distinct / written
        gain = Gain.at_best(
            "data_time_s",
            before,
            after=min(before, 2 * best),
            best=best,
            method="time by bytes written: high: each distinct one once, twice that: with HDF5's other work on "
            "them, low: as now",
        )
        return Finding(
            **use.affected,
            reason=f"HDF5 reads {format_bytes(read)} and writes {format_bytes(written)} of {use.words}, where "
            f"{format_bytes(distinct)} are enough: each part of a chunk that is written costs the whole chunk. "
            + (
                "Several processes write: chunks should be inside of the part of one of them, and contain what it "
                "writes at once. For an expected gain, supply the time of a run with such chunks."
                if several
                else "The chunk cache does not keep the chunk from one write to the next."
            )
            + ("" if several or before else " For an expected gain, supply a trace with times."),
            confidence=0.7,
            touched_s=before,
            acts_on="libraries" if is_alone else "file_system",
            recommended={"chunk": "within the part of one process"} if several else {"chunk_cache_bytes": cache},
            current={"read_bytes": read, "written_bytes": written, "distinct_bytes": distinct},
            evidence=[
                *use.layer_figures("data_representation.chunked"),
                *use.figures("path", "io.bytes.read", "io.bytes.written", "io.footprint.written"),
            ],
            gain=None if several else gain,
            apply=_OF_SEVERAL if several else _of_one(cache),
        )


def _of_one(cache: int) -> str:
    return (
        "in the program, before the data set is opened or made: a cache that fits the chunks in use, uncompressed\n"
        f"  C:          H5Pset_chunk_cache(dapl, 12421, {cache}, 1.0);\n"
        f"  Fortran:    call h5pset_chunk_cache_f(dapl, 12421_size_t, {cache}_size_t, 1.0, ierr)\n"
        f"  h5py:       h5py.File(name, 'w', rdcc_nbytes={cache}, rdcc_nslots=12421)\n"
        f"  netCDF-4:   nc_set_var_chunk_cache(ncid, varid, {cache}, 12421, 1.0);\n"
        "or chunks of the amount written at once:\n"
        "  H5Pset_chunk(dcpl, 2, (hsize_t[]){1, columns});"
    )
