"""Patterns of requests and of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from vani.advisors import access_table, data_files
from vani.advisors.folder_table import LOOKS, Search, searches
from vani.advisors.movers import are_plain
from vani.advisors.patterns import MOST, NOTABLE, FilePattern, Pattern, RequestPattern, Seen, Workload
from vani.advisors.rule import Target
from vani.advisors.small_requests import SMALL, is_tiny, small_share_of, usual_at_most
from vani.models.io_time import lookup_share
from vani.units import KiB, MiB

if TYPE_CHECKING:
    from vani.schema.profile import IOStats


_HIDES_LIBRARIES: Final = frozenset({"mpiio_calls_missing", "module_off", "module_partial"})
_READS: Final = frozenset({"read", "pread", "pread64", "readv", "fread"})


class SmallRequests(RequestPattern):
    """Most reads, or writes, are small.

    Definition
        In files of 64 KiB or more, at least half of the reads (or writes) are below 64 KiB, with a tenth of their bytes
        or seconds, and these are many
    Why
        A request costs a system call and often a message to a server, at any size.
    Source
        Drishti (Bez et al., PDSW 2022): 1,000 requests and a tenth. Lustre manual: 64 KiB is the smallest stripe.
    """

    rules = ("POS002", "POS009", "MIO001", "HD5002", "HD5006")
    attributes = ("io.ops.read", "io.ops.write", "io.transfer_size.read.p50", "io.transfer_size.write.p50")

    def part(self, item: data_files.Item, run: Workload) -> tuple[float, float | None] | None:
        count, seconds = 0.0, 0.0
        for reads, number in ((True, item.reads), (False, item.writes)):
            share = small_share_of(item.io, SMALL, reads=reads)
            if not number or share < MOST or is_tiny(item):
                continue
            part = access_table.small_part(access_table.data_calls(run.profile, item.path, reads=reads), SMALL)
            # Headers are many requests and few bytes.
            moved = item.moved_by(reads=reads)
            if part is not None and moved and not part.is_notable(NOTABLE, share * number / moved):
                continue
            time_s = part.time_s if part is not None else None
            if time_s is None:
                time_s = item.io.time_s.read if reads else item.io.time_s.write
            seconds += time_s or 0.0
            count += share * number
        return (count, seconds) if count else None


def _time_of(item: data_files.Item, share: float) -> float:
    """Seconds of a share of the requests, most of which are of the direction with more requests."""
    sides = [(item.reads, item.io.time_s.read or 0.0), (item.writes, item.io.time_s.write or 0.0)]
    left, time_s = share * item.requests, 0.0
    for number, side_s in sorted(sides, reverse=True):
        if number:
            time_s += side_s * min(1.0, left / number)
            left = max(0.0, left - number)
    return time_s


class OffsetPattern(RequestPattern):
    """Requests whose offsets are of one kind."""

    attributes = (
        "io.access_pattern.strided", "io.access_pattern.random", "io.ops.read", "io.ops.write", "stride", "processes"
    )  # fmt: skip
    kind: ClassVar[Literal["random", "strided"]] = "strided"
    shared: ClassVar[bool | None] = None
    """True: only files that several processes read or write; False: only others; None: all files."""
    # As many as are called most.
    least = MOST

    def part(self, item: data_files.Item, run: Workload) -> tuple[float, float | None] | None:
        share = getattr(item.io.access_pattern, self.kind, None)
        if share is None or share < self.least or is_tiny(item) or self.shared not in (None, item in run.shared):
            return None
        time_s = _time_of(item, share)
        sides = [access_table.data_calls(run.profile, item.path, reads=reads) for reads in (True, False)]
        parts = [part for rows in sides if (part := access_table.random_part(rows, SMALL)) is not None]
        if self.kind == "random" and parts and len(parts) == sum(map(bool, sides)):
            if not any(part.is_notable(NOTABLE) for part in parts):
                return None
            time_s = sum(part.time_s or 0.0 for part in parts)
        return item.requests * share, time_s


class RandomAccess(OffsetPattern):
    """Requests jump through the file.

    Definition
        In files of 64 KiB or more, at least 20 % of the requests begin neither further on nor at a constant distance,
        with a tenth of the bytes or seconds, and these are many; also requests below 64 KiB at a constant distance of
        64 KiB or more that is no whole number of pages
    Why
        A client cannot read ahead, and a disk moves its head for each request.
    Source
        Drishti (Bez et al., PDSW 2022): 20 % of the requests. Lustre's client (`index_in_stride_window` in
        lustre/llite/rw.c): read-ahead follows steps whose pages are equally many.
    """

    rules = ("POS005", "LUS008")
    kind = "random"
    # Drishti's `random_operations`.
    least = 0.2
    block = 4 * KiB

    def part(self, item: data_files.Item, run: Workload) -> tuple[float, float | None] | None:
        io, stride = item.io, abs(item.file.stride or 0)
        usual = usual_at_most(data_files.Access(item, io.ops.read >= io.ops.write).sizes)
        if io.access_pattern is None or usual is None or usual >= SMALL or stride < SMALL or stride % self.block == 0:
            return super().part(item, run)
        share = io.access_pattern.strided + io.access_pattern.random
        if share < self.least or is_tiny(item):
            return None
        return item.requests * share, _time_of(item, share)


class StridedAccess(OffsetPattern):
    """One process moves pieces at a constant distance.

    Definition
        In files of one process, at least half of the requests begin at a constant distance from the one before, and
        these are many
    Why
        Each piece is a request, although one larger request would move several, or a different order of the data.
    Source
        General knowledge; half of the requests is our choice.
    """

    rules = ("POS002", "FWD003")
    shared = False


class InterleavedAccess(OffsetPattern):
    """Processes move pieces of one file in turn.

    Definition
        In files that two or more processes read, or write, at least half of the requests begin at a constant distance
        from the one before of the same process, and these are many
    Why
        Neighbouring pieces of different processes share blocks, whose locks move to and fro.
    Source
        Thakur et al., Data Sieving and Collective I/O in ROMIO (Frontiers 1999).
    """

    rules = ("POS009", "MIO001", "LUS004", "GPF004")
    shared = True


class SharedFile(FilePattern):
    """Several processes move the bytes of one file.

    Definition
        Much moves in files that two or more processes read, or two or more write; of collective calls all that take
        part count
    Why
        The layout of this file decides which servers work, and its locks decide who waits.
    Source
        Lustre manual, chapter on striping.
    """

    rules: ClassVar[tuple[str, ...]] = ("LUS002", "LUS004", "LUS008", "BEE001", "CEP001", "CEP002", "GPF004", "MIO004")
    attributes: ClassVar[tuple[str, ...]] = ("readers", "writers", "io.bytes.total")

    def among(self, run: Workload) -> Sequence[data_files.Item]:
        return run.shared


class OneTarget(SharedFile):
    """One storage target of several serves a large shared file.

    Definition
        Much moves in files of 64 MiB or more that two or more processes read, or write, on one target of a Lustre file
        system with several, or in one object of a CephFS
    Why
        All processes share the rate of one target while the others idle.
    Source
        Lustre manual, `lfs setstripe`; 64 MiB is our choice.
    """

    rules = ("LUS002", "LUS004", "LUS008", "PFL001", "CEP001")
    attributes = ("stripe_count", "size", "readers", "writers")
    # Our choice: a smaller file moves within a second.
    large_bytes = 64 * MiB

    def among(self, run: Workload) -> Sequence[data_files.Item]:
        mounts = run.profile.storage.mounts or ()
        return () if {mount.targets for mount in mounts if mount.type in ("lustre", "ceph")} == {1} else run.shared

    def shows(self, item: data_files.Item) -> bool:
        size = data_files.extent(item.file) or 0
        # On CephFS, another object on another target follows a full one.
        return item.file.stripe_count == 1 and self.large_bytes <= size <= (item.file.object_size or size)


class RepeatedOpen(FilePattern):
    """Files are opened again and again.

    Definition
        Files opened at least ten times by each process, 1,000 times together
    Why
        Each open and close is an exchange with the metadata server.
    Source
        Our choice; 1,000 as Drishti's `small_requests_absolute`.
    """

    rules = ("POS003",)
    attributes = ("opens", "processes")
    weight = "opens"
    # Our choice: a step or a phase may open a file again.
    opens = 10
    # Drishti's `small_requests_absolute`.
    enough = 1000

    def shows(self, item: data_files.Item) -> bool:
        return item.file.opens >= self.opens * max(1, item.file.processes)



class SearchPattern(Pattern):
    """Look-ups of names for one purpose."""

    def see(self, run: Workload) -> Seen | None:
        search: Search = self.name  # type: ignore[assignment]
        rows = [(at, row) for at, row, kind in searches(run.profile) if kind == search]
        if not rows:
            return None
        at, first = max(rows, key=lambda pair: (pair[1].time_s or 0.0, pair[1].calls))
        shares = [share for _, row in rows if (share := lookup_share(run.profile, row)) is not None]
        paths = [f"lookups[{at}].{name}" for name in ("folder", "folders", "calls", "failed", "names")]
        return Seen(Target("directory", first.folder), paths, sum(shares) if shares else None)


class LibrarySearch(SearchPattern):
    """Look-ups search a path for libraries or modules.

    Definition
        At least 1,000 look-ups (opens and stats that fail, stats of files never opened) search a path for libraries or
        modules
    Why
        Each folder of the path costs a look-up for each library, in every process, before the program starts.
    Source
        ld.so(8); 1,000 as Drishti's `small_requests_absolute`.
    """

    rules = ("FLD002",)


class NewestFileSearch(SearchPattern):
    """Look-ups search a folder for its newest file.

    Definition
        At least 1,000 look-ups, twice or more for each of ten names, in a folder that is listed again and again
    Why
        Each look costs a stat for each file, so the cost grows with the number of files.
    Source
        Our choice: fewer than ten names are flags.
    """

    rules = ("POS003",)


class OutputsCheckedAgain(SearchPattern):
    """Look-ups check again and again which outputs exist.

    Definition
        At least 1,000 look-ups, twice or more for each of ten names, in a folder that is not listed
    Why
        Workflows check all outputs at each step, although only those of the step have changed.
    Source
        Our choice: fewer than ten names are flags.
    """

    rules = ("POS003",)


class Polling(SearchPattern, FilePattern):
    """A process looks again and again whether there is something new.

    Definition
        Each process, at least 100 times, opens or stats a file of less than 64 KiB, or reads at its end
        without data, and writes or flushes it in less than half of these; or looks up one of a few names, or a missing
        one, as often
    Why
        Each look is a request to a server that other programs need, too.
    Source
        Our choice: 100 looks.
    """

    rules = ("POS003", "POS008")
    attributes = ("opens", "io.metadata_kinds.stat.count", "io.ops.read", "io.footprint.read", "processes")
    weight = "files"
    enough = 1

    def see(self, run: Workload) -> Seen | None:
        return super().see(run) or FilePattern.see(self, run)

    def shows(self, item: data_files.Item) -> bool:
        io = item.io
        looks = item.file.opens + (io.metadata_kinds.stat.count if io.metadata_kinds is not None else 0)
        distinct = io.footprint.read if io.footprint.read is not None else io.bytes.read
        if max(distinct or 0, item.file.size or 0) >= SMALL:
            # A process that waits for new data reads at the end of the file and gets no bytes.
            looks = 0
        looks += _empty_reads(io)
        return looks >= LOOKS * max(1, item.file.processes) and io.ops.write + io.ops.sync < MOST * looks


def _empty_reads(io: IOStats) -> int:
    """Reads that return nothing. Sources with return values do not count them; others count them as past the end."""
    got = (io.bytes.read or 0) - (io.past_end.read or 0)
    past_end = io.ops.read if got < io.ops.read else 0
    return past_end + max(0, sum(call.count for call in io.calls or () if call.name in _READS) - io.ops.read)


class FlushAfterEachWrite(FilePattern):
    """Nearly each write is followed by a flush.

    Definition
        Files with at least one flush for two writes, 100 flushes together
    Why
        Each flush waits for the storage, so no write overlaps with the next.
    Source
        fsync(2); the numbers are our choice.
    """

    rules = ("POS010",)
    attributes = ("io.ops.write", "io.ops.sync")
    weight = "flushes"
    # Our choice: a log has fewer, and so has the end of a run.
    enough = 100

    def shows(self, item: data_files.Item) -> bool:
        return bool(item.writes) and item.flushes >= MOST * item.writes


class SynchronousWrites(Pattern):
    """Each write waits for the storage.

    Definition
        At least 100 writes go through descriptors opened with `O_SYNC` or `O_DSYNC`: each waits for the storage
    Why
        No write overlaps with the next, as if each were flushed.
    Source
        open(2); 100 is our choice.
    """

    rules = ("POS014",)
    attributes = ("synchronous_opens", "synchronous_writes", "io.ops.write")
    # Our choice: a log has fewer.
    enough = 100

    def see(self, run: Workload) -> Seen | None:
        # Seconds by file; without those of one descriptor, a usual write's are assumed.
        waits = {
            item: item.waiting_writes / item.writes * (item.io.time_s.write or 0.0)
            for item in run.items
            if item.waiting_writes
        }
        if sum(item.waiting_writes for item in waits) < self.enough:
            return None
        return run.in_files([*waits], *self.attributes, part=waits)


class DirectIo(FilePattern):
    """Requests go past the client's cache.

    Definition
        Much moves in files that are opened with `O_DIRECT`, past the client's cache
    Why
        Nothing is read ahead or joined, so the program must issue large requests, several at a time.
    Source
        open(2).
    """

    rules = ()
    attributes = ("direct_opens", "opens", "io.bytes.total")

    def shows(self, item: data_files.Item) -> bool:
        return bool(item.file.direct_opens)


class Reread(FilePattern):
    """The same bytes are read several times.

    Definition
        Much moves in files whose bytes are read at least twice (HDF5, netCDF: 1.5 times) in the mean, by one process or
        several
    Why
        What memory, a local disk or a broadcast could serve comes from the file system again.
    Source
        Our choice. HDF5 and netCDF read chunks again that no cache keeps.
    """

    rules: ClassVar[tuple[str, ...]] = ("POS001", "POS011", "BB001", "HD5004")
    attributes: ClassVar[tuple[str, ...]] = ("io.bytes.read", "io.footprint.read")
    # Our choice.
    times = 2.0
    # HDF5 and netCDF write fill values first, and read chunks again that no cache keeps.
    times_of_hdf5 = 1.5

    def shows(self, item: data_files.Item) -> bool:
        access = data_files.Access(item, "read" in self.attributes[0])
        least = self.times_of_hdf5 if item.file.format in ("hdf5", "netcdf") else self.times
        generations = data_files.generations_of(item.file)
        return access.bytes >= MiB * generations and access.times >= generations * least


class Rewritten(Reread):
    """The same bytes are written several times.

    Definition
        Much moves in files whose bytes are written at least twice (HDF5, netCDF: 1.5 times) in the mean, by one process
        or several
    Why
        Only the last write of a byte counts; the others cost time and wear.
    Source
        Our choice. HDF5 and netCDF write fill values first.
    """

    rules = ("POS011", "HD5007", "HD5008")
    attributes = ("io.bytes.written", "io.footprint.written")


class ReadsPastEnd(FilePattern):
    """Reads go beyond the end of a file.

    Definition
        Much moves in files with at least a tenth of the requested bytes beyond their end
    Why
        Such a read returns nothing, but it asks the servers for the size of the file.
    Source
        read(2); a tenth as Drishti's shares.
    """

    rules = ("POS008",)
    attributes = ("io.past_end.read", "io.bytes.read")

    def shows(self, item: data_files.Item) -> bool:
        return (item.io.past_end.read or 0) >= max(1, NOTABLE * (item.io.bytes.read or 0))


class Misaligned(RequestPattern):
    """Requests do not fit the blocks of the file system.

    Definition
        In files of 1 MiB or more, at least half of the requests are between 4 KiB and 1 MiB and no multiple of 4 KiB,
        or, in a file of several writers, most bytes begin off a block, and these are many
    Why
        A block that a request covers in part must be read first, or its lock is shared with a neighbour.
    Source
        Lustre manual: pages of 4 KiB and RPCs of 1 MiB.
    """

    rules = ("LUS001", "GPF001", "HD5001")
    attributes = ("io.transfer_size.read.p50", "io.transfer_size.write.p50", "io.ops.read", "io.ops.write")
    # getpagesize(2): the size of a page on most machines.
    page_bytes = 4 * KiB
    # Lustre manual: the size of an RPC, and of a stripe by default. A smaller file takes one request or a few.
    rpc_bytes = MiB
    # Lustre manual: the smallest stripe.
    large_bytes = 64 * KiB

    def part(self, item: data_files.Item, run: Workload) -> tuple[float, float | None] | None:
        if (data_files.extent(item.file) or 0) < self.rpc_bytes:
            return None
        count = max(self._odd_requests(item), self._off_blocks(item, run))
        return (count, None) if count >= MOST * item.requests > 0 else None

    def _off_blocks(self, item: data_files.Item, run: Workload) -> float:
        """Requests to a shared file, if most bytes are in large ones that begin in a block that others write, too."""
        if item not in run.shared or item.file.writers < 2:
            return 0.0
        rows = access_table.data_calls(run.profile, item.path, reads=False)
        share = access_table.misaligned_share(rows, self.large_bytes)
        return item.writes if share is not None and share >= MOST else 0.0

    def _odd_requests(self, item: data_files.Item) -> float:
        """Lower bound of the requests from a page to an RPC whose size is not a multiple of a page."""
        count = 0.0
        for reads, factor in ((True, item.part.reads), (False, item.part.writes)):
            sizes = data_files.Access(item, reads).sizes
            odd = range(self.page_bytes + 1, self.rpc_bytes)
            common = [row for row in sizes.common if row[0] in odd and row[0] % self.page_bytes] if sizes else ()
            count += factor * sum(number for _, number in common)
        return count


class IndependentIo(SharedFile):
    """Processes write or read a shared file each on its own, although MPI-IO could join their requests.

    Definition
        Much moves in shared files through MPI-IO, less than half of the requested bytes are in collective calls (of the
        calls, where their bytes are not known), and most reads, or writes, are below 16 MiB
    Why
        Collective calls join the small pieces of all processes into few large requests.
    Source
        Thakur et al., Data Sieving and Collective I/O in ROMIO (Frontiers 1999): a collective buffer has 16 MiB.
    """

    rules = ("MIO001", "HD5005")
    attributes = ("readers", "writers")
    # ROMIO's `cb_buffer_size`.
    buffer_bytes = 16 * MiB

    def among(self, run: Workload) -> Sequence[data_files.Item]:
        return [item for item in run.shared if self._is_independent(run, item.path)]

    def shows(self, item: data_files.Item) -> bool:
        return any(small_share_of(item.io, self.buffer_bytes, reads=reads) >= MOST for reads in (True, False))

    @staticmethod
    def _is_independent(run: Workload, path: str) -> bool:
        """True if independent calls of MPI-IO request most bytes, or are most calls where the bytes are not known."""
        share = access_table.Traffic.on(run.profile, [path]).collective
        if path in run.joint and share is None:
            layers = [layer for layer in run.profile.interfaces or () if layer.layer == "mpiio"]
            return any((layer.collective_share or 0.0) < MOST for layer in layers)
        return share is not None and share < MOST


class LowLevelInterface(SharedFile):
    """Processes share a file without MPI-IO.

    Definition
        Much moves in shared files without MPI-IO, by the program's own calls or those of a serial library, in a trace
        that would show MPI-IO; workers and children of a script do not count
    Why
        The library cannot join requests, choose aggregators or align pieces.
    Source
        Drishti (Bez et al., PDSW 2022), `interface_mpiio`.
    """

    rules = ("POS009",)
    attributes = ("readers", "writers")

    def among(self, run: Workload) -> Sequence[data_files.Item]:
        # The program may call the library without the trace showing it.
        is_hidden = run.misses(_HIDES_LIBRARIES) or "MPI-IO" in run.profile.provenance.get("interfaces.layer", "")
        shared = () if is_hidden else run.shared
        plain = {app.name for app in run.profile.apps if are_plain(app, run.profile)}
        return [item for item in shared if item.path not in run.joint and plain.isdisjoint(item.file.apps)]


class StdioBulkData(FilePattern):
    """Much data moves through streams.

    Definition
        Much, and 1 MiB or more, moves through streams (`fwrite`, `fread`)
    Why
        A stream's buffer of a few KiB cuts large requests into small ones and copies each byte once more.
    Source
        Drishti (Bez et al., PDSW 2022), `interface_stdio`.
    """

    rules = ("POS012",)
    attributes = ("io.bytes.total",)

    def see(self, run: Workload) -> Seen | None:
        return super().see(run) if sum(item.moved for item in self.among(run)) >= MiB else None

    def among(self, run: Workload) -> Sequence[data_files.Item]:
        return [item for item in run.items if item.path in run.streams]


class Sieving(FilePattern):
    """MPI-IO moves more than the program requested.

    Definition
        Much moves in files, and at least twice the bytes that MPI-IO calls requested of them
    Why
        Data sieving reads and writes whole ranges for small pieces with gaps.
    Source
        Thakur et al., Data Sieving and Collective I/O in ROMIO (Frontiers 1999); twice is our choice.
    """

    rules = ("MIO001", "MIO003")
    attributes = ("io.bytes.total",)
    # Our choice.
    amplification = 2.0

    def among(self, run: Workload) -> Sequence[data_files.Item]:
        factors = ((item, access_table.Traffic.on(run.profile, [item.path]).sieving) for item in run.items)
        return [item for item, factor in factors if (factor or 0.0) >= self.amplification]
