"""HD5006: many small selections reach the file one by one, since no cache of chunks joins them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, data_s, listed, target_of
from vani.advisors.hdf5.hdf5_files import Use, hdf5_files, hdf5_uses
from vani.advisors.movers import gathers
from vani.advisors.rule import Evidence, Finding, Rule, Value, Verdict
from vani.advisors.small_requests import (
    SMALL,
    aggregated,
    moved_both_ways,
    process_rate,
    sizes_of,
    small_share,
)
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

_CACHES: Final = ("H5Pset_chunk_cache", "H5Pset_cache", "nc_set_chunk_cache", "nc_set_var_chunk_cache")


class HDF5SmallSelections(Rule):
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
        HDF5 reference manual, H5Pset_chunk_cache. Gain: `vani/models/small_io.py`.
    Example
        100,000 `nc_get_vara` of 8 kB from contiguous variables: 200 of 4 MiB move the same.

            for i in range(100000): block[i] = dset[i]    # before, h5py: a request for each row
            block = dset[0:100000]    # after: one selection
    """

    id = "HD5006"
    name = "hdf5-small-selections"
    family = "hdf5"
    needs = ("files", "interfaces", hdf5_files)
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

    def check(self, profile: Profile, system: System) -> Verdict:
        findings: list[Finding] = []
        reasons: list[str] = []
        for use in hdf5_uses(profile):
            why = self._objection(use, profile)
            small = sum(self._small(item) for item in use.items)
            total = sum(item.file.io.ops.read + item.file.io.ops.write for item in use.items)
            if why is not None:
                reasons.append(why)
            elif small < self.min_operations or small < self.min_share * total:
                reasons.append(
                    f"few requests of HDF5 in one folder have less than {format_bytes(self.small)}"
                )
            else:
                findings.append(self._finding(use, round(small), total, system))
        return self.verdict(findings, reasons)

    def _objection(self, use: Use, profile: Profile) -> str | None:
        size, shape = use.layer.granularity.data, use.layer.data_representation
        if size is None:
            return f"{use.where}.granularity.data is not known; supply a trace with sizes"
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
        called = {name for trace in profile.traces if trace.app == use.app.name for name in trace.functions}
        if any(name in called for name in _CACHES):
            return f"{use.app.name} sets a chunk cache"
        return None

    def _small(self, item: Item) -> float:
        io = item.file.io
        return sum(
            (small_share(sizes_of(io, reads=reads), int(self.small)) or 0.0) * count
            for reads, count in ((True, io.ops.read), (False, io.ops.write))
        )

    def _finding(self, use: Use, small: int, total: int, system: System) -> Finding:
        items, size, shape = use.items, use.layer.granularity.data, use.layer.data_representation
        before = data_s(items, items, use.app)
        gain = aggregated(
            "data_time_s",
            before,
            [moved_both_ways(item.file.io) for item in items],
            process_rate(items[0].file.path, system, reads=True),
        )
        stored = "contiguous" if shape.chunked is False else "stored in a way that the trace does not show"
        current: dict[str, Value] = {"requests": total, "transfer": size}
        cache = int(self.cache_bytes)
        return Finding(
            target=target_of(use.folder, items, use.app),
            reason=f"{format_count(small)} of {format_count(total)} requests of {use.app.name} to "
            f"{listed(use.folder, items)} ({format_share(small / total)}) have less than "
            f"{format_bytes(self.small)}, most bytes move in {format_bytes(size)}. The data sets are {stored}, and "
            "no chunk cache is set: each selection is a request.",
            confidence=0.6 if shape.chunked is False else 0.5,
            touched_s=before,
            recommended={"selection": "larger", "chunk_cache_bytes": cache},
            current=current,
            evidence=[
                Evidence(f"{use.where}.granularity.data", size),
                Evidence(f"{use.where}.data_representation.chunked", shape.chunked),
                *(
                    entry
                    for item in items[:3]
                    for entry in (
                        Evidence(f"{item.where}.path", item.file.path),
                        Evidence(f"{item.where}.io.ops.read", item.file.io.ops.read),
                        Evidence(f"{item.where}.io.ops.write", item.file.io.ops.write),
                    )
                ),
            ],
            gain=gain or "supply a trace with times",
            apply=comment(
                "in the program: select whole rows or blocks, and move them by one H5Dread, H5Dwrite, nc_get_vara or "
                "nc_put_vara;\n"
                "  or for data sets in chunks, before they are opened:\n"
                f"  C:        H5Pset_chunk_cache(dapl, 12421, {cache}, 1.0);\n"
                f"  NetCDF-4: nc_set_var_chunk_cache(ncid, varid, {cache}, 12421, 1.0);\n"
                f"  h5py:     h5py.File(name, rdcc_nbytes={cache}, rdcc_nslots=12421)"
            ),
            files=frozenset(item.file.path for item in items),
        )
