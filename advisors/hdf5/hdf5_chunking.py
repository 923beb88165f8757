"""HD5002: data sets whose storage does not have the shape of the accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, data_s, listed, target_of
from vani.advisors.hdf5.hdf5_files import Use, hdf5_files, hdf5_uses
from vani.advisors.rule import Evidence, Finding, Rule, Value, Verdict
from vani.advisors.small_requests import aggregated, moved_both_ways, process_rate
from vani.units import KiB, MiB, format_bytes, format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class HDF5Chunking(Rule):
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
    name = "hdf5-chunking"
    family = "hdf5"
    needs = ("files", "interfaces", hdf5_files)
    settles = "chunking"
    sources = ("HDF5 documentation, Chunking in HDF5",)

    # Typical advice: no chunks below 64 KiB.
    min_piece = 64 * KiB
    # The default chunk cache before HDF5 2.0, which must hold at least one chunk. Also one RPC of Lustre.
    chunk_bytes = 1 * MiB
    # Our choice: fewer requests are not worth a change.
    min_operations = 100

    def check(self, profile: Profile, system: System) -> Verdict:
        findings: list[Finding] = []
        reasons: list[str] = []
        for use in hdf5_uses(profile):
            why = self._objection(use)
            items = [i for i in use.items if i.file.io.ops.read + i.file.io.ops.write >= self.min_operations]
            if why is not None:
                reasons.append(why)
            elif not items:
                reasons.append(
                    f"no file of HDF5 has {format_count(self.min_operations)} data operations or more"
                )
            else:
                findings.append(self._finding(use, items, system))
        return self.verdict(findings, reasons)

    def _objection(self, use: Use) -> str | None:
        layer, shape = use.layer, use.layer.data_representation
        if shape.chunked is None:
            return (
                f"{use.where}.data_representation.chunked is not known; supply a trace of the run that created "
                "the data sets, or ask `h5dump -pH`"
            )
        if layer.granularity.data is None:
            return f"{use.where}.granularity.data is not known; supply a trace with sizes"
        if layer.granularity.data >= self.min_piece:
            return f"transfers of HDF5 have {format_bytes(self.min_piece)} or more"
        if shape.chunked:
            return None
        if shape.dims is None or shape.dims < 2:
            return "contiguous data sets of one dimension gain nothing from chunks"
        if layer.access_pattern not in ("strided", "random"):
            return "contiguous data sets are accessed in the order of their bytes"
        return None

    def _finding(self, use: Use, items: list[Item], system: System) -> Finding:
        shape, size = use.layer.data_representation, use.layer.granularity.data
        before = data_s(items, items, use.app)
        gain = aggregated(
            "data_time_s",
            before,
            [moved_both_ways(item.file.io) for item in items],
            process_rate(items[0].file.path, system, reads=True),
            int(self.chunk_bytes),
        )
        how = "in small chunks" if shape.chunked else f"as contiguous arrays of {shape.dims} dimensions"
        current: dict[str, Value] = {"chunked": shape.chunked, "transfer": size}
        chunk = int(self.chunk_bytes)
        return Finding(
            target=target_of(use.folder, items, use.app),
            reason=f"{use.app.name} keeps data in {listed(use.folder, items)} {how} and moves it in pieces of "
            f"{format_bytes(size)}. Chunks of the shape of what one process accesses at a time, "
            f"{format_bytes(chunk)} or more, make one request of many.",
            confidence=0.5,
            touched_s=before,
            recommended={"chunk_bytes": chunk},
            current=current,
            evidence=[
                Evidence(f"{use.where}.granularity.data", size),
                Evidence(f"{use.where}.data_representation.chunked", shape.chunked),
                Evidence(f"{use.where}.data_representation.dims", shape.dims),
                Evidence(f"{use.where}.access_pattern", use.layer.access_pattern),
                *(Evidence(f"{item.where}.path", item.file.path) for item in items[:3]),
            ],
            gain=gain or "supply a trace with times",
            apply=comment(
                f"in the program, chunk[] being the part that one process accesses ({chunk} bytes or more):\n"
                "  C:     H5Pset_chunk(dcpl, rank, chunk);\n"
                "  h5py:  file.create_dataset(name, shape, dtype, chunks=chunk)\n"
                "existing files, once:\n"
                "  h5repack -l CHUNK=AxB old.h5 new.h5"
            ),
            files=frozenset(item.file.path for item in items),
        )
