"""HD5004: HDF5's caches are too small for the data that passes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, data_s, listed, target_of, wall_s
from vani.advisors.hdf5.hdf5_files import Use, changes_chunks, hdf5_files, hdf5_uses
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Value, Verdict
from vani.advisors.small_requests import aggregated, process_rate, small_share
from vani.models.run_time import seconds
from vani.units import KiB, MiB, format_bytes, format_count, format_number

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class HDF5Caches(Rule):
    """HDF5 writes metadata in tiny blocks, or reads chunks again that its cache could not keep.

    Looks at
        Files that are accessed through HDF5. Written ones: at least `min_small` writes below `small`, which are at
        least `min_share` of the writes, but move `max_part` of the bytes at most (more is data). Read ones stored in
        chunks: at least `min_again` bytes read for each distinct one, for one process.
    Why
        HDF5 allocates metadata in blocks of 2 KiB, so objects are scattered and each flush is many small writes. Its
        chunk cache takes 1 MiB for each data set (8 MiB from 2.0 on): a chunk that does not fit is read again for each
        row requested of it.
    Recommends
        `H5Pset_meta_block_size` of `meta_block`. A chunk cache of `cache_bytes`, more where one row of chunks is
        larger.
    Stays silent when
        No app uses HDF5; few writes are small; bytes are read once, or are not known to be stored in chunks; chunks
        are read to be changed (HD5008).
    Source
        HDF5 reference manual: H5Pset_meta_block_size, H5Pset_cache, H5Pset_chunk_cache.
    Example
        3,000 of 3,100 writes to `plot.h5` have less than 4 KiB: with blocks of 1 MiB they become few.

            file = h5py.File("plot.h5", "w")    # before
            file = h5py.File("plot.h5", "w", meta_block_size=1048576)   # after: H5Pset_meta_block_size in C
    """

    id = "HD5004"
    name = "hdf5-caches"
    family = "hdf5"
    needs = ("files", "interfaces", hdf5_files)
    settles = "caches"
    sources = ("HDF5 reference manual, H5Pset_meta_block_size", "HDF5 reference manual, H5Pset_chunk_cache")

    # Twice HDF5's default block of metadata.
    small = 4 * KiB
    # Our choice: fewer writes are not worth a line.
    min_small = 64
    # Our choice: most of the writes.
    min_share = 0.5
    # As in `interfaces[].granularity.metadata`: other transfers are at most a tenth of the data.
    max_part = 0.1
    # Our choice: half of the bytes are read again.
    min_again = 1.5
    # Typical advice is 1 to 4 MiB. The smallest wastes least.
    meta_block = 1 * MiB
    # Twice HDF5 2.0's default of 8 MiB, to allow for larger chunks.
    cache_bytes = 16 * MiB

    def check(self, profile: Profile, system: System) -> Verdict:
        uses = hdf5_uses(profile)
        findings: list[Finding] = []
        for use in uses:
            scattered = [item for item in use.items if self._is_scattered(item)]
            again = [i for i in use.items if self._again(i) >= self.min_again and not changes_chunks(use, i)]
            chunked = bool(use.layer.data_representation.chunked)
            if scattered or (again and chunked):
                findings.append(self._finding(use, scattered, again if chunked else [], system))
        if findings:
            return findings
        known = all(use.layer.data_representation.chunked is not None for use in uses)
        return self.nothing(
            "few writes of HDF5 are small, and no chunk is read again"
            + (
                ""
                if known
                else ", except that chunked storage is not known (`h5dump -pH` shows it)"
            )
        )

    def _is_scattered(self, item: Item) -> bool:
        share = small_share(item.file.io.transfer_size.write, int(self.small)) or 0.0
        if share < self.min_share or share * item.file.io.ops.write < self.min_small:
            return False
        sizes = item.file.io.transfer_size.write
        moved = sum(size * count for size, count in sizes.common if size < self.small) if sizes else 0
        return moved <= self.max_part * (item.file.io.bytes.written or 0)

    def _again(self, item: Item) -> float:
        """Lower bound of how often a process reads each byte, assuming that each process reads all of them."""
        file = item.file
        if not file.readers or not file.io.footprint.read or file.io.bytes.read is None:
            return 0.0
        return file.io.bytes.read / file.readers / file.io.footprint.read

    def _finding(self, use: Use, scattered: list[Item], again: list[Item], system: System) -> Finding:
        items = list(dict.fromkeys([*scattered, *again]))
        settings: dict[str, Value] = {}
        reason, lines = "", "in the program, before the file is opened or created:"
        evidence = [Evidence(f"{item.where}.path", item.file.path) for item in items[:3]]
        if scattered:
            count = round(
                sum(
                    (small_share(i.file.io.transfer_size.write, int(self.small)) or 0) * i.file.io.ops.write
                    for i in scattered
                )
            )
            reason += (
                f"{format_count(count)} writes to {listed(use.folder, scattered)} have less than "
                f"{format_bytes(self.small)}: metadata of HDF5 in scattered blocks. "
            )
            settings["meta_block_size"] = int(self.meta_block)
            lines += (
                f"\n  C:     H5Pset_meta_block_size(fapl, {int(self.meta_block)});"
                f"\n  h5py:  h5py.File(name, 'w', meta_block_size={int(self.meta_block)})"
            )
            evidence += [Evidence(f"{i.where}.io.ops.write", i.file.io.ops.write) for i in scattered[:3]]
        if again:
            reason += (
                f"A process reads {listed(use.folder, again)} {format_number(self._again(again[0]), 2)} times: chunks "
                "that its cache did not keep. "
            )
            settings["chunk_cache_bytes"] = int(self.cache_bytes)
            lines += (
                f"\n  C:     H5Pset_chunk_cache(dapl, 12421, {int(self.cache_bytes)}, 1.0);"
                f"\n  h5py:  h5py.File(name, rdcc_nbytes={int(self.cache_bytes)}, rdcc_nslots=12421)"
            )
            evidence += [Evidence(f"{i.where}.io.bytes.read", i.file.io.bytes.read) for i in again[:3]]
            evidence += [
                Evidence(f"{i.where}.io.footprint.read", i.file.io.footprint.read) for i in again[:3]
            ]
        gain = self._gain(use, scattered, again, system)
        return Finding(
            target=target_of(use.folder, items, use.app),
            reason=reason.rstrip(),
            confidence=0.5,
            touched_s=data_s(again, scattered, use.app),
            recommended=settings,
            current={},
            evidence=evidence,
            gain=gain or "supply a trace with times",
            apply=comment(lines),
            files=frozenset(item.file.path for item in items),
        )

    def _gain(self, use: Use, scattered: list[Item], again: list[Item], system: System) -> Gain | None:
        """The gain of writes from fewer requests, or of reads from reading each byte once."""
        if scattered:
            return aggregated(
                "write_time_s",
                wall_s(scattered, use.app, "write"),
                [
                    (i.file.io.bytes.written or 0, i.file.io.ops.write, seconds(i.file.io.time_s.write))
                    for i in scattered
                ],
                process_rate(scattered[0].file.path, system, reads=False),
                int(self.meta_block),
            )
        before = wall_s(again, use.app, "read")
        if not before:
            return None
        left = 1 / min(self._again(item) for item in again)
        return Gain(
            metric="read_time_s",
            before_s=before,
            after_s=before * left,
            best_s=before * left,
            worst_s=before,
            method="time of reads / times that each byte is read; low: the program wants them again in another order",
        )
