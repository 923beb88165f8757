"""Patterns of a run, its processes and its names of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from vani.advisors import data_files
from vani.advisors.movers import FUNNEL_BYTES, are_plain, gathers, is_funnel, moves_collectively
from vani.advisors.patterns import MOST, NOTABLE, REQUESTS, AppPattern, Pattern, Seen, Workload
from vani.advisors.rule import Target
from vani.units import MiB

if TYPE_CHECKING:
    from vani.schema.profile import App, NamePattern, Profile


_SMALL_FILES: Final = 100
"""Fewer small files are configuration (our choice)."""
_WAITING_S: Final = 0.1
"""A shorter wait is start-up (our choice)."""

_HIDES_DATA: Final = frozenset(
    {"written_without_writes", "read_without_reads", "asynchronous", "stream_buffered", "other_api", "module_off"}
)
_REMOVES: Final = frozenset({"unlink", "unlinkat", "remove", "rmdir"})


def _bytes_of(row: NamePattern) -> int:
    return (row.bytes.read or 0) + (row.bytes.written or 0)


def _is_small(row: NamePattern) -> bool:
    """True for files where each open moves some bytes, but at most a stripe of Lustre."""
    return 0 < _bytes_of(row) <= MiB * max(row.opens, row.files)


class FilePerProcess(Pattern):
    """Each process has a file of its own.

    Definition
        Much moves in name patterns whose files have one process each: at least 32 files, and at least half as many as
        processes, by as many processes. Small files that are only read do not count
    Why
        No process waits for the lock of another, but servers create, open and list many files.
    Source
        Our choice: 32 files.
    """

    rules = ("LUS003", "GPF002", "GPF003", "MIO006", "BB004")
    # Our choice: fewer files are one for each server or thread.
    files = 32

    def see(self, run: Workload) -> Seen | None:
        many = max(self.files, run.profile.workflow.processes / 2)
        rows = [
            (at, row)
            for at, row in run.names
            if not row.shared
            and row.files >= many
            # Which process reads which small file is often chance, but which one creates it is not.
            and ((row.writers or 0) >= many or ((row.processes or 0) >= many and not _is_small(row)))
        ]
        moved = sum(_bytes_of(row) for _, row in rows)
        if not moved or moved < NOTABLE * run.moved:
            return None
        return run.in_names(rows, "files", "processes", "bytes.total")


class OneProcessMovesAll(AppPattern):
    """One process, or a few, writes for all.

    Definition
        One in four processes of an app, or fewer, write all bytes (1 MiB or more), not as aggregators of collective
        calls
    Why
        The others wait, and one process cannot use the rate of the file system.
    Source
        Our choice: one in four.
    """

    rules = ("POS004",)
    attributes = ("processes", "balance.writing_processes", "balance.busiest_bytes", "io.bytes.written")

    def shows(self, app: App, profile: Profile) -> bool:
        return is_funnel(app, profile)


class Imbalance(AppPattern):
    """Some processes move much more than others, or take much longer.

    Definition
        Where most bytes do not move by collective calls: the busiest process moves 1 MiB or more beyond the mean, and
        the mean is less than 70 % of it; or the slowest process spends at least twice the mean I/O time, and 0.1 s more
    Why
        The run waits for the slowest process.
    Source
        Drishti (Bez et al., PDSW 2022): 30 % beyond the mean.
    """

    rules = ("POS006",)
    attributes = (
        "balance.busiest_bytes", "balance.mean_bytes", "balance.slowest_io_time_s", "balance.mean_io_time_s"
    )  # fmt: skip
    # Drishti's `imbalance_operations`.
    uneven_bytes = 0.3
    # Our choice.
    uneven_times = 2.0

    def shows(self, app: App, profile: Profile) -> bool:
        balance = app.balance
        if balance is None or app.processes < 2 * app.instances or are_plain(app, profile):
            return False
        # Aggregators move the bytes of others, and one process that writes everything is a separate pattern.
        if gathers(app, profile) or moves_collectively(app, profile) or is_funnel(app, profile):
            return False
        more_bytes = balance.busiest_bytes - balance.mean_bytes
        if more_bytes >= FUNNEL_BYTES and more_bytes > self.uneven_bytes * balance.busiest_bytes:
            return True
        slowest, mean = balance.slowest_io_time_s or 0.0, balance.mean_io_time_s or 0.0
        return slowest - mean >= _WAITING_S and slowest >= self.uneven_times * mean


class ManySmallFiles(Pattern):
    """The data is in many small files.

    Definition
        At least 100 files, and at least half of all, that move at most 1 MiB per open
    Why
        Opening and closing a small file costs more than moving its bytes.
    Source
        Lustre manual: 1 MiB is the default stripe; 100 files are our choice.
    """

    rules = ("FLD001", "FLD003", "LUS006", "LUS007", "GPF002", "GPF003")

    def see(self, run: Workload) -> Seen | None:
        small = [(at, row) for at, row in run.names if _is_small(row)]
        files = sum(row.files for _, row in small)
        if files < _SMALL_FILES or files < MOST * sum(row.files for _, row in run.names):
            return None
        most = max(row.files for _, row in small)
        # A script or an index of the data set is small, too, but there are few of these.
        return run.in_names([(at, row) for at, row in small if 10 * row.files >= most], "files", "bytes.total", "opens")


class MetadataBound(Pattern):
    """Names and attributes of files take most of the I/O time.

    Definition
        What a metadata server answers (open, close, stat, folders, remove, rename) takes at least half of the I/O time,
        in a run with at least 1,000 metadata operations
    Why
        One server, or a few, answer for all clients; more storage targets do not help.
    Source
        Half is our choice; 1,000 as Drishti's `small_requests_absolute`.
    """

    rules: ClassVar[tuple[str, ...]] = ("FLD001", "POS003", "LUS006", "LUS007", "HD5003")

    def see(self, run: Workload) -> Seen | None:
        io = run.profile.workflow.io
        served = (io.time_s.metadata or 0.0) * data_files.share_of([io], data_files.SERVED)
        return self.if_most(run, io.ops.metadata, served, "workflow.io.ops.metadata", "workflow.io.time_s.metadata")

    @staticmethod
    def if_most(run: Workload, count: int, time_s: float | None, *attributes: str) -> Seen | None:
        """The pattern, if a kind of metadata operation takes most of the I/O time."""
        if run.misses(_HIDES_DATA) or count < REQUESTS or not time_s or time_s < MOST * run.io_s:
            return None
        return run.in_job(*attributes, "workflow.io.time_s.total", time_s=time_s)


class StatBound(MetadataBound):
    """Looking at attributes of files takes most of the I/O time.

    Definition
        Stat calls and their kin take at least half of the I/O time, and are at least 1,000
    Why
        Each stat asks the metadata server, and on Lustre those that store the file, for its size.
    Source
        Half is our choice.
    """

    rules = ("FLD002", "POS003", "LUS007")

    def see(self, run: Workload) -> Seen | None:
        kinds, where = run.profile.workflow.io.metadata_kinds, "workflow.io.metadata_kinds.stat"
        if kinds is None:
            return None
        return self.if_most(run, kinds.stat.count, kinds.stat.time_s, f"{where}.count", f"{where}.time_s")


class RemoveBound(MetadataBound):
    """Removing files takes most of the I/O time.

    Definition
        Removing files and folders (`unlink`, `rmdir`) takes at least half of the I/O time, by at least 1,000 calls
    Why
        Each removal is a transaction of the metadata server, and frees space on the storage targets.
    Source
        Half is our choice.
    """

    rules = ("FLD001", "LUS007", "GPF002")

    def see(self, run: Workload) -> Seen | None:
        calls = run.profile.workflow.io.calls or ()
        removes = [(f"workflow.io.calls[{at}]", call) for at, call in enumerate(calls) if call.name in _REMOVES]
        paths = [f"{where}.{name}" for where, _ in removes[: run.shown] for name in ("name", "count", "time_s")]
        count, time_s = sum(call.count for _, call in removes), sum(call.time_s or 0.0 for _, call in removes)
        return self.if_most(run, count, time_s, *paths)


class StatStorm(Pattern):
    """Stat calls outnumber opens by far.

    Definition
        At least 1,000 stat calls and their kin, at least a tenth of all calls, and more than two for each open
    Why
        Each stat is an exchange with a server, and many of them look for what is not there.
    Source
        Drishti's shares; an open in Python usually has two.
    """

    rules = ("FLD002", "POS003")
    # A stat before and after each open, as Python's `open` does.
    stats_per_open = 2

    def see(self, run: Workload) -> Seen | None:
        kinds, where = run.profile.workflow.io.metadata_kinds, "workflow.io.metadata_kinds"
        if kinds is None or kinds.stat.count < max(REQUESTS, NOTABLE * run.profile.workflow.io.ops.all):
            return None
        if kinds.stat.count <= self.stats_per_open * kinds.open.count:
            return None
        return run.in_job(f"{where}.stat.count", f"{where}.open.count", time_s=kinds.stat.time_s)


class FlushBound(Pattern):
    """Flushing takes much of the I/O time.

    Definition
        At least ten flushes take at least a quarter of the I/O time
    Why
        A flush waits until the storage has the data, and often for the data of others, too.
    Source
        fsync(2); the numbers are our choice: fewer flushes end files.
    """

    rules = ("POS010",)
    least = 10
    # Our choice: as much as is worth a change of the program (the severity high).
    much = 0.25

    def see(self, run: Workload) -> Seen | None:
        io = run.profile.workflow.io
        sync_s = io.time_s.sync
        if not sync_s or sync_s < self.much * run.io_s or io.ops.sync < self.least:
            return None
        return run.in_job("workflow.io.ops.sync", "workflow.io.time_s.sync", time_s=sync_s)


class LibraryWaiting(Pattern):
    """Time in an I/O library is spent outside the file system.

    Definition
        At least half of the time in the outermost I/O library, and 0.1 s, is outside file-system calls: exchange,
        waiting, packing
    Why
        No setting of the file system shortens this time.
    Source
        Our choice.
    """

    rules = ("MIO001", "MIO002")

    def see(self, run: Workload) -> Seen | None:
        times = run.profile.workflow.library_time_s or {}
        # The time of the outermost library includes the others.
        name = max(times, key=lambda layer: times[layer].total, default=None)
        if name is None or times[name].outside_file_system < max(_WAITING_S, MOST * times[name].total):
            return None
        where = f"workflow.library_time_s.{name}"
        return run.in_job(f"{where}.outside_file_system", f"{where}.total")


class MemoryMapped(Pattern):
    """Data moves through mapped memory.

    Definition
        Files were mapped into memory: what moves that way is no call, and is not counted
    Why
        Pages are read one by one when they are touched, so the order of the accesses decides the rate.
    Source
        mmap(2).
    """

    rules = ("POS005",)

    def see(self, run: Workload) -> Seen | None:
        for at, entry in enumerate(run.profile.unseen or ()):
            paths = [path for path in entry.files if data_files.is_data(path)]
            if entry.kind == "memory_mapped" and (paths or not entry.files):
                target = Target("file", paths[0]) if paths else Target("job")
                return Seen(target, [f"unseen[{at}].kind", f"unseen[{at}].count"], None)
        return None


class Locking(Pattern):
    """Locks of files fail, or take time.

    Definition
        Locks fail for want of them (`ENOLCK`) or because another process has one (`EAGAIN`), or take 5 % of the I/O
        time
    Why
        Each lock is an exchange with a server, and while one process has it others wait.
    Source
        flock(2), fcntl_locking(2); 5 % is our choice.
    """

    rules = ()

    def see(self, run: Workload) -> Seen | None:
        if not run.locks:
            return None
        locks = run.profile.locks or ()
        paths = [f"locks[{at}].{name}" for at in range(len(locks)) for name in ("call", "calls", "time_s")]
        return run.in_job(*paths, time_s=sum(lock.time_s or 0.0 for lock in locks))


class EnvironmentStartup(Pattern):
    """Loading an installed environment takes time.

    Definition
        At least 100 files of an installed Python environment are loaded, in at least a tenth of the I/O time
    Why
        Every process loads thousands of small files before it begins to work.
    Source
        Our choice: 100 files.
    """

    rules = ("FLD002",)

    def see(self, run: Workload) -> Seen | None:
        rows = [row for row in enumerate(run.profile.patterns or ()) if data_files.is_software(row[1].pattern)]
        if sum(row.files for _, row in rows) < _SMALL_FILES:
            return None
        seen = run.in_names(rows, "files", "opens", "processes")
        opens = sum(row.opens for row in run.profile.patterns or ())
        share = sum(row.opens for _, row in rows) / max(1, opens) if seen.share is None else seen.share
        return seen if share >= NOTABLE else None


class NothingRemarkable(Pattern):
    """The run shows no other pattern.

    Definition
        None of these, and nothing unseen
    Why
        The program's I/O has no known weakness, or too little I/O to judge.
    Source
        This list.
    """

    rules = ()

    def see(self, run: Workload) -> Seen | None:
        # The remarkable activity may be unrecorded.
        if run.profile.unseen or not run.profile.workflow.io.ops.all:
            return None
        return run.in_job("workflow.io.bytes.total")._replace(share=None)
