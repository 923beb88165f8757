"""HD5004: HDF5's caches are too small for the data that passes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import Access, Group, Item, by_folder, data_files
from vani.advisors.hdf5 import HDF5Files, changes_chunks, hdf5_files, hdf5_uses
from vani.advisors.rule import Finding, Gain, Rule, Value, Verdict
from vani.advisors.small_requests import aggregated, part_of_chunk, small_share, usual_text
from vani.units import KiB, MiB, format_bytes, format_count, format_number

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class HDF5Caches(Rule):
    """HDF5 writes metadata in tiny blocks, or reads and decodes chunks again that its cache could not keep.

    Looks at
        Files that are accessed through HDF5. Written ones: at least `min_small` writes below `small`, which are at
        least `min_share` of the writes, but move `max_part` of the bytes at most (more is data). Read ones stored in
        chunks: at least `min_again` bytes read for each distinct one, for one process; or at least 1,000 reads of the
        same size below 64 KiB, in order or of chunks that were written in one go. Of calls of POSIX alone, too.
    Why
        HDF5 allocates metadata in blocks of 2 KiB, so objects are scattered and each flush is many small writes. Its
        chunk cache takes 1 MiB for each data set (8 MiB from 2.0 on): a compressed chunk that does not fit is read and
        decoded again for each row requested of it, and of others each row is a read of its own.
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
        chunked = {row.app: row.data_representation.chunked for row in profile.interfaces or () if row.layer == "hdf5"}
        parts = [
            item
            for item in data_files(profile, lambda file: file.format == "hdf5")
            if part_of_chunk(item, chunked.get(item.file.apps[0]) if len(item.file.apps) == 1 else None) is not None
        ]
        findings = [self._in_parts(group) for group in by_folder(parts, profile)]
        if (why := hdf5_files(profile, system)) is not None:
            return findings or why
        uses = hdf5_uses(profile)
        for use in uses:
            scattered = use.of(item for item in use.items if self._is_scattered(item))
            again = use.of(
                item
                for item in use.items
                if use.layer.data_representation.chunked
                and self._again(item) >= self.min_again
                and item not in parts
                and not changes_chunks(use, item)
            )
            if scattered.items or again.items:
                findings.append(self._finding(scattered, again, system))
        known = all(use.layer.data_representation.chunked is not None for use in uses)
        return findings or (
            "few writes of HDF5 are small, and no chunk is read again"
            + ("" if known else ", except that chunked storage is not known (`h5dump -pH` shows it)")
        )

    def _small(self, item: Item) -> float:
        """Share of small writes."""
        return small_share(item.io.transfer_size.write, int(self.small)) or 0.0

    def _is_scattered(self, item: Item) -> bool:
        share, sizes = self._small(item), item.io.transfer_size.write
        if share < self.min_share or share * item.io.ops.write < self.min_small:
            return False
        moved = sum(size * count for size, count in sizes.common if size < self.small) if sizes else 0
        return moved <= self.max_part * (item.io.bytes.written or 0)

    def _again(self, item: Item) -> float:
        """Lower bound of how often a process reads each byte, assuming that each process reads all of them."""
        return Access(item, reads=True).times / max(1, item.file.readers)

    def _finding(self, scattered: HDF5Files, again: HDF5Files, system: System) -> Finding:
        group = scattered.of(dict.fromkeys([*scattered.items, *again.items]))
        block, cache = int(self.meta_block), int(self.cache_bytes)
        settings: dict[str, Value] = {}
        reason, lines = "", "in the program, before the file is opened or created:"
        evidence = group.figures("path")
        if scattered.items:
            count = round(sum(self._small(item) * item.io.ops.write for item in scattered.items))
            reason += (
                f"{format_count(count)} writes to {scattered.words} have less than "
                f"{format_bytes(self.small)}: metadata of HDF5 in scattered blocks. "
            )
            settings["meta_block_size"] = block
            lines += (
                f"\n  C:     H5Pset_meta_block_size(fapl, {block});"
                f"\n  h5py:  h5py.File(name, 'w', meta_block_size={block})"
            )
            evidence += scattered.figures("io.ops.write")
        if again.items:
            reason += (
                f"A process reads {again.words} {format_number(self._again(again.items[0]), 2)} times: chunks "
                f"that its cache did not keep{', and decodes them as often' if self._decodes(again) else ''}. "
            )
            settings["chunk_cache_bytes"] = cache
            lines += _cache_lines(cache)
            evidence += [*again.figures("io.bytes.read"), *again.figures("io.footprint.read")]
        reads = [Access(item, reads=True) for item in again.items]
        decoding = self._decodes(again)
        return Finding(
            **group.affected,
            reason=reason.rstrip(),
            confidence=0.5,
            touched_s=decoding or group.data_s([*reads, *(Access(item, reads=False) for item in scattered.items)]),
            acts_on="libraries" if decoding else "file_system",
            recommended=settings,
            evidence=evidence,
            gain=self._gain(scattered, again, system) or "supply a trace with times",
            apply=lines,
        )

    def _gain(self, scattered: HDF5Files, again: HDF5Files, system: System) -> Gain | str | None:
        """The gain of writes from fewer requests, or of reads from reading each byte once."""
        if writes := [Access(item, reads=False) for item in scattered.items]:
            rows, before = [access.row for access in writes], scattered.wall_s("write")
            return aggregated("write_time_s", before, rows, writes[0], system, int(self.meta_block))
        decoding = self._decodes(again)
        before = decoding or again.wall_s("read")
        left = before / min(self._again(item) for item in again.items)
        what = "HDF5's time" if decoding else "time of reads"
        method = f"{what} / times that each byte is read; low: the program wants them again in another order"
        return Gain.at_best("data_time_s" if decoding else "read_time_s", before, after=left, best=left, method=method)

    def _decodes(self, again: HDF5Files) -> float:
        """Seconds that the slowest process spends in HDF5, if most of them are outside the file system; else 0."""
        times = (again.app.library_time_s or {}).get("hdf5") if again.items and again.app is not None else None
        if times is None or times.outside_file_system < times.total / 2:
            return 0.0
        return times.slowest

    def _in_parts(self, group: Group) -> Finding:
        """The finding about chunks that are read in parts."""
        reads, cache = [Access(item, reads=True) for item in group.items], int(self.cache_bytes)
        before, first = group.data_s(reads), group.items[0]
        size = usual_text(first.io.transfer_size.read)
        return Finding(
            **group.affected,
            reason=f"{format_count(sum(item.io.ops.read for item in group.items))} reads of {group.words}, usually of "
            f"{size}, are parts of chunks: HDF5 reads a chunk that does not fit its cache (1 MiB for each data set, "
            "8 MiB from 2.0 on) row by row, even in one call. A cache of at least one chunk, or chunks that fit, make "
            "one read of many; larger chunks do not help.",
            confidence=0.6,
            touched_s=before,
            recommended={"chunk_cache_bytes": cache},
            current={"reads": sum(item.io.ops.read for item in group.items)},
            evidence=group.figures("path", "io.ops.read", "io.transfer_size.read.p50"),
            gain="supply the time of a run with such a cache",
            apply=f"in the program, before the file is opened (at least one chunk):{_cache_lines(cache)}",
        )


def _cache_lines(cache: int) -> str:
    return (
        f"\n  C:     H5Pset_chunk_cache(dapl, 12421, {cache}, 1.0);"
        f"\n  h5py:  h5py.File(name, rdcc_nbytes={cache}, rdcc_nslots=12421)"
    )
