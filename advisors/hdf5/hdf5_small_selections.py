"""HD5006: many small selections reach the file one by one, since no cache of chunks joins them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import Access, functions_of
from vani.advisors.hdf5 import CHUNK_CACHES, HDF5Files, HDF5Rule
from vani.advisors.movers import gathers
from vani.advisors.rule import Answer, Finding
from vani.advisors.small_requests import SMALL, aggregated, moved_both_ways, small_share
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System



class HDF5SmallSelections(HDF5Rule):
    """A program reads or writes data sets in small selections, each a separate request to the file system.

    Looks at
        Files of HDF5 and NetCDF-4: requests below `small`, at least `min_operations` in a folder and `min_share` of the
        requests, if the size that moves most bytes is also below `small` (so it is data, not a header).
    Why
        HDF5 keeps chunks in a cache, 1 MiB for each data set; contiguous data sets, and chunks that do not fit, have
        none. Then each call of H5Dread or nc_get_vara is a request.
    Recommends
        Larger selections: whole rows or blocks for each call. Where the loop cannot be changed, data in chunks, and a
        chunk cache that fits those in use (`H5Pset_chunk_cache`, `nc_set_var_chunk_cache`).
    Stays silent when
        No app uses HDF5; requests are few or large; transfers are collective (aggregators join them) or should be
        (HD5005); the program sets a chunk cache; chunks should be larger or of another shape (HD5002).
    Source
        HDF5 reference manual, H5Pset_chunk_cache. Gain: `vani/models/savings.py`.
    Example
        100,000 `nc_get_vara` of 8 kB from contiguous variables: 200 of 4 MiB move the same.

            for i in range(100000): block[i] = dset[i]    # before, h5py: a request for each row
            block = dset[0:100000]    # after: one selection
    """

    id = "HD5006"
    settles = "request-size"
    sources = ("HDF5 reference manual, H5Pset_chunk_cache",)

    # As in POS002.
    small = SMALL
    # As in POS002.
    min_share = 0.5
    # As in POS002: with 0.1 to 1 ms each (typical of a parallel file system), fewer take less than a second.
    min_operations = 1000
    # HDF5 2.0's default of 8 MiB, and as much again, as in HD5004.
    cache_bytes = 16 * MiB

    def judge(self, use: HDF5Files, profile: Profile, system: System) -> Answer:
        accesses = [Access(item, reads) for item in use.items for reads in (True, False)]
        small = sum((small_share(access.sizes, int(self.small)) or 0.0) * access.requests for access in accesses)
        total = sum(access.requests for access in accesses)
        if why := self._objection(use, profile):
            return why
        if small < self.min_operations or small < self.min_share * total:
            return f"few requests of HDF5 in one folder have less than {format_bytes(self.small)}"
        return self._finding(use, round(small), total, system)

    def _objection(self, use: HDF5Files, profile: Profile) -> str | None:
        size, shape = use.layer.granularity.data, use.layer.data_representation
        if size is None:
            return use.missing("granularity.data")
        if size >= self.small:
            return f"transfers of HDF5 have {format_bytes(self.small)} or more"
        if gathers(use.app, profile) or use.layer.transfer == "collective":
            return "transfers are collective already"
        if use.layer.access_pattern in ("strided", "random"):
            if use.mpiio is not None:
                return "the pieces of processes are interleaved: see HD5005"
            if shape.chunked is False and (shape.dims or 0) > 1:
                return "contiguous data sets are accessed in pieces of rows: see HD5002"
        if shape.chunked:
            return "chunks are small: see HD5002"
        if not functions_of(use.app, profile).isdisjoint(CHUNK_CACHES):
            return f"{use.app.name} sets a chunk cache"
        return None

    def _finding(self, use: HDF5Files, small: int, total: int, system: System) -> Finding:
        size, shape, cache = use.layer.granularity.data, use.layer.data_representation, int(self.cache_bytes)
        before, rows = use.data_s(), [*map(moved_both_ways, use.items)]
        stored = "contiguous" if shape.chunked is False else "stored in a way that the trace does not show"
        return Finding(
            **use.affected,
            reason=f"{format_count(small)} of {format_count(total)} requests of {use.app.name} to "
            f"{use.words} ({format_share(small / total)}) have less than "
            f"{format_bytes(self.small)}, most bytes move in {format_bytes(size)}. The data sets are {stored}, and "
            "no chunk cache is set: each selection is a request.",
            confidence=0.6 if shape.chunked is False else 0.5,
            touched_s=before,
            recommended={"selection": "larger", "chunk_cache_bytes": cache},
            current={"requests": total, "transfer": size},
            evidence=[
                *use.layer_figures("granularity.data", "data_representation.chunked"),
                *use.figures("path", "io.ops.read", "io.ops.write"),
            ],
            gain=aggregated("data_time_s", before, rows, Access(use.items[0], reads=True), system),
            apply="in the program: select whole rows or blocks, and move them by one H5Dread, H5Dwrite, nc_get_vara or "
            "nc_put_vara;\n"
            "  or for data sets in chunks, before they are opened:\n"
            f"  C:        H5Pset_chunk_cache(dapl, 12421, {cache}, 1.0);\n"
            f"  NetCDF-4: nc_set_var_chunk_cache(ncid, varid, {cache}, 12421, 1.0);\n"
            f"  h5py:     h5py.File(name, rdcc_nbytes={cache}, rdcc_nslots=12421)",
        )
